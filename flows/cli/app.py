"""The commands of `passgate`. Each command has its own file."""

from collections.abc import Callable
from functools import wraps
from typing import Annotated, ParamSpec

import typer

from passgate import __version__
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
    def judging(*arguments: P.args, **options: P.kwargs) -> VerdictCode:
        return VerdictCode(command(*arguments, **options))

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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A merge gate for AI agents. It runs every task k times and gives one verdict and one exit code."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(_judging(run))
app.command("try")(try_task)
app.command()(validate)
app.command()(show)
app.command()(check_graders)
app.command()(convert)
app.command()(_judging(judge))
app.command()(report)
app.command()(view)
app.command("sign-off")(_judging(sign_off))
app.command()(comment)
app.command()(traces)
app.command()(trend)
app.command()(forecast)
app.command("burn-in")(burn_in)
app.add_typer(baseline, name="baseline")
app.add_typer(history, name="history")
app.command()(schema)
app.command()(doctor)
for of_project in (*app.registered_commands, *baseline.registered_commands, *history.registered_commands):
    of_project.callback = in_project(of_project.callback) if of_project.callback else None
app.command()(init)
