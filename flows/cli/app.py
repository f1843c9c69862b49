"""The commands of `passgate`. Each command has its own file."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Final, ParamSpec

import typer

from passgate import __version__
from passgate.flows.cli import options
from passgate.flows.cli.baseline import baseline
from passgate.flows.cli.burn_in import burn_in
from passgate.flows.cli.check_graders import check_graders
from passgate.flows.cli.comment import comment
from passgate.flows.cli.convert import convert
from passgate.flows.cli.doctor import doctor
from passgate.flows.cli.forecast import forecast
from passgate.flows.cli.history import history
from passgate.flows.cli.init import init
from passgate.flows.cli.judge import judge
from passgate.flows.cli.project_folder import in_project
from passgate.flows.cli.report import report
from passgate.flows.cli.run import run
from passgate.flows.cli.schema import schema
from passgate.flows.cli.show import show
from passgate.flows.cli.sign_off import sign_off
from passgate.flows.cli.traces import traces
from passgate.flows.cli.trend import trend
from passgate.flows.cli.try_task import try_task
from passgate.flows.cli.validate import validate
from passgate.flows.cli.view import view

P = ParamSpec("P")


class VerdictCode(int):
    """The exit code of a verdict. It stays the same when passgate cannot print the verdict."""


def _judging(command: Callable[P, int]) -> Callable[P, VerdictCode]:
    @wraps(command)
    def judging(*arguments: P.args, **given: P.kwargs) -> VerdictCode:
        return VerdictCode(command(*arguments, **given))

    return judging


app = typer.Typer(
    name="passgate",
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


_RUN, _WRITE, _LOOK, _TRUST, _SET_UP = "Run", "Write tasks", "Look at results", "Trust a gate", "Set up"
_PANELS: Final[Mapping[Callable[..., int], str]] = {
    run: _RUN, try_task: _RUN, sign_off: _RUN, judge: _RUN,
    validate: _WRITE, show: _WRITE, check_graders: _WRITE, convert: _WRITE, schema: _WRITE,
    report: _LOOK, view: _LOOK, trend: _LOOK, comment: _LOOK, traces: _LOOK,
    forecast: _TRUST, burn_in: _TRUST,
    init: _SET_UP, doctor: _SET_UP,
}  # fmt: skip
_NAMES: Final[Mapping[Callable[..., int], str]] = {try_task: "try"}
_OF_VERDICTS: Final[tuple[Callable[..., int], ...]] = (run, judge, sign_off)

for command, panel in _PANELS.items():
    options.with_plain_metavars(command)
    of_project = command if command is init else in_project(command)
    called = _judging(of_project) if command in _OF_VERDICTS else of_project
    app.command(_NAMES.get(command, command.__name__.replace("_", "-")), rich_help_panel=panel)(called)
for group in (baseline, history):
    for of_group in group.registered_commands:
        if of_group.callback is not None:
            options.with_plain_metavars(of_group.callback)
            of_group.callback = in_project(of_group.callback)
app.add_typer(baseline, name="baseline", rich_help_panel=_TRUST)
app.add_typer(history, name="history", rich_help_panel=_LOOK)
