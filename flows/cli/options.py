"""Options that several commands have."""

from typing import Annotated

import typer

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
