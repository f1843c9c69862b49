"""The commands of `passgate`: each is imported when it is used, and runs in the project's folder."""

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import chdir
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, get_args

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from passgate import __version__
from passgate.flows.cli.options import JsonOption, QuietOption
from passgate.flows.cli.output import OutputForm, output_form

_PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "Run": {"run": "run.run", "try": "trials.try_task", "sign-off": "trials.sign_off", "judge": "trials.judge"},
    "Write tasks": {
        "validate": "task_files.validate",
        "show": "task_files.show",
        "check-graders": "task_files.check_graders",
        "convert": "task_files.convert",
        "schema": "task_files.schema",
    },
    "Look at results": {
        "report": "results.report",
        "view": "results.view",
        "trend": "results.trend",
        "traces": "results.traces",
        "history": "history.history",
    },
    "Trust a gate": {"forecast": "trust.forecast", "burn-in": "trust.burn_in", "baseline": "trust.baseline"},
    "Set up": {"init": "init.init", "doctor": "trials.doctor"},
}
"""The module and the name of each command, in the panels of the help."""
_COMMANDS: Final = {name: (panel, place) for panel, places in _PANELS.items() for name, place in places.items()}
_PATHS: Final = frozenset({"DIR", "FILE", "PATH", "FILE.json", "FILE.svg", "URL"})
"""The metavars of parameters that are paths."""
_PERHAPS_PATHS: Final = frozenset({"RUN", "[RUN]", "TASK", "ID"})  # The metavars of parameters that may be paths


class _Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(_COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or `None`."""
        return _load_command(cmd_name) if cmd_name in _COMMANDS else None


@cache
def _load_command(name: str) -> Any:
    panel, place = _COMMANDS[name]
    module, _, attribute = place.rpartition(".")
    found = getattr(import_module(f"passgate.flows.cli.{module}"), attribute)
    group = found if isinstance(found, typer.Typer) else typer.Typer(add_completion=False)
    if found is not group:
        group.command(name)(found)
    for info in group.registered_commands:
        if info.callback is not None:
            info.callback = _prepare(info.callback, in_project=name != "init")
            _set_plain_metavars(info.callback)
    command: Any = typer.main.get_command(group)
    command.name, command.rich_help_panel = name, panel
    return command


def _set_plain_metavars(command: Callable[..., Any]) -> None:
    """Show `N` for a number in the help of a command, and nothing for an option without a value."""
    for parameter in inspect.signature(command).parameters.values():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo) and info.metavar is None:
                kinds = get_args(get_args(parameter.annotation)[0]) or get_args(parameter.annotation)
                info.metavar = "" if bool in kinds else "N" if int in kinds else None


def _prepare(command: Callable[..., int | None], *, in_project: bool) -> Callable[..., int | None]:
    """Add --json and --quiet to a command, and run it in the project's folder, with paths relative to that."""
    signature = inspect.signature(command)

    @wraps(command)
    def run(*, as_json: bool, quiet: bool, **given: Any) -> int | None:
        output_form.set(OutputForm(as_json, quiet))
        folder = _find_project() if in_project else None
        if folder is None:
            return command(**given)
        below = Path(os.path.relpath(Path.cwd(), folder))
        for name, value in given.items():
            parameter = signature.parameters[name]
            metadata = getattr(parameter.annotation, "__metadata__", ())
            info = next((one for one in metadata if isinstance(one, ArgumentInfo | OptionInfo)), None)
            if value != parameter.default:
                given[name] = _convert_path(value, info, below)
        with chdir(folder):
            return command(**given)

    added = {"as_json": JsonOption, "quiet": QuietOption}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in added.items()
    ]
    run.__annotations__ = {**command.__annotations__, **added}
    run.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *parameters]
    )
    return run


def _find_project() -> Path | None:
    """Return the nearest folder above with a gates file or suites; `None` if the working folder has them."""
    try:
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / "gates.yaml").is_file() or (folder / "suites").is_dir():
                return None if folder == here else folder
            if (folder / ".git").exists():
                return None
    except OSError:
        pass  # the working folder does not exist any more, or is not readable
    return None


def _convert_path(value: Any, info: ArgumentInfo | OptionInfo | None, below: Path) -> Any:
    """Convert a value that is a path relative to the folder `below` to a path relative to the project's folder."""
    if info is None or not info.metavar or (info.envvar and value == os.environ.get(str(info.envvar))):
        return value
    if isinstance(value, list):
        return [_convert_path(one, info, below) for one in value]
    if not isinstance(value, str | Path) or str(value) == "-" or "://" in str(value):
        return value
    path = os.path.normpath(below / value)
    is_path = info.metavar in _PATHS or (info.metavar in _PERHAPS_PATHS and os.path.lexists(value))
    return type(value)(path) if is_path else value


app = typer.Typer(
    name="passgate",
    cls=_Commands,
    epilog="Exit codes: 0 PASS, 1 FAIL, 2 bad usage or input, 3 INCONCLUSIVE, 70 a bug of passgate, 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"passgate {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def passgate(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, metavar="", help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A merge gate for AI agents. It runs every task k times and gives one verdict and one exit code."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
