"""Which tasks their baseline guards, and what pass rate each is held against."""

from collections.abc import Iterable

from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, Young
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import BY_TRIALS, Suite
from passgate.tasks.stats.expected_rates import (
    Counts,
    Drift,
    OtherTasks,
    drift_between_runs,
    newest_if_worse,
    other_tasks,
)
from passgate.tasks.stats.regression import ENOUGH, Before


def is_weighed(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Return whether a failure of the task is held against its baseline by evidence rather than strictly."""
    return policy.regression.mode == "evidence" and task.suite in policy.regression.suites and task.metric in BY_TRIALS


def blocks_on_falls(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Return whether the gate blocks on a task of this suite that has fallen."""
    return (Rule.GOLDEN_REGRESSION if task.suite is Suite.GOLDEN else Rule.TASK_FAILED) in policy.blocks_on


def is_guarded(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> bool:
    """Return whether the task blocks when it falls below its own rate, admitted or not. A young baseline that is
    reported guards too: only what is shown to have fallen blocks then.
    """
    counts = guarding_counts(baseline.of(task.name), baseline.young)
    return is_weighed(policy, task) and counts is not None and (counts.n >= ENOUGH or baseline.young == "report")


def is_young(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> bool:
    """Return whether the policy only reports a failure of the task that is not shown to be a fall, because its baseline
    has too few trials. Another model on a known task is a change of the agent, and no young baseline.
    """
    before = baseline.of(task.name)
    is_new = before.n < ENOUGH and (before.n > 0 or not before.newest)
    return baseline.young == "report" and is_weighed(policy, task) and is_new


def guarding_counts(before: BaselineTask, young: Young) -> Counts | None:
    """Return the trials of the baseline that a task is held against; `None` where it cannot fall, or too little is
    known.

    From `ENOUGH` trials on they are known well enough, whatever the rate is. With fewer the task must have been green
    where it has to clear itself. Of a task whose newest runs are worse than the others only these count: no change is
    to blame for what it was.
    """
    if before.state in {BaselineState.NEW, BaselineState.NONE}:
        return None
    newest = newest_if_worse([Counts(passed, n) for passed, n in before.counts.values()])
    counts = newest or Counts(before.passed, before.n)
    is_known = counts.n >= ENOUGH or (not newest and (young == "report" or before.state is BaselineState.GREEN))
    return counts if counts.passed and is_known else None


def held_against(policy: GatePolicy, tasks: Iterable[TaskMeasurement], baseline: Baseline) -> dict[str, Before]:
    """Return what each task of a run that its baseline guards is held against, by its `suite/task_id`."""
    weighed = [
        (task, guarding_counts(baseline.of(task.name), baseline.young)) for task in tasks if is_weighed(policy, task)
    ]
    guarded = [(task, counts) for task, counts in weighed if counts is not None]
    others, drift = suites_of(guarded), run_drift(baseline.of(task.name) for task, _ in guarded)
    must_clear = baseline.young == "block"
    return {
        task.name: Before(*others[task.suite].pool(counts), drift.deviation, must_clear) for task, counts in guarded
    }


def drift_in_force(policy: GatePolicy, tasks: Iterable[TaskMeasurement], baseline: Baseline) -> Drift:
    """By how much the whole runs of the baseline differ that the tasks are held against."""
    entries = [baseline.of(task.name) for task in tasks if is_weighed(policy, task)]
    return run_drift(entry for entry in entries if guarding_counts(entry, baseline.young) is not None)


def suites_of(guarded: Iterable[tuple[TaskMeasurement, Counts]]) -> dict[Suite, OtherTasks]:
    """Return what the guarded tasks of each suite say of each other."""
    by_suite: dict[Suite, list[Counts]] = {}
    for task, counts in guarded:
        by_suite.setdefault(task.suite, []).append(counts)
    return {suite: other_tasks(counts) for suite, counts in by_suite.items()}


def run_drift(entries: Iterable[BaselineTask]) -> Drift:
    """By how much the pass rates of whole runs of a baseline differ."""
    return drift_between_runs({run: Counts(*pair) for run, pair in entry.counts.items()} for entry in entries)
