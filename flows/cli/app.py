"""The commands of `passgate`. Each command has its own file, which is imported when the command is used."""

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, Final, ParamSpec

import typer
from typer.core import TyperGroup

from passgate import __version__
from passgate.flows.cli import options
from passgate.flows.cli.project_folder import in_project

P = ParamSpec("P")


_PANELS: Final[Mapping[str, tuple[str, ...]]] = {
    "Run": ("run", "try", "sign-off", "judge"),
    "Write tasks": ("validate", "show", "check-graders", "convert", "schema"),
    "Look at results": ("report", "view", "trend", "traces", "history"),
    "Trust a gate": ("forecast", "burn-in", "baseline"),
    "Set up": ("init", "doctor"),
}
_PANEL_OF_COMMAND: Final = {name: panel for panel, names in _PANELS.items() for name in names}
_FILES: Final = {"try": "try_task"}
_GIVES_VERDICT: Final = frozenset({"run", "judge", "sign-off"})


class VerdictCode(int):
    """The exit code of a verdict. It stays the same when passgate cannot print the verdict."""


def _judging(command: Callable[P, int]) -> Callable[P, VerdictCode]:
    @wraps(command)
    def judging(*arguments: P.args, **given: P.kwargs) -> VerdictCode:
        return VerdictCode(command(*arguments, **given))

    return judging


class _Commands(TyperGroup):
    """The group of all commands. It imports a command when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": dict.fromkeys(_PANEL_OF_COMMAND)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name, or `None`."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load_command(cmd_name)
        return self.commands.get(cmd_name)


def _load_command(name: str) -> Any:
    file = _FILES.get(name, name.replace("-", "_"))
    found = getattr(import_module(f"passgate.flows.cli.{file}"), file)
    group = found if isinstance(found, typer.Typer) else typer.Typer(add_completion=False)
    if found is not group:
        group.command(name)(found)
    for info in group.registered_commands:
        if info.callback is not None:
            options.set_plain_metavars(info.callback)
            work = info.callback if name == "init" else in_project(info.callback)
            info.callback = _judging(work) if name in _GIVES_VERDICT else work
    command: Any = typer.main.get_command(group)
    command.name, command.rich_help_panel = name, _PANEL_OF_COMMAND[name]
    return command


app = typer.Typer(
    name="passgate",
    cls=_Commands,
    epilog="Exit codes: 0 PASS, 1 FAIL, 2 bad usage or input, 3 INCONCLUSIVE, 70 a bug of passgate, 130 interrupted.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"passgate {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def passgate(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, metavar="", help="Print the version and exit."),
    ] = False,
) -> None:
    """A merge gate for AI agents. It runs every task k times and gives one verdict and one exit code."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
