"""`passgate burn-in`: measure how a gate behaves with the real agent before you switch it on."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli import options
from passgate.tasks.reports.messages import warn, write_line

if TYPE_CHECKING:
    from passgate.tasks.commands.burn_in import Finished

SECONDS_BETWEEN_LINES = 5.0


def burn_in(
    gate: options.GateArgument,
    runs: Annotated[int, typer.Option(metavar="N", min=2, max=10_000, help="Number of runs of the gate.")] = 50,
    agent: options.AgentOption = "oracle",
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
    history: options.HistoryOption = None,
    max_cost: options.MaxCostOption = None,
    jobs: options.JobsOption = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Run a gate many times with the same agent. Measure the false-failure rate and compare it with the forecast.

    The history stays unchanged. If it has no baseline, up to half of the runs become the baseline.
    """
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import color, width
    from passgate.flows.process.interrupts import until_ended
    from passgate.tasks.commands.burn_in import Finished, folder_of, summarise, why_nothing
    from passgate.tasks.commands.burn_in import burn_in as run_repeatedly
    from passgate.tasks.commands.forecast import plan_of_forecast
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.integrity.checkout import Checkout
    from passgate.tasks.model.run import RunRequest
    from passgate.tasks.planning.baseline import pool_of_history
    from passgate.tasks.planning.requirements import refuse_unreachable, refuse_unrunnable
    from passgate.tasks.reports.forecast import burn_in_text

    request = RunRequest(agent=agent, suites=suites, gates=gates, history=history, max_cost=max_cost, jobs=jobs)
    plan = plan_of_forecast(gate, request)
    refuse_unrunnable(plan, Checkout(Path.cwd()))
    refuse_unreachable(plan.agent)
    if plan.agent.concurrency_limit is not None:
        warn(f"the trials of a burn-in take no slots of the concurrency limit {plan.agent.concurrency_limit}")
    finished, pool, interrupted = Finished(), pool_of_history(plan), False
    try:
        until_ended(run_repeatedly(plan, runs, finished, pool, (lambda: None) if quiet else _progress(runs, finished)))
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
        warn(f"{why}; the trials are in {folder_of(plan)}" if finished.begun else why)
        return ExitCode.INTERRUPTED if interrupted else ExitCode.INCONCLUSIVE
    answer(lambda: burn_in_text(result, width=width(), color=color()), lambda: result, as_json=as_json, quiet=quiet)
    # The command measures, so its exit code is 0 whatever the verdicts of the runs.
    return ExitCode.INTERRUPTED if interrupted else ExitCode.PASS


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
