"""A failed task against its pooled baseline: what its trials have shown, and which further ones would show it.

What must hold over the whole gate is shared out: with m tasks that could get confirming trials each is tested at
1 - (1 - alpha)^(1/m) (Sidak 1967), so that an unchanged agent is blocked by any of them with a chance of at most alpha.
Holm's later steps would only name more tasks of a gate that is FAIL already.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import Measurement, TaskMeasurement, TaskState
from passgate.tasks.model.policy import GatePolicy, Regression, Rule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.verdict import Confirmation, Finding
from passgate.tasks.stats.regression import RegressionTest, regression_test

MOST_ERRORS = 5
"""So many confirming trials of one task may end in an error; then it is not tried on."""

_RED_FROM_FIRST = {Metric.PASS_HAT_K: True, Metric.PASS_AT_K: False}


class Wanted(NamedTuple):
    """Confirming trials of one task, to be run at once."""

    task: str
    """`suite/task_id`."""
    trials: int


def is_weighed(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Whether a failure of the task is held against its baseline by evidence rather than strictly."""
    return (
        policy.regression.mode == "evidence"
        and task.suite in policy.regression.suites
        and task.metric in _RED_FROM_FIRST
        and task.sequential is None
    )


def confirmations(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str] = ()
) -> tuple[Confirmation, ...]:
    """What the trials of every failed task have shown that was green at the baseline and is weighed. None of tasks
    whose failure does not block or is settled otherwise: `settled` names those that are exempt.
    """
    tests = _tests(policy, measurement, baseline)
    alpha = alpha_of_one(policy.regression, len(tests))
    return tuple(
        _confirmation(task, baseline.of(task.name), tests[task.name], alpha)
        for task in measurement.tasks
        if task.name in tests and task.name not in settled and _is_open(policy, task)
    )


def wanted_trials(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str] = ()
) -> tuple[Wanted, ...]:
    """The confirming trials to be run next: as many of each task as would decide it if they went on as they have begun.

    Of the same tasks as `confirmations`.
    """
    tests = _tests(policy, measurement, baseline)
    return tuple(
        wanted
        for task in measurement.tasks
        if task.name in tests and task.name not in settled and _is_open(policy, task)
        if (wanted := _wanted(task, tests[task.name])) is not None
    )


class _Test(NamedTuple):
    passed: int
    n: int
    alpha: float
    most: int

    def of(self, task: TaskMeasurement) -> RegressionTest:
        red_from = 1 if _RED_FROM_FIRST[task.metric] else task.k
        return regression_test(self.passed, self.n, k=task.k, red_from=red_from, most=self.most, alpha=self.alpha)


def _tests(policy: GatePolicy, measurement: Measurement, baseline: Baseline) -> Mapping[str, _Test]:
    """The test of every task that could get confirming trials, whether or not it has failed."""
    weighed = {
        task.name: before
        for task in measurement.tasks
        if is_weighed(policy, task) and (before := baseline.of(task.name)).state is BaselineState.GREEN
    }
    alpha = alpha_of_one(policy.regression, len(weighed))
    most = policy.regression.max_trials
    return {name: _Test(before.passed, before.n, alpha, most) for name, before in weighed.items()}


def alpha_of_one(regression: Regression, tasks: int) -> float:
    """The chance of blocking an unchanged task for a regression that is left to each of so many weighed tasks."""
    return float(1 - (1 - regression.alpha) ** (1 / max(tasks, 1)))


def _is_open(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Whether the failure of a task would block and no veto has decided it already."""
    rule = Rule.GOLDEN_REGRESSION if task.suite is Suite.GOLDEN else Rule.TASK_FAILED
    vetoed = any(Rule(violation.rule) in policy.blocks_on for violation in task.violations)
    return task.state is TaskState.FAILED and rule in policy.blocks_on and not vetoed


def _wanted(task: TaskMeasurement, test: _Test) -> Wanted | None:
    if task.confirming_errors >= MOST_ERRORS:
        return None
    outcomes = _outcomes(task)
    if len(outcomes) < task.k:
        return Wanted(task.name, task.k - len(outcomes))
    regression = test.of(task)
    course = regression.follow(outcomes)
    more = regression.next_trials(course.n, course.failed)
    return Wanted(task.name, more) if more else None


def _outcomes(task: TaskMeasurement) -> list[bool]:
    """Whether each measured trial passed: those of the first k in any order, then the confirming ones in theirs."""
    return [False] * task.failed + [True] * task.passed + list(task.confirming)


def _confirmation(task: TaskMeasurement, before: BaselineTask, test: _Test, alpha: float) -> Confirmation:
    outcomes = _outcomes(task)
    course = test.of(task).follow(outcomes) if len(outcomes) >= task.k else None
    n, failed = (course.n, course.failed) if course else (len(outcomes), outcomes.count(False))
    return Confirmation(
        task=task.name,
        finding=course.finding if course else Finding.UNFINISHED,
        passed=n - failed,
        n=n,
        confirming=len(task.confirming),
        baseline_passed=before.passed,
        baseline_n=before.n,
        alpha=alpha,
    )
