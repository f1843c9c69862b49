"""The main job on one page: load, run and grade, record, measure and judge, report.

The verbs of `passgate.tasks` become Prefect tasks here, and only here and in the gates' flows is Prefect known.
"""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from prefect import task
from prefect.artifacts import acreate_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Crashed, Failed

from passgate.flows.cli.terminal import warn
from passgate.tasks.agents.judge import judge_name
from passgate.tasks.budgets.purse import Purse
from passgate.tasks.budgets.slots import Slots, TrialKey
from passgate.tasks.errors import PassgateError
from passgate.tasks.history.dataset import History
from passgate.tasks.history.journal import Journal, read_journal
from passgate.tasks.history.run_folder import STATE_FOLDER, RunFolder
from passgate.tasks.judge import judge, read_baseline
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import EvalTask, GateName
from passgate.tasks.model.trial import MEASURED, FinishedTrial
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.prepare import prepare
from passgate.tasks.record import history_location, masker_of, record
from passgate.tasks.report import report
from passgate.tasks.run import batches, open_bench, run_batch, urgent_first

# The journal resumes runs, so Prefect stores and caches nothing.
_load = task(name="load", cache_policy=NO_CACHE)(prepare)
_run_batch = task(name="run", cache_policy=NO_CACHE)(run_batch)
_record = task(name="record", cache_policy=NO_CACHE)(record)
_baseline = task(name="baseline", cache_policy=NO_CACHE)(read_baseline)
_judge = task(name="judge", cache_policy=NO_CACHE)(judge)
_report = task(name="report", cache_policy=NO_CACHE)(report)


async def run_trials(plan: Plan) -> list[FinishedTrial]:
    """Run every trial of a plan that its journal does not hold yet; gives all of them."""
    journal_file = RunFolder(plan.run_id).journal
    with Journal(journal_file, masker_of(plan)) as journal:
        journal.drop_torn_line()
        before = [finished.trial for finished in read_journal(journal_file)[0]]
        done = {(trial.task_id, trial.trial) for trial in before if trial.status in MEASURED}
        tasks = _in_order(plan)
        slots = Slots(plan.request.jobs or plan.policy.concurrency.trials, _order(plan, tasks, done))
        async with (
            open_bench(
                plan.agent,
                Path(plan.suites_folder),
                plan.policy,
                prices=plan.prices,
                purse=Purse(plan.request.max_cost, spent=sum(trial.cost for trial in before)),
                needs_price=plan.needs_price,
                hidden=[STATE_FOLDER.absolute()],
            ) as bench,
            asyncio.TaskGroup() as group,
        ):
            for batch in batches(tasks):
                step = _run_batch.with_options(task_run_name=_as_run_name(batch.name), tags=[batch.suite])
                group.create_task(step(batch, bench, journal, slots, done))
        for trouble in bench.workbench.troubles:
            warn(f"{trouble}. The verdict does not depend on it")
    return read_journal(journal_file)[0]


def _in_order(plan: Plan) -> Sequence[EvalTask]:
    """The tasks as they are run. Where the money may not be enough for all, what it buys first counts."""
    if plan.request.max_cost is None:
        return plan.tasks
    return urgent_first(plan.tasks, read_baseline(plan, History(history_location(plan))))


def _order(plan: Plan, tasks: Sequence[EvalTask], done: Collection[TrialKey]) -> list[TrialKey]:
    """The order in which trials have to begin; none where it does not matter."""
    if plan.request.max_cost is None:
        return []
    return [key for task in tasks for trial in range(task.k) if (key := (task.task_id, trial)) not in done]


def judge_run(plan: Plan, finished: Sequence[FinishedTrial]) -> Verdict:
    """Store the trials and judge them by the plan's own policy."""
    history = _record(plan, finished)
    baseline = _baseline(plan, history)
    trials = [one.trial for one in finished]
    return _judge(plan, plan.policy, trials, baseline, judge_name(plan.policy.judge))


async def evaluate(gate: GateName, request: RunRequest) -> State[Any]:
    """Run a gate from files to verdict. The verdict is on disk before the flow ends, and never read from Prefect."""
    try:
        plan = _load(gate, request)
        finished = await run_trials(plan)
        verdict = judge_run(plan, finished)
        _report(verdict, RunFolder(plan.run_id), masker_of(plan))
        await _publish(verdict)
    except Exception as error:  # noqa: BLE001 - whoever called gets the exception with the state
        return _not_judged(error)
    match verdict.decision:
        case Decision.PASS:
            return Completed(name="GatePassed", message=verdict.headline)
        case Decision.FAIL:
            return Failed(name="GateFailed", message=verdict.headline)
        case Decision.INCONCLUSIVE:
            return Failed(name="GateInconclusive", message=verdict.headline)


def _not_judged(error: Exception) -> State[Any]:
    """The state of a flow without a verdict: `GateNotRun` where the input or the machine is to blame, else a crash."""
    known = _first_known(error)
    if known is not None:
        return Failed(name="GateNotRun", message=str(known), data=known)
    return Crashed(name="GateCrashed", message=f"{type(error).__name__}: {error}", data=error)


def _first_known(error: BaseException) -> PassgateError | None:
    """The first error of ours among errors that came together."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_first_known, error.exceptions)), None)
    return error if isinstance(error, PassgateError) else None


def _as_run_name(name: str) -> str:
    """A name that Prefect does not take for a template."""
    return name.replace("{", "(").replace("}", ")")


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
