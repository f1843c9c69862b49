"""Commands that say how far a gate can be trusted: `passgate forecast`, `burn-in` and `baseline`."""

import time
from pathlib import Path
from typing import Annotated, Final

import typer

from passgate.flows.cli import options
from passgate.flows.cli.history import named_history
from passgate.flows.cli.output import answer, color, output_form, width, write_output
from passgate.flows.process.interrupts import run_until_interrupted
from passgate.tasks.errors import ExitCode, UsageError
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import warn, write_line

SECONDS_BETWEEN_LINES = 5.0
_LONGEST_REASON: Final = 1000


def forecast(
    gate: options.GateArgument,
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    base: options.BaseOption = None,
    assume: Annotated[
        float | None, typer.Option(metavar="RATE", min=0, max=1, help="Assume this pass rate for every task: 0.99.")
    ] = None,
    rates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json", help='Pass rates by task: {"golden/a": 0.98}, or a list in the order of the tasks.'
        ),
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=100, max=1_000_000, help="Number of simulated runs.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the simulation.")] = 0,
    plot: options.PlotOption = None,
) -> None:
    """Predict the false-failure rate, the detection rate and the cost of a gate. Suggest a better policy."""
    from passgate.tasks.commands.forecast import forecast as make_forecast
    from passgate.tasks.commands.forecast import forecast_basis, forecast_plan
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.reports.forecast import forecast_plot, forecast_text

    if assume is not None and rates is not None:
        raise UsageError("give --assume or --rates, not both")
    if plot is not None and plot.suffix.lower() != ".svg":
        raise UsageError(f"--plot {plot}: the picture is an SVG: give FILE.svg")
    plan = forecast_plan(gate, RunRequest(agent=agent, suites=suites, gates=gates, history=history, base=base))
    found = make_forecast(plan, forecast_basis(plan, assume, rates), gates=runs, seed=seed)
    answer(lambda: forecast_text(found, width=width(), color=color()), found)
    if plot is not None:
        write_output(forecast_plot(found), plot)
        # On standard error: standard output may be JSON.
        if not output_form.get().quiet:
            warn(f"plot  {plot}")


def burn_in(
    gate: options.GateArgument,
    runs: Annotated[int, typer.Option(metavar="N", min=2, max=10_000, help="Number of runs of the gate.")] = 50,
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    max_cost: options.MaxCostOption = None,
    jobs: options.JobsOption = None,
) -> int:
    """Run a gate many times with the same agent. Measure the false-failure rate and compare it with the forecast.

    The history stays unchanged. If it has no baseline, up to half of the runs become the baseline.
    """
    from passgate.tasks.commands.burn_in import Finished, burn_in_folder, summarise, why_nothing
    from passgate.tasks.commands.burn_in import burn_in as run_repeatedly
    from passgate.tasks.commands.forecast import forecast_plan
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.planning.baseline import pool_of_history
    from passgate.tasks.planning.requirements import refuse_unreachable, refuse_unrunnable
    from passgate.tasks.reports.forecast import burn_in_text

    request = RunRequest(agent=agent, suites=suites, gates=gates, history=history, max_cost=max_cost, jobs=jobs)
    plan = forecast_plan(gate, request)
    refuse_unrunnable(plan, Checkout(Path.cwd()))
    refuse_unreachable(plan.agent)
    if plan.agent.concurrency_limit is not None:
        warn(f"the trials of a burn-in take no slots of the concurrency limit {plan.agent.concurrency_limit}")
    finished, pool, interrupted = Finished(), pool_of_history(plan), False
    next_line = time.monotonic() + SECONDS_BETWEEN_LINES

    def show() -> None:
        nonlocal next_line
        if not output_form.get().quiet and time.monotonic() >= next_line:
            next_line = time.monotonic() + SECONDS_BETWEEN_LINES
            spent = f", ${finished.spent:.2f}" if finished.spent else ""
            write_line(f"{len(finished.all)}/{runs} runs{spent}")

    try:
        run_until_interrupted(run_repeatedly(plan, runs, finished, pool, show))
    except KeyboardInterrupt:
        interrupted = True
    why_ended = ""
    if interrupted:
        why_ended = "interrupted: the finished runs were judged"
    elif len(finished.all) < runs and max_cost is not None:
        why_ended = f"the cost cap of ${max_cost:g} is spent"
    result = summarise(plan, finished, runs, why_ended)
    if result is None:
        why = why_nothing(plan, finished, runs, interrupted=interrupted)
        warn(f"{why}; the trials are in {burn_in_folder(plan)}" if finished.begun else why)
        return ExitCode.INTERRUPTED if interrupted else ExitCode.INCONCLUSIVE
    answer(lambda: burn_in_text(result, width=width(), color=color()), result)
    # The command measures, so its exit code is 0 whatever the verdicts of the runs.
    return ExitCode.INTERRUPTED if interrupted else ExitCode.PASS


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
) -> None:
    """Show the state of every task at the baseline and the runs that form the baseline."""
    from passgate.tasks.commands.baseline import plan_of_every_task, pool
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.reports.baseline import baseline_document, baseline_table

    plan = plan_of_every_task(RunRequest(agent=agent, suites=suites, gates=gates, history=history, base=base))
    pooled = pool(plan)
    answer(lambda: baseline_table(plan, pooled, width=width(), color=color()), baseline_document(plan, pooled))


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
) -> None:
    """Pin the baseline to a commit or to runs. Write the pin to baseline.yaml beside the gates file."""
    from passgate.tasks.commands.baseline import pin as write
    from passgate.tasks.commands.baseline import pinned_commit, pinned_runs
    from passgate.tasks.formats.project_files import PINS_FILE
    from passgate.tasks.integrity.git import user_name
    from passgate.tasks.model.base import is_blank
    from passgate.tasks.model.baseline import Pins
    from passgate.tasks.reports.baseline import pin_text

    if (commit is None) is (not runs):
        raise UsageError("give --commit or --run, and not both")
    if is_blank(reason):
        raise UsageError("--reason must not be blank: others need to know why the pin exists")
    name = printable(by or user_name(Path.cwd()), _LONGEST_REASON)
    pins = Pins(
        commit=None if commit is None else pinned_commit(Path.cwd(), commit),
        runs=pinned_runs(named_history(gates, history), runs) if runs else (),
        reason=printable(reason, _LONGEST_REASON),
        by="unknown" if is_blank(name) else name,
    )
    before = write(Path(gates), pins)
    lines = [f"pinned  {pin_text(pins)}", *([f"before  {pin_text(before)}"] if before is not None else [])]
    answer(lambda: "\n".join(lines), {"pinned": pins, "before": before})
    if not output_form.get().quiet:
        warn(f"commit {Path(gates).parent / PINS_FILE}, so that it holds for everyone")


@baseline.command()
def clear(gates: options.GatesOption = "gates.yaml") -> None:
    """Remove the pin. The baseline is again the merge base with the baseline branch."""
    from passgate.tasks.commands.baseline import clear as remove
    from passgate.tasks.reports.baseline import pin_text

    before = remove(Path(gates))
    text = "nothing is pinned" if before is None else f"cleared  {pin_text(before)}"
    answer(lambda: text, {"cleared": before})
