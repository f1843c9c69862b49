"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.tasks.model.task import GateName


def named_path(text: str) -> Path:
    """A path as it is named. Raises `BadParameter` for an empty one, which would be the current folder."""
    if not text:
        raise typer.BadParameter("a path is empty: name a file or a folder")
    return Path(text)


def named_gate(text: str) -> GateName:
    """A gate by its name. Raises `BadParameter` with the nearest name."""
    from passgate.tasks.formats.schema_check import nearest

    try:
        return GateName(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no gate{nearest(text, [str(gate) for gate in GateName])}") from error


GateArgument = Annotated[
    GateName, typer.Argument(metavar="GATE", help="The gate.", parser=named_gate, show_default=False)
]
AgentOption = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="SPEC",
        help="A name of agents.yaml or of AgentV's targets; or oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND', "
        "python:MODULE:FUNCTION, http:URL, openai:MODEL, replay:FOLDER.",
    ),
]
SuitesOption = Annotated[str, typer.Option("--suites", metavar="DIR", help="The folder of the suites.")]
GatesOption = Annotated[str, typer.Option("--gates", metavar="FILE", help="The gates' policies.")]
HistoryOption = Annotated[
    str | None,
    typer.Option("--history", metavar="URL", help="Folder or URL of the history; the gates file's by default."),
]
BaseOption = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="REV",
        help="What the change is compared with; where it has left the baseline branch by default.",
    ),
]
