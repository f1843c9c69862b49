"""A whole suite against its pooled baseline: what its trials have shown, and which further ones would show it."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from passgate.tasks.gates.evidence import MOST_ERRORS, Wanted, confirming_left, outcomes_of, share_of_one
from passgate.tasks.gates.guards import guarding_counts, is_weighed, run_drift
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement, TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Finding, Reason, SuiteConfirmation
from passgate.tasks.stats.expected_rates import Counts
from passgate.tasks.stats.regression import ENOUGH
from passgate.tasks.stats.suite_regression import (
    LEAST_TASKS,
    Member,
    SuiteRegressionTest,
    expected_failures,
    suite_regression_test,
    trials_at,
)


class TestedSuite(NamedTuple):
    """A suite and its test."""

    suite: Suite
    tasks: Sequence[TaskMeasurement]
    members: tuple[Member, ...]
    test: SuiteRegressionTest
    alpha: float

    def failed_at(self, look: int) -> int | None:
        """Return how many trials have failed by a look; `None` where some are missing."""
        failed = 0
        for task in self.tasks:
            trials = outcomes_of(task)[: trials_at(look, task.k)]
            if len(trials) < trials_at(look, task.k):
                return None
            failed += trials.count(False)
        return failed

    def missing_at(self, look: int) -> dict[str, int]:
        """Return how many trials of each task are missing at a look."""
        return {task.name: max(trials_at(look, task.k) - len(outcomes_of(task)), 0) for task in self.tasks}

    def course(self) -> tuple[Finding, int, int]:
        """Return the finding, its look, and how many trials had failed by then; where it is open, the look that is
        missing.
        """
        before = 0
        for look in range(self.test.looks):
            failed = self.failed_at(look)
            if failed is None:
                return Finding.UNFINISHED, look, before
            finding, before = self.test.conclude(look, failed), failed
            if finding is not Finding.UNFINISHED:
                return finding, look, failed
        raise AssertionError("the last look decides")


def suite_confirmations(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> tuple[SuiteConfirmation, ...]:
    """Return what the trials have shown of every suite that its baseline guards, quarantined tasks and such left out. A
    suite whose next look the run has no trials left for shows no fall.
    """
    found = []
    left = confirming_left(policy, measurement)
    for tested in tested_suites(policy, measurement, baseline, settled):
        finding, look, failed = tested.course()
        is_open = finding is Finding.UNFINISHED
        trials = [trials_at(look - is_open, task.k) for task in tested.tasks]
        if is_open and (Rule.SUITE_REGRESSION not in policy.blocks_on or sum(tested.missing_at(look).values()) > left):
            finding = Finding.FITS
        found.append(
            SuiteConfirmation(
                suite=tested.suite,
                finding=finding,
                tasks=len(tested.tasks),
                failed=failed,
                n=sum(trials),
                expected=expected_failures(tested.members, trials),
                alpha=tested.alpha,
            )
        )
    return tuple(found)


def wanted_of_suites(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> tuple[Wanted, ...]:
    """Return the confirming trials that the suites' next looks ask for, of those suites for which the run has enough
    left.
    """
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
        is_whole = counts is not None and counts.n >= ENOUGH and len(outcomes_of(task)) >= task.k
        if counts is not None and is_whole and task.name not in settled:
            by_suite.setdefault(task.suite, []).append((task, counts))
    suites = {suite: tasks for suite, tasks in by_suite.items() if len(tasks) >= LEAST_TASKS}
    alpha = share_of_one(policy.regression.alpha / 2, len(suites))
    drift = run_drift(baseline.of(task.name) for tasks in by_suite.values() for task, _ in tasks)
    for suite, tasks in suites.items():
        members = tuple(Member(int(counts.passed), int(counts.n), task.k) for task, counts in tasks)
        regression = policy.regression
        room = (regression.max_trials, regression.max_confirming)
        test = suite_regression_test(members, alpha=alpha, drift=drift.deviation, room=room)
        yield TestedSuite(suite, [task for task, _ in tasks], members, test, alpha)
