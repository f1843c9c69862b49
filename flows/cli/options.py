"""Options that several commands share."""

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.models import OptionInfo

from passgate.flows.cli.completion import complete_gates, complete_runs
from passgate.tasks.model.names import GateName, RunnerName, Suite


def set_plain_metavars(command: Callable[..., Any]) -> None:
    """Show `N` for a number in the help of a command, and nothing for an option without a value."""
    for parameter in inspect.signature(command).parameters.values():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo) and info.metavar is None:
                kinds = get_args(get_args(parameter.annotation)[0]) or get_args(parameter.annotation)
                info.metavar = "" if bool in kinds else "N" if int in kinds else None


def named_path(text: str) -> Path:
    """Parse a path. Raise `BadParameter` for an empty one, because `Path("")` is the current folder."""
    if not text:
        raise typer.BadParameter("a path is empty: name a file or a folder")
    return Path(text)


def named_gate(text: str) -> GateName:
    """Find a gate by its name. Raise `BadParameter` with the nearest name."""
    from passgate.tasks.formats.schema_check import nearest

    try:
        return GateName(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a gate{nearest(text, [str(gate) for gate in GateName])}") from error


def named_day(text: str) -> str:
    """Parse a UTC day as in `2026-01-31`. Raise `BadParameter`."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a day: write it as 2026-01-31") from error


GateArgument = Annotated[
    GateName,
    typer.Argument(metavar="GATE", help="The gate to use.", parser=named_gate, autocompletion=complete_gates),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The run: its id, the first characters of it, its folder, its URL, or `last`.",
        autocompletion=complete_runs,
    ),
]
TaskFilesArgument = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Task files, eval files, folders that contain them.", parser=named_path),
]
AgentOption = Annotated[
    str,
    typer.Option(
        metavar="SPEC",
        help="A name in agents.yaml or in AgentV's targets, or oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND', "
        "python:MODULE:FUNCTION, http:URL, openai:MODEL, replay, replay:FOLDER.",
    ),
]
SuitesOption = Annotated[
    str, typer.Option(rich_help_panel="Files and history", metavar="DIR", help="The suites folder.")
]
GatesOption = Annotated[
    str,
    typer.Option(rich_help_panel="Files and history", metavar="FILE", help="The file with the policies of the gates."),
]
HistoryOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel="Files and history",
        metavar="URL",
        envvar="PASSGATE_HISTORY_URL",
        help="Folder or URL of the history. Default: as in the gates file.",
    ),
]
BaseOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel="Files and history",
        metavar="REV",
        help="Compare with this commit, whose files judge. Default: the baseline branch.",
    ),
]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Trials at the same time.")]
MaxCostOption = Annotated[
    float | None, typer.Option(metavar="USD", min=0, help="Cost cap of the whole command in US dollars.")
]
RunnerOption = Annotated[
    RunnerName | None,
    typer.Option(
        rich_help_panel="Other machines",
        help="Run the trials in batches on this task runner of Prefect.",
        metavar="RUNNER",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option(rich_help_panel="Other machines", min=1, help="With --runner: batches at the same time.")
]
RunnerAddressOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel="Other machines",
        metavar="ADDRESS",
        help="With --runner dask or ray: the cluster. Default: a local one for this run.",
    ),
]
PlotOption = Annotated[
    Path | None, typer.Option(rich_help_panel="Output", metavar="FILE.svg", help="Also write a plot.")
]
OpenOption = Annotated[bool, typer.Option("--open", rich_help_panel="Output", help="Open the page in the browser.")]
SinceOption = Annotated[
    str | None,
    typer.Option(
        metavar="DAY",
        parser=named_day,
        help="All runs from this UTC day on, as in 2026-01-31. Default: the newest 400 runs.",
    ),
]
UntilOption = Annotated[str | None, typer.Option(metavar="DAY", parser=named_day, help="Only runs up to this UTC day.")]
OnlySuiteOption = Annotated[Suite | None, typer.Option(help="Only this suite.")]
JsonOption = Annotated[
    bool, typer.Option("--json", rich_help_panel="Output", help="Print one JSON document, and nothing else.")
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", rich_help_panel="Output", help="Print only warnings and errors, and a verdict's line."),
]


RunStoreOption = Annotated[
    str | None,
    typer.Option(
        rich_help_panel="Files and history",
        metavar="URL",
        envvar="PASSGATE_RUN_STORE",
        help="Keep the run below this URL, as in s3://bucket/runs. Default: .passgate/runs.",
    ),
]


class EngineName(StrEnum):
    """The engine that runs a gate."""

    PREFECT = "prefect"
    NONE = "none"
