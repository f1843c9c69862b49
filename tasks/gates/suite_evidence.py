"""A whole suite against its pooled baseline: what its trials have shown, and which further ones would show it."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from passgate.tasks.gates.evidence import MOST_ERRORS, Wanted, outcomes_of, share_of_one
from passgate.tasks.gates.guards import guarding_counts, is_weighed, run_drift
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement, TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Confirmation, Finding, Reason, SuiteConfirmation
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
        """How many trials have failed by a look; `None` where some are missing."""
        failed = 0
        for task in self.tasks:
            trials = outcomes_of(task)[: trials_at(look, task.k)]
            if len(trials) < trials_at(look, task.k):
                return None
            failed += trials.count(False)
        return failed

    def course(self) -> tuple[Finding, int, int]:
        """The finding, its look, and how many trials had failed by then; where it is open, the look that is missing."""
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
    policy: GatePolicy,
    measurement: Measurement,
    baseline: Baseline,
    settled: Collection[str],
    confirmed: Sequence[Confirmation],
) -> tuple[SuiteConfirmation, ...]:
    """What the trials have shown of every suite that its baseline guards, quarantined tasks and such left out. A suite
    of which more trials are wanted is left out where the gate is FAIL without it.
    """
    found = []
    is_decided = _is_decided(policy, measurement, confirmed)
    for tested in tested_suites(policy, measurement, baseline, settled):
        finding, look, failed = tested.course()
        if finding is Finding.UNFINISHED and is_decided:
            continue
        trials = [trials_at(look - (finding is Finding.UNFINISHED), task.k) for task in tested.tasks]
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
    policy: GatePolicy,
    measurement: Measurement,
    baseline: Baseline,
    settled: Collection[str],
    confirmed: Sequence[Confirmation],
) -> tuple[Wanted, ...]:
    """The confirming trials that the suites' next looks ask for; none where the gate is FAIL without them."""
    if _is_decided(policy, measurement, confirmed):
        return ()
    wanted = []
    for tested in tested_suites(policy, measurement, baseline, settled):
        finding, look, _ = tested.course()
        missing = [(task, trials_at(look, task.k) - len(outcomes_of(task))) for task in tested.tasks]
        if finding is Finding.UNFINISHED and all(task.confirming_errors < MOST_ERRORS for task in tested.tasks):
            wanted += [Wanted(task.name, more) for task, more in missing if more > 0]
    return tuple(wanted)


def suite_reasons(found: Sequence[SuiteConfirmation]) -> Iterator[Reason]:
    """A reason for each suite that has fallen, and for each of which trials are missing."""
    for one in found:
        if one.finding is Finding.FALLEN:
            yield Reason(rule=Rule.SUITE_REGRESSION, blocking=True, suite=one.suite, message=f"fallen: {_counts(one)}")
        elif one.finding is Finding.UNFINISHED:
            message = f"confirming trials of the suite are missing: {_counts(one)}"
            yield Reason(rule=Rule.MISSING_EVIDENCE, blocking=True, suite=one.suite, message=message)


def suite_notes(found: Sequence[SuiteConfirmation], tasks: Sequence[TaskMeasurement]) -> Iterator[str]:
    """What a verdict says of suites that needed confirming trials and fit their baseline."""
    for one in found:
        if one.finding is Finding.FITS and one.n > sum(task.k for task in tasks if task.suite is one.suite):
            yield f"{one.suite} fits its baseline: {_counts(one)}"


def _counts(one: SuiteConfirmation) -> str:
    expected = f"{one.expected:.1f} are expected by the baseline"
    return f"{one.failed} of {one.n} trials of its {one.tasks} tasks failed; {expected}"


def _is_decided(policy: GatePolicy, measurement: Measurement, confirmed: Sequence[Confirmation]) -> bool:
    """Whether the gate is FAIL by a veto or by a task, or does not block by suites, so that no trial need be spent."""
    vetoed = any(
        Rule(violation.rule) in policy.blocks_on for task in measurement.tasks for violation in task.violations
    )
    fallen = any(one.finding is Finding.FALLEN for one in confirmed)
    return Rule.SUITE_REGRESSION not in policy.blocks_on or vetoed or fallen


def tested_suites(
    policy: GatePolicy, measurement: Measurement, baseline: Baseline, settled: Collection[str]
) -> Iterator[TestedSuite]:
    """The suites that their baseline guards, each with its test."""
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
        test = suite_regression_test(members, alpha=alpha, drift=drift.deviation, most=policy.regression.max_trials)
        yield TestedSuite(suite, [task for task, _ in tasks], members, test, alpha)
