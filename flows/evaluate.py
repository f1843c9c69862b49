"""The main job on one page: load, run and grade, record, measure and judge, report.

The verbs of `passgate.tasks` become Prefect tasks here, and only here and in the gates' flows is Prefect known.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from prefect import task
from prefect.artifacts import acreate_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Crashed, Failed

from passgate.flows.integrity import with_change
from passgate.flows.interrupts import cancelled_by_sigterm
from passgate.flows.trials import run_trials, take_over
from passgate.tasks.agents.judge import judge_name
from passgate.tasks.errors import first_known
from passgate.tasks.history.dataset import History
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.judge import judge, pool_of, read_rows
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.prepare import prepare
from passgate.tasks.record import history_location, masker_of, record
from passgate.tasks.report import report
from passgate.tasks.reuse import reusable

# The journal resumes runs, so Prefect stores and caches nothing.
_load = task(name="load", cache_policy=NO_CACHE)(prepare)
_reuse = task(name="reuse", cache_policy=NO_CACHE)(reusable)
_record = task(name="record", cache_policy=NO_CACHE)(record)
_baseline = task(name="baseline", cache_policy=NO_CACHE)(read_rows)
_judge = task(name="judge", cache_policy=NO_CACHE)(judge)
_report = task(name="report", cache_policy=NO_CACHE)(report)


def judge_run(plan: Plan, finished: Sequence[FinishedTrial], baseline: Baseline) -> Verdict:
    """Store the trials and judge them by the plan's own policy."""
    _record(plan, finished)
    trials = [one.trial for one in finished]
    return _judge(plan, plan.policy, trials, baseline, judge_name(plan.policy.judge))


async def _as_judged(verdict: Verdict) -> Verdict:
    """A verdict that nobody has to wait for."""
    return verdict


async def evaluate(
    gate: GateName, request: RunRequest, settle: Callable[[Verdict], Awaitable[Verdict]] = _as_judged
) -> State[Any]:
    """Run a gate from files to verdict, and to what `settle` makes of it. The verdict is on disk before the flow ends,
    and never read from Prefect.
    """
    try:
        with cancelled_by_sigterm():
            settled = await _settled(gate, request, settle)
    except Exception as error:  # noqa: BLE001 - whoever called gets the exception with the state
        return _not_judged(error)
    return _judged(settled)


async def _settled(gate: GateName, request: RunRequest, settle: Callable[[Verdict], Awaitable[Verdict]]) -> Verdict:
    plan = _load(gate, request)
    rows = _baseline(plan)
    if plan.gate_policy.reuse is not None:
        await take_over(RunFolder(plan.run_id), plan, _reuse(plan, History(history_location(plan))))
    pool = pool_of(plan, rows)
    finished = await run_trials(plan, pool)
    baseline = pool([one.trial for one in finished])
    verdict = await with_change(plan, finished, judge_run(plan, finished, baseline), run_trials)
    _report(verdict, RunFolder(plan.run_id), masker_of(plan))
    await _publish(verdict)
    settled = await settle(verdict)
    if settled != verdict:
        await _publish(settled)
    return settled


def _judged(verdict: Verdict) -> State[Any]:
    """The state of a flow that has ended with a verdict."""
    match verdict.decision:
        case Decision.PASS:
            return Completed(name="GatePassed", message=verdict.headline)
        case Decision.FAIL:
            return Failed(name="GateFailed", message=verdict.headline)
        case Decision.INCONCLUSIVE if verdict.awaiting_sign_off:
            return Failed(name="AwaitingSignOff", message=verdict.headline)
        case Decision.INCONCLUSIVE:
            return Failed(name="GateInconclusive", message=verdict.headline)


def _not_judged(error: Exception) -> State[Any]:
    """The state of a flow without a verdict: `GateNotRun` where the input or the machine is to blame, else a crash."""
    known = first_known(error)
    if known is not None:
        return Failed(name="GateNotRun", message=str(known), data=known)
    return Crashed(name="GateCrashed", message=f"{type(error).__name__}: {error}", data=error)


async def _publish(verdict: Verdict) -> None:
    """The gate's table as a Prefect artifact."""
    rows = [
        {
            "suite": str(suite.suite),
            "tasks": f"{suite.tasks_passed}/{suite.tasks}",
            "trials": f"{suite.trials_passed}/{suite.trials_measured}",
            "errors": suite.trials_error,
            "metric": suite.metric,
            "value": suite.value,
            "interval": [suite.interval.low, suite.interval.high] if suite.interval else None,
            "cost": suite.cost,
        }
        for suite in verdict.measurement.suites
    ]
    key = f"gate-{verdict.gate}".replace("_", "-")
    await acreate_table_artifact(table=rows, key=key, description=verdict.headline)
