"""`passgate burn-in`: measure how a gate behaves with the real agent before you switch it on."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import AgentOption, GateArgument, GatesOption, HistoryOption, SuitesOption
from passgate.tasks.reports.messages import warn, write_line

if TYPE_CHECKING:
    from passgate.tasks.commands.burn_in import Finished
    from passgate.tasks.model.run import Plan
    from passgate.tasks.planning.baseline import Pool

SECONDS_BETWEEN_LINES = 5.0


def burn_in(
    gate: GateArgument,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=2, max=10_000, help="Number of runs of the gate.")
    ] = 50,
    agent: AgentOption = "oracle",
    suites: SuitesOption = "suites",
    gates: GatesOption = "gates.yaml",
    history: HistoryOption = None,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", metavar="USD", min=0, help="Cost cap of all runs together.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Trials at the same time, over all runs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON.")] = False,
) -> int:
    """Run a gate many times with the same agent. Measure the false-failure rate and compare it with the forecast.

    The history stays unchanged. If it has no baseline, up to half of the runs become the baseline.
    """
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.commands.burn_in import Finished, folder_of, summarise, why_nothing
    from passgate.tasks.commands.forecast import plan_of_forecast
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.integrity.git import Checkout
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.planning.baseline import pool_of_history
    from passgate.tasks.planning.requirements import refuse_unreachable, refuse_unrunnable
    from passgate.tasks.reports.forecast import burn_in_text

    request = RunRequest(agent=agent, suites=suites, gates=gates, history=history, max_cost=max_cost, jobs=jobs)
    plan = plan_of_forecast(gate, request)
    refuse_unrunnable(plan, Checkout(Path.cwd()))
    refuse_unreachable(plan.agent)
    finished = Finished()
    interrupted = _interrupted(plan, runs, finished, pool_of_history(plan))
    result = summarise(plan, finished, runs, _why_ended(plan, finished, runs, interrupted=interrupted))
    if result is None:
        why = why_nothing(plan, finished, runs, interrupted=interrupted)
        warn(f"{why}; the trials are in {folder_of(plan)}" if finished.begun else why)
        return ExitCode.INTERRUPTED if interrupted else ExitCode.INCONCLUSIVE
    say(result.model_dump_json(indent=2) if as_json else burn_in_text(result, width=width(), color=color()))
    return ExitCode.INTERRUPTED if interrupted else ExitCode.PASS


def _interrupted(plan: "Plan", runs: int, finished: "Finished", pool: "Pool | None") -> bool:
    """Run the gates. Return whether Ctrl-C or SIGTERM interrupted them."""
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.commands.burn_in import burn_in as run_repeatedly

    try:
        until_ended(run_repeatedly(plan, runs, finished, pool, _progress(runs, finished)))
    except KeyboardInterrupt:
        return True
    return False


def _progress(runs: int, finished: "Finished") -> Callable[[], None]:
    """Return a function to call after each run. It prints a progress line on standard error every few seconds."""
    next_line = time.monotonic() + SECONDS_BETWEEN_LINES

    def tell() -> None:
        nonlocal next_line
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + SECONDS_BETWEEN_LINES
            spent = f", ${finished.spent:.2f}" if finished.spent else ""
            write_line(f"{len(finished.all)}/{runs} runs{spent}")

    return tell


def _why_ended(plan: "Plan", finished: "Finished", runs: int, *, interrupted: bool) -> str:
    if interrupted:
        return "interrupted: what had finished was judged"
    if len(finished.all) < runs and plan.request.max_cost is not None:
        return f"the cost cap of ${plan.request.max_cost:g} is spent"
    return ""
