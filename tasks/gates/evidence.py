"""A failed task, or a whole suite, against its pooled baseline: what its trials have shown, and which further ones
would show it.

What must hold over the whole gate is shared out: with m tasks that could get confirming trials each is tested at
1 - (1 - alpha)^(1/m) (Sidak 1967), so that an unchanged agent is blocked by any of them with a chance of at most alpha.
Holm's later steps would only name more tasks of a gate that is FAIL already.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.gates.guards import blocks_on_falls, guarding_counts, held_against, is_weighed, run_drift
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement, TaskMeasurement, TaskState
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.verdict import Confirmation, Finding, Reason, SuiteConfirmation
from passgate.tasks.stats import suite_regression
from passgate.tasks.stats.expected_rates import Counts
from passgate.tasks.stats.regression import ENOUGH, Before, RegressionTest, tests_of_tasks

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SLICE, LEAST_SLICE = 4, 4  # A round takes a quarter of what is left where that is not enough for all, and at least four
MOST_ERRORS = 5  # After so many errors in the confirming trials of a task no more of them are run


class Wanted(NamedTuple):
    """Confirming trials of one task, to be run at once."""

    task: str  # `suite/task_id`
    trials: int


def confirmations(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str] = ()
) -> tuple[Confirmation, ...]:
    """Return what the trials have shown of every failed task that its baseline guards. Tasks whose failure does not
    block are left out, and so are those in `settled`, which are exempt.
    """
    found = []
    is_spent = not confirming_left(policy, measurement)
    for task, _, alpha, test in _tested(policy, measurement, baseline, settled):
        before, outcomes = baseline.of(task.name), trial_outcomes(task)
        course = test.follow(outcomes) if test else None
        n, failed = (course.n, course.failed) if course else (len(outcomes), outcomes.count(False))
        finding = course.finding if course else Finding.UNFINISHED
        if finding is Finding.UNFINISHED and course and is_spent and task.confirming_errors < MOST_ERRORS:
            finding = Finding.UNDECIDED
        found.append(
            Confirmation(
                task=task.name,
                finding=finding,
                passed=n - failed,
                n=n,
                confirming=len(task.confirming),
                baseline_passed=before.passed,
                baseline_n=before.n,
                before_edit=before.before_edit,
                alpha=alpha,
            )
        )
    return tuple(found)


def wanted_trials(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str] = ()
) -> tuple[Wanted, ...]:
    """Return the confirming trials to run next, for the same tasks as `confirmations`: as many of each task as decide
    it if their outcomes do not change. If the run has fewer trials left, the tasks come first whose passes are the
    least likely for an unchanged agent.
    """
    wanted: list[tuple[float, Wanted]] = []
    for task, before, _, test in _tested(policy, measurement, baseline, settled):
        if task.confirming_errors >= MOST_ERRORS:
            continue
        outcomes = trial_outcomes(task)
        more = task.k - len(outcomes)
        if test:
            course = test.follow(outcomes)
            more = test.next_trials(course.n, course.failed)
        if more:
            wanted.append((before.chance_of_so_few(outcomes), Wanted(task.name, more)))
    if not wanted:
        return ()
    run = {task.name: len(trial_outcomes(task)) for task in measurement.tasks}
    shares = confirming_shares(
        np.array([confirming_left(policy, measurement)]),
        np.array([[one.trials for _, one in wanted]]),
        np.array([[run[one.task] for _, one in wanted]]),
        np.array([[rarity for rarity, _ in wanted]]),
    )
    return tuple(
        one._replace(trials=trials) for (_, one), trials in zip(wanted, shares[0].tolist(), strict=True) if trials
    )


def confirming_shares(left: Integers, wanted: Integers, run: Integers, rarity: Floats) -> Integers:
    """Share out the confirming trials that runs have left, by run and task: as many as are wanted, where they suffice.

    Otherwise share out a part of what is left, in small rounds, so that most of it goes to the tasks that go on
    failing. The tasks whose results are the rarest in an unchanged agent (`rarity`) come first; each gets at most half
    of what it has had in `run`.
    """
    enough = wanted.sum(axis=1) <= left
    shares = np.where(enough[:, None], wanted, 0)
    room = np.minimum(left, np.maximum(-(-left // SLICE), LEAST_SLICE))
    most = np.minimum(wanted, np.maximum(-(-run // 2), 1))
    order = np.argsort(np.where(wanted > 0, rarity, np.inf), axis=1, kind="stable")
    short = np.flatnonzero(~enough)
    for rank in range(wanted.shape[1] if len(short) else 0):
        place = order[short, rank]
        shares[short, place] = np.minimum(most[short, place], room[short])
        room[short] -= shares[short, place]
    return shares


def confirming_left(policy: GatePolicy, measurement: Measurement) -> int:
    """Return how many confirming trials a run has left."""
    most = policy.most_confirming(sum(task.k for task in measurement.tasks))
    return max(most - sum(len(task.confirming) + task.confirming_errors for task in measurement.tasks), 0)


class _Tested(NamedTuple):
    task: TaskMeasurement
    before: Before
    alpha: float
    test: RegressionTest | None  # `None` while the task has fewer than k measured trials


def _tested(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> Iterator[_Tested]:
    """Yield the tasks whose failure would block and that no veto has decided already. Alpha is shared out among all
    tasks that could get confirming trials, whether or not they have failed.
    """
    guarded = held_against(policy, measurement.tasks, baseline)
    alpha = alpha_of_one(policy, len(guarded))
    found = [
        task
        for task in measurement.tasks
        if task.name in guarded and task.name not in settled and _is_open(policy, task)
    ]
    # Made one by one the tests would take many times longer.
    alike: dict[tuple[int, int], dict[str, Before]] = defaultdict(dict)
    for task in found:
        if len(trial_outcomes(task)) >= task.k:
            alike[task.k, least_red_failures(task)][task.name] = guarded[task.name]
    tests: dict[str, RegressionTest] = {}
    for (k, red_from), of in alike.items():
        baselines, most = tuple(sorted({*of.values()})), policy.regression.max_trials
        made = tests_of_tasks(baselines, k=k, red_from=red_from, most=most, alpha=alpha)
        tests |= {name: made[before] for name, before in of.items()}
    for task in found:
        yield _Tested(task, guarded[task.name], alpha, tests.get(task.name))


def _is_open(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Return whether the task has failed, would block by that, and no veto has decided it."""
    vetoed = any(Rule(violation.rule) in policy.blocks_on for violation in task.violations)
    return task.state is TaskState.FAILED and blocks_on_falls(policy, task) and not vetoed


def least_red_failures(task: TaskMeasurement) -> int:
    """Return the number of failures among its first k trials from which a task is red."""
    return 1 if task.metric is Metric.PASS_HAT_K else task.k - task.needed + 1


def alpha_of_one(policy: GatePolicy, tasks: int) -> float:
    """Return the chance of blocking an unchanged task that is left to each of so many guarded tasks."""
    return share_of_one(policy.regression.alpha - policy.suites_alpha, tasks)


def share_of_one(alpha: float, count: int) -> float:
    """Return what is left to each of so many tests that err with a chance of alpha together (Sidak 1967)."""
    return float(1 - (1 - alpha) ** (1 / max(count, 1)))


def trial_outcomes(task: TaskMeasurement) -> list[bool]:
    """Return whether each measured trial passed: the first k in any order, then the confirming ones in theirs."""
    return [False] * task.failed + [True] * task.passed + list(task.confirming)


class TestedSuite(NamedTuple):
    """A suite and its test."""

    suite: Suite
    tasks: Sequence[TaskMeasurement]
    members: tuple[suite_regression.Member, ...]
    test: suite_regression.SuiteRegressionTest
    alpha: float

    def missing_at(self, look: int) -> dict[str, int]:
        """Return how many trials of each task are missing at a look."""
        return {
            task.name: max(suite_regression.trials_at(look, task.k) - len(trial_outcomes(task)), 0)
            for task in self.tasks
        }

    def course(self) -> tuple[Finding, int, int]:
        """Return the finding, its look and the trials that had failed by then; where it is open, the missing look."""
        before = 0
        for look in range(self.test.looks):
            if any(self.missing_at(look).values()):
                return Finding.UNFINISHED, look, before
            failed = sum(
                trial_outcomes(task)[: suite_regression.trials_at(look, task.k)].count(False) for task in self.tasks
            )
            finding, before = self.test.conclude(look, failed), failed
            if finding is not Finding.UNFINISHED:
                return finding, look, failed
        raise AssertionError("the last look decides")


def suite_confirmations(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> tuple[SuiteConfirmation, ...]:
    """Return what the trials have shown of every suite that its baseline guards, without the tasks in `settled`. A
    suite whose next look the run has no trials left for shows no fall.
    """
    found = []
    left = confirming_left(policy, measurement)
    for tested in tested_suites(policy, measurement, baseline, settled):
        finding, look, failed = tested.course()
        is_open = finding is Finding.UNFINISHED
        trials = [suite_regression.trials_at(look - is_open, task.k) for task in tested.tasks]
        if is_open and (Rule.SUITE_REGRESSION not in policy.blocks_on or sum(tested.missing_at(look).values()) > left):
            finding = Finding.FITS
        found.append(
            SuiteConfirmation(
                suite=tested.suite,
                finding=finding,
                tasks=len(tested.tasks),
                failed=failed,
                n=sum(trials),
                expected=suite_regression.expected_failures(tested.members, trials),
                alpha=tested.alpha,
            )
        )
    return tuple(found)


def wanted_of_suites(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> tuple[Wanted, ...]:
    """Return the confirming trials for the suites' next looks, of suites for which the run has enough left."""
    if Rule.SUITE_REGRESSION not in policy.blocks_on:
        return ()
    wanted: list[Wanted] = []
    left = confirming_left(policy, measurement)
    for tested in tested_suites(policy, measurement, baseline, settled):
        finding, look, _ = tested.course()
        missing = tested.missing_at(look)
        is_open = finding is Finding.UNFINISHED and sum(missing.values()) <= left
        if is_open and all(task.confirming_errors < MOST_ERRORS for task in tested.tasks):
            left -= sum(missing.values())
            wanted += [Wanted(name, more) for name, more in missing.items() if more]
    return tuple(wanted)


def suite_reasons(found: Sequence[SuiteConfirmation]) -> Iterator[Reason]:
    """Yield a reason for each suite that has fallen."""
    for one in found:
        if one.finding is Finding.FALLEN:
            yield Reason(rule=Rule.SUITE_REGRESSION, blocking=True, suite=one.suite, message=f"fallen: {_counts(one)}")


def missing_of_suites(found: Sequence[SuiteConfirmation]) -> Iterator[Reason]:
    """Yield a reason for each suite of which trials are missing."""
    for one in found:
        if one.finding is Finding.UNFINISHED:
            message = f"confirming trials of the suite are missing: {_counts(one)}"
            yield Reason(rule=Rule.MISSING_EVIDENCE, blocking=True, suite=one.suite, message=message)


def suite_notes(found: Sequence[SuiteConfirmation], tasks: Sequence[TaskMeasurement]) -> Iterator[str]:
    """Yield what a verdict says of suites that needed confirming trials and fit their baseline."""
    for one in found:
        if one.finding is Finding.FITS and one.n > sum(task.k for task in tasks if task.suite is one.suite):
            yield f"{one.suite}: no large fall shown: {_counts(one)}"


def _counts(one: SuiteConfirmation) -> str:
    expected = f"{one.expected:.1f} are expected by the baseline"
    return f"{one.failed} of {one.n} trials of its {one.tasks} tasks failed; {expected}"


def tested_suites(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> Iterator[TestedSuite]:
    """Yield the suites that their baseline guards, each with its test."""
    by_suite: dict[Suite, list[tuple[TaskMeasurement, Counts]]] = {}
    for task in measurement.tasks:
        counts = guarding_counts(baseline.of(task.name), baseline.young) if is_weighed(policy, task) else None
        is_whole = counts is not None and counts.n >= ENOUGH and len(trial_outcomes(task)) >= task.k
        if counts is not None and is_whole and task.name not in settled:
            by_suite.setdefault(task.suite, []).append((task, counts))
    suites = {suite: tasks for suite, tasks in by_suite.items() if len(tasks) >= suite_regression.LEAST_TASKS}
    alpha = share_of_one(policy.regression.alpha / 2, len(suites))
    drift = run_drift(baseline.of(task.name) for tasks in by_suite.values() for task, _ in tasks)
    for suite, tasks in suites.items():
        members = tuple(suite_regression.Member(int(counts.passed), int(counts.n), task.k) for task, counts in tasks)
        regression = policy.regression
        room = (regression.max_trials, regression.max_confirming)
        test = suite_regression.suite_regression_test(members, alpha=alpha, drift=drift.deviation, room=room)
        yield TestedSuite(suite, [task for task, _ in tasks], members, test, alpha)
