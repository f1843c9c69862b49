"""The main job on one page: load, run and grade, record, measure, judge, report.

With an engine the verbs of `passgate.tasks` are its steps, without one they are the plain functions that they are.
"""

from functools import partial

from passgate.flows.process.interrupts import cancel_on_sigterm
from passgate.tasks.agents.llm_judge import judge_name
from passgate.tasks.execution.coordinator import OpenExecutor
from passgate.tasks.execution.engine import Engine, as_work
from passgate.tasks.execution.holding import holding
from passgate.tasks.execution.worker import in_process
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.judge import judge
from passgate.tasks.load import load
from passgate.tasks.measure import measure
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import RunView, Verdict
from passgate.tasks.planning.baseline import baseline_pool, read_rows, recent_runs, reusable_trials
from passgate.tasks.record import record
from passgate.tasks.report import report
from passgate.tasks.run import run as run_trials


async def evaluate(
    gate: GateName,
    request: RunRequest,
    engine: Engine,
    loaded: Plan | None = None,
    run_id: str = "",
    *,
    open_executor: OpenExecutor | None = None,
) -> Verdict:
    """Run a gate from files to verdict. It is on disk before the engine shows it, and is never read from there.

    `loaded` is the plan if it is loaded already, `run_id` that of a new run, `open_executor` says where trials run.
    """
    with cancel_on_sigterm():
        plan = await engine.step("load", as_work(load, gate, request, run_id)) if loaded is None else loaded
        store, run = RunStore.of(plan.run_id), partial(run_trials, open_executor or partial(in_process, engine))
        async with holding(store) as still_held, engine.progress(plan):
            earlier = await engine.step("baseline", as_work(read_rows, plan))
            if plan.gate_policy.reuse is not None:
                await store.take_over(await engine.step("reuse", as_work(reusable_trials, plan)))
            pool = baseline_pool(plan, earlier)
            trials = await run(plan, pool)
            await still_held()
            await engine.step("record", as_work(record, plan, store.finished_trials(trials)))
            baseline = pool(trials)
            measurement = await engine.step("measure", as_work(measure, plan, trials, baseline))
            name, drift = judge_name(plan.policy.judge), drift_findings(plan)
            judging = as_work(judge, plan, trials, measurement, baseline, name, drift)
            verdict = await engine.step("judge", judging)
            if plan.base.edits:
                # Imported here, because most changes edit nothing that judges them.
                from passgate.flows.integrity import judge_integrity

                verdict = await judge_integrity(plan, trials, verdict, run, earlier)
            recent = recent_runs(earlier, plan.run_id)
            view = RunView(verdict, tuple(trials), store.read_transcript, baseline.tasks, recent, plan)
            await still_held()
            await engine.step("report", as_work(report, view, store, run_masker(plan)))
        await engine.publish(verdict)
    return verdict


def drift_findings(plan: Plan) -> tuple[str, ...]:
    """Return the drift that the run of a plan shows, if the policy of its gate asks for it."""
    alarm = plan.gate_policy.alarm
    if alarm is False or not alarm.drift:
        return ()
    # Imported here, because most gates need no trend.
    from passgate.tasks.commands.trend import drift

    return drift(plan)
