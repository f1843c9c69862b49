"""Options that several commands share, with their parsers and their completions.

The shell completes gates, tasks and runs, which passgate reads from files cheaply. An error completes nothing.
"""

import os
import re
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from passgate.flows.cli.output import gates_file
from passgate.tasks.model.names import GateName, RunnerName, Suite

_RUNS: Final = Path(".passgate", "runs")
_SUITES: Final = Path("suites")
_MOST_FILES, _MOST_BYTES = 2000, 20_000
_MOST_RUNS: Final = 50
_TASK_ID: Final = re.compile(rb"^task_id:[ \t]*[\"']?([\w./-]+)", re.MULTILINE)


_of_files: Final = partial(typer.Option, rich_help_panel="Files and history")
_of_machines: Final = partial(typer.Option, rich_help_panel="Other machines")
_of_output: Final = partial(typer.Option, rich_help_panel="Output")


def keep_gates_file(name: str) -> str:
    """Keep the name of the gates file, whose secrets no error message shows."""
    gates_file.set(name)
    return name


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


def complete_gates(incomplete: str) -> list[str]:
    """Return the gates that begin with a text."""
    return [gate for gate in map(str, GateName) if gate.startswith(incomplete)]


def complete_runs(incomplete: str) -> list[str]:
    """Return `last` and the newest runs of the working folder, if they begin with a text."""
    runs = [name for name in sorted(_folder_names(_RUNS), reverse=True) if name.startswith(incomplete)]
    return [*(["last"] if "last".startswith(incomplete) else []), *runs[:_MOST_RUNS]]


def complete_tasks(incomplete: str) -> list[str]:
    """Return the tasks in `suites` whose `suite/task_id` begins with a text, from a plain search of their files."""
    names = set[str]()
    for suite in _folder_names(_SUITES):
        files_of_suite = [] if suite.startswith(("_", ".")) else sorted((_SUITES / suite).rglob("*.yaml"))
        for file in files_of_suite[:_MOST_FILES]:
            try:
                with file.open("rb") as content:
                    found = _TASK_ID.search(content.read(_MOST_BYTES))
            except OSError:
                continue
            if found is not None:
                names.add(f"{suite}/{found[1].decode('utf-8', 'replace')}")
    return sorted(name for name in names if name.startswith(incomplete))


def complete_schemas(incomplete: str) -> list[str]:
    """Return the published schemas that begin with a text."""
    try:
        return [name for name in schema_names() if name.startswith(incomplete)]
    except OSError:
        return []


def schema_names() -> list[str]:
    """Return the names of all published schemas, sorted."""
    suffix = ".schema.json"
    found = (entry.name for entry in files("passgate").joinpath("schema").iterdir())
    return sorted(name.removesuffix(suffix) for name in found if name.endswith(suffix))


def _folder_names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return []


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
AgentOption = Annotated[
    str,
    typer.Option(
        metavar="SPEC",
        help="A name in agents.yaml or in AgentV's targets, or oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND', "
        "python:MODULE:FUNCTION, http:URL, openai:MODEL, replay, replay:FOLDER.",
    ),
]
SuitesOption = Annotated[str, _of_files(metavar="DIR", help="The suites folder.")]
GatesOption = Annotated[
    str, _of_files(metavar="FILE", help="The file with the policies of the gates.", callback=keep_gates_file)
]
HistoryOption = Annotated[
    str | None,
    _of_files(
        metavar="URL",
        envvar="PASSGATE_HISTORY_URL",
        help="Folder or URL of the history. Default: as in the gates file.",
    ),
]
BaseOption = Annotated[
    str | None,
    _of_files(metavar="REV", help="Compare with this commit, whose files judge. Default: the baseline branch."),
]
RunStoreOption = Annotated[
    str | None,
    _of_files(
        metavar="URL",
        envvar="PASSGATE_RUN_STORE",
        help="Keep the run below this URL, as in s3://bucket/runs. Default: .passgate/runs.",
    ),
]
JobsOption = Annotated[int | None, typer.Option(min=1, help="Trials at the same time.")]
MaxCostOption = Annotated[
    float | None, typer.Option(metavar="USD", min=0, help="Cost cap of the whole command in US dollars.")
]
RunnerOption = Annotated[
    RunnerName | None, _of_machines(metavar="RUNNER", help="Run the trials in batches on this task runner of Prefect.")
]
WorkersOption = Annotated[int | None, _of_machines(min=1, help="With --runner: batches at the same time.")]
RunnerAddressOption = Annotated[
    str | None,
    _of_machines(metavar="ADDRESS", help="With --runner dask or ray: the cluster. Default: a local one for this run."),
]
PlotOption = Annotated[Path | None, _of_output(metavar="FILE.svg", help="Also write a plot.")]
OpenOption = Annotated[bool, _of_output("--open", help="Open the page in the browser.")]
JsonOption = Annotated[bool, _of_output("--json", help="Print one JSON document, and nothing else.")]
QuietOption = Annotated[bool, _of_output("--quiet", help="Print only warnings and errors, and a verdict's line.")]
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


class EngineName(StrEnum):
    """The engine that runs a gate."""

    PREFECT = "prefect"
    NONE = "none"
