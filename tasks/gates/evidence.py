"""A failed task against its pooled baseline: what its trials have shown, and which further ones would show it.

What must hold over the whole gate is shared out: with m tasks that could get confirming trials each is tested at
1 - (1 - alpha)^(1/m) (Sidak 1967), so that an unchanged agent is blocked by any of them with a chance of at most alpha.
Holm's later steps would only name more tasks of a gate that is FAIL already.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import Measurement, TaskMeasurement, TaskState
from passgate.tasks.model.policy import GatePolicy, Regression, Rule
from passgate.tasks.model.task import BY_TRIALS, Metric, Suite
from passgate.tasks.model.verdict import Confirmation, Finding
from passgate.tasks.stats.regression import RegressionTest, regression_test

MOST_ERRORS = 5
"""So many confirming trials of one task may end in an error; then it is not tried on."""


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
        and task.metric in BY_TRIALS
        and task.sequential is None
    )


def confirmations(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str] = ()
) -> tuple[Confirmation, ...]:
    """What the trials of every failed task have shown that was green at the baseline and is weighed. None of tasks
    whose failure does not block or is settled otherwise: `settled` names those that are exempt.
    """
    tested = _tested(policy, measurement, baseline, settled)
    return tuple(_confirmation(task, test) for task, test in tested)


def wanted_trials(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str] = ()
) -> tuple[Wanted, ...]:
    """The confirming trials to be run next: as many of each task as would decide it if they went on as they have begun.

    Of the same tasks as `confirmations`.
    """
    tested = _tested(policy, measurement, baseline, settled)
    return tuple(wanted for task, test in tested if (wanted := _wanted(task, test)) is not None)


class _Test(NamedTuple):
    before: BaselineTask
    alpha: float
    most: int

    def of(self, task: TaskMeasurement) -> RegressionTest:
        passed, n = self.before.passed, self.before.n
        return regression_test(passed, n, k=task.k, red_from=least_red_failures(task), most=self.most, alpha=self.alpha)


def _tested(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> Iterator[tuple[TaskMeasurement, _Test]]:
    """The tasks whose failure would block, each with its test. Alpha is shared out among all tasks that could get
    confirming trials, whether or not they have failed.
    """
    weighed = {
        task.name: before
        for task in measurement.tasks
        if is_weighed(policy, task) and (before := baseline.of(task.name)).state is BaselineState.GREEN
    }
    alpha = alpha_of_one(policy.regression, len(weighed))
    for task in measurement.tasks:
        if task.name in weighed and task.name not in settled and _is_open(policy, task):
            yield task, _Test(weighed[task.name], alpha, policy.regression.max_trials)


def least_red_failures(task: TaskMeasurement) -> int:
    """The number of failures among its first k trials from which a task is red."""
    return 1 if task.metric is Metric.PASS_HAT_K else task.k


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


def _confirmation(task: TaskMeasurement, test: _Test) -> Confirmation:
    outcomes = _outcomes(task)
    course = test.of(task).follow(outcomes) if len(outcomes) >= task.k else None
    n, failed = (course.n, course.failed) if course else (len(outcomes), outcomes.count(False))
    return Confirmation(
        task=task.name,
        finding=course.finding if course else Finding.UNFINISHED,
        passed=n - failed,
        n=n,
        confirming=len(task.confirming),
        baseline_passed=test.before.passed,
        baseline_n=test.before.n,
        alpha=test.alpha,
    )
