"""`passgate baseline`: show, pin or unpin what runs are compared with."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options

LONGEST_REASON = 1000

baseline = typer.Typer(help="Show the baseline of a run, pin it, or remove the pin.")


@baseline.callback(invoke_without_command=True)
def _baseline(context: typer.Context) -> None:
    """Show the baseline of a run, pin it, or remove the pin."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@baseline.command()
def show(
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    base: options.BaseOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Show the state of every task at the baseline and the runs that form the baseline."""
    from passgate import __version__
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.commands.baseline import plan_of_every_task, pool
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.planning.named_agents import find_agent
    from passgate.tasks.reports.baseline import baseline_as_json, baseline_table

    request = RunRequest(agent=agent, suites=suites, gates=gates, history=history, base=base)
    spec = find_agent(agent, Path(gates), Path(suites))
    plan = plan_of_every_task(request, spec, folder=Path.cwd(), version=__version__)
    pooled = pool(plan)
    if as_json or not quiet:
        say(baseline_as_json(plan, pooled) if as_json else baseline_table(plan, pooled, width=width(), color=color()))
    return 0


@baseline.command()
def pin(
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why you pin it.")],
    commit: Annotated[
        str | None, typer.Option(metavar="REV", help="Use the runs of this commit and its first parents.")
    ] = None,
    runs: Annotated[
        list[str] | None,
        typer.Option(
            "--run", metavar="ID", help="Use this run, by id or folder, or all whose id begins so. Repeatable."
        ),
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who pins it. Default: your name in git.")] = None,
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Pin the baseline to a commit or to runs. Write the pin to baseline.yaml beside the gates file."""
    from passgate.flows.cli.output import answer
    from passgate.tasks.commands.baseline import pin as write
    from passgate.tasks.commands.baseline import pinned_commit, pinned_runs
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.formats.project_files import PINS_FILE
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.integrity.git import user_name
    from passgate.tasks.integrity.tracked_folders import open_history
    from passgate.tasks.model.baseline import Pins
    from passgate.tasks.reports.baseline import pin_text
    from passgate.tasks.reports.escape import printable
    from passgate.tasks.reports.messages import warn

    if (commit is None) is (not runs):
        raise UsageError("give --commit or --run, and not both")
    if not reason.strip():
        raise UsageError("--reason must not be blank: others need to know why the pin exists")
    location = history or policy_or_default(Path(gates)).history
    pins = Pins(
        commit=None if commit is None else pinned_commit(Path.cwd(), commit),
        runs=pinned_runs(open_history(location, Checkout(Path.cwd())), runs) if runs else (),
        reason=printable(reason, LONGEST_REASON),
        by=printable(by or user_name(Path.cwd()), LONGEST_REASON) or "unknown",
    )
    before = write(Path(gates), pins)
    lines = [f"pinned  {pin_text(pins)}", *([f"before  {pin_text(before)}"] if before is not None else [])]
    answer(lambda: "\n".join(lines), lambda: {"pinned": pins, "before": before}, as_json=as_json, quiet=quiet)
    if not quiet:
        warn(f"commit {Path(gates).parent / PINS_FILE}, so that it holds for everyone")
    return 0


@baseline.command()
def clear(
    gates: options.GatesOption = "gates.yaml",
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Remove the pin. The baseline is again the merge base with the baseline branch."""
    from passgate.flows.cli.output import answer
    from passgate.tasks.commands.baseline import clear as remove
    from passgate.tasks.reports.baseline import pin_text

    before = remove(Path(gates))
    answer(
        lambda: "nothing is pinned" if before is None else f"cleared  {pin_text(before)}",
        lambda: {"cleared": before},
        as_json=as_json,
        quiet=quiet,
    )
    return 0
