"""Gate integrity: judge by the other files too: a change's own, or in a local run those of the merge base."""

import posixpath
from collections.abc import Awaitable, Callable, Sequence
from pathlib import PurePosixPath

from passgate.tasks.agents.llm_judge import judge_name
from passgate.tasks.errors import first_known
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.judge import judge
from passgate.tasks.measure import measure
from passgate.tasks.model.run import Edit, Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import MEASURED, Trial
from passgate.tasks.model.verdict import Integrity, OtherVerdict, Verdict
from passgate.tasks.planning.baseline import EarlierRuns, Pool, baseline_pool, read_rows
from passgate.tasks.planning.plan import plan_with_files
from passgate.tasks.reports.messages import warn

RunTrials = Callable[[Plan, Pool], Awaitable[Sequence[Trial]]]
"""Runs what a plan's journal does not contain yet and returns every trial of the plan."""


async def judge_integrity(
    plan: Plan, trials: Sequence[Trial], verdict: Verdict, run: RunTrials, earlier: EarlierRuns
) -> Verdict:
    """Return the verdict with the edits of judging files, and beside it the verdict of the files that did not judge.

    `earlier` are the runs of the plan's baseline. Trials that are the same under both files are run once. The history
    gets nothing of the other files, and their errors change no verdict.
    """
    integrity = Integrity(
        base=plan.base.commit, tip=plan.base.tip, judged_by=plan.base.judged_by, edits=plan.base.edits
    )
    by_base = integrity.by_base
    if not by_base and not plan.base.is_beside:
        return verdict.model_copy(update={"integrity": integrity})
    whose = "this change's own files" if by_base else f"the files of {plan.base.name}"
    try:
        other, notes = await _other_verdict(plan, trials, run, earlier, whose), verdict.notes
    except Exception as error:
        known = first_known(error)
        if known is None:
            raise
        other, notes = None, (*verdict.notes, f"what {whose} say is not known: {known}")
    both = integrity.model_copy(update={"change" if by_base else "at_base": other, "edits": _grading_edits(plan)})
    return verdict.model_copy(update={"integrity": both, "notes": notes})


def _grading_edits(plan: Plan) -> tuple[Edit, ...]:
    """Return the edits, and mark those that grade a task differently, if the change can be read."""
    try:
        change = plan_with_files(RunStore.of(plan.run_id).change)
    except Exception as error:
        if first_known(error) is None:
            raise
        return plan.base.edits

    def grading(task: EvalTask) -> tuple[object, ...]:
        return task.grader_digest, task.k, task.metric, task.budgets

    files = {task.task_id: posixpath.normpath(posixpath.join(plan.revision.folder, task.file)) for task in plan.tasks}
    now = {task.task_id: grading(task) for task in change.tasks}
    others = {files[task.task_id] for task in plan.tasks if now.get(task.task_id) != grading(task)}
    # What several tasks share, such as hidden tests, may be what another grader is made of.
    by_shared = bool(others - {edit.path for edit in plan.base.edits})
    return tuple(
        edit.model_copy(update={"grades": edit.path in others or (by_shared and edit.path not in files.values())})
        for edit in plan.base.edits
    )


async def _other_verdict(
    plan: Plan, trials: Sequence[Trial], run: RunTrials, earlier: EarlierRuns, whose: str
) -> OtherVerdict:
    store = RunStore.of(plan.run_id).change
    change = plan_with_files(store)
    shared = shared_trials(plan, change, trials)
    await store.take_over(RunStore.of(plan.run_id).finished_trials(shared))
    more = sum(task.k for task in change.tasks) - sum(one.trial < one.k for one in shared)
    if more:
        warn(f"judging by {whose} takes up to {more} more trials")
    cap = plan.request.max_cost
    if cap is not None:
        # The change may cost what is left of the cap without the trials that only the other plan has.
        spent, of_both = (sum(one.cost for one in group if not one.reused_from) for group in (trials, shared))
        cap = max(0.0, cap - (spent - of_both))
    request = plan.request.model_copy(update={"max_cost": cap})
    # The agent was chosen with the plan: what the change makes of it is not the gate's agent.
    change = change.model_copy(update={"request": request, "agent": plan.agent})
    if change.history_location != plan.history_location:
        open_history(change.history_location)
        earlier = read_rows(change)
    # This run is in the history by now, and no baseline of its own.
    pool = baseline_pool(change.model_copy(update={"run_id": plan.run_id}), earlier)
    all_trials = await run(change, pool)
    baseline, name = pool(all_trials), judge_name(change.policy.judge)
    own = judge(change, all_trials, measure(change, all_trials, baseline), baseline, name)
    return OtherVerdict(decision=own.decision, headline=own.headline, reasons=own.reasons)


def shared_trials(plan: Plan, change: Plan, trials: Sequence[Trial]) -> list[Trial]:
    """Return the measured trials that both plans have: of equal tasks, graders, limits, prices and judges."""
    if plan.prices != change.prices and plan.agent.calls_models:
        return []
    # Recorded replies of a judge are files, which can be edited.
    recorded = plan.policy.judge.recorded
    folder = f"/{PurePosixPath(recorded)}/" if recorded else ""
    is_edited = bool(folder) and any(folder in f"/{edit.path}" for edit in plan.base.edits)
    if plan.policy.judge != change.policy.judge or is_edited:
        return []

    def circumstances(task: EvalTask) -> tuple[object, ...]:
        return task.suite, task.task_digest, task.grader_digest, task.k, task.metric, task.budgets

    wanted = {task.task_id: circumstances(task) for task in change.tasks}
    same = {task.task_id for task in plan.tasks if wanted.get(task.task_id) == circumstances(task)}
    return [one for one in trials if one.task_id in same and one.status in MEASURED]
