"""What of a verdict is shown first."""

from collections.abc import Callable

import pytest

from passgate.tasks.model.measurement import TaskMeasurement, TaskState, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Reason, Verdict
from passgate.tasks.reports import findings

MakeTask = Callable[..., TaskMeasurement]
MakeReason = Callable[..., Reason]
MakeVerdict = Callable[..., Verdict]


def test_findings_are_ordered_by_severity(
    make_task: MakeTask, make_failed_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    undecided = make_task(task_id="undecided", state=TaskState.UNDECIDED)
    reported = make_failed_task(task_id="reported", passed=0, failed=3)
    blocking = make_failed_task(task_id="blocking")
    worse = make_failed_task(task_id="worse", passed=0, failed=3)
    veto = make_task(task_id="veto", violations=(TrialViolation(trial=1, rule="forbidden_tool", message="x"),))
    reasons = tuple(make_reason(task, Rule.TASK_FAILED, "x") for task in (blocking, worse))
    tasks = (make_task(), undecided, reported, blocking, worse, veto)

    found = findings.findings(make_verdict(Decision.FAIL, tasks, reasons=reasons))

    assert [finding.task.task_id for finding in found] == ["veto", "worse", "blocking", "reported", "undecided"]


def test_a_passed_task_with_a_blocking_reason_is_a_failure(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    task = make_task()
    verdict = make_verdict(Decision.FAIL, (task,), reasons=(make_reason(task, Rule.SAFETY_VIOLATION, "x"),))

    (finding,) = findings.findings(verdict)

    assert finding.is_failure
    assert not finding.is_undecided


@pytest.mark.parametrize("state", [TaskState.UNDECIDED, TaskState.PASSED])
def test_missing_evidence_leaves_a_task_undecided(
    state: TaskState, make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    task = make_task(state=state)
    reasons = (make_reason(task, Rule.MISSING_EVIDENCE, "x"),)

    (finding,) = findings.findings(make_verdict(Decision.INCONCLUSIVE, (task,), reasons=reasons))

    assert finding.is_undecided
    assert not finding.is_failure


def test_a_task_of_the_same_name_in_another_suite_keeps_its_own_reasons(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    golden, other = make_task(), make_task(suite=Suite.ADVERSARIAL)
    verdict = make_verdict(Decision.FAIL, (golden, other), reasons=(make_reason(other, Rule.COST, "x"),))

    assert [finding.task.suite for finding in findings.findings(verdict)] == [Suite.ADVERSARIAL]


def test_reasons_that_no_measured_task_carries(failing_verdict: Verdict) -> None:
    assert [reason.rule for reason in findings.reasons_without_task(failing_verdict)] == [Rule.LATENCY]


def test_blocking_reasons_come_first(failing_verdict: Verdict) -> None:
    weights = [reason.blocking for reason in findings.ordered_reasons(failing_verdict)]

    assert weights == [True] * 5 + [False] * 2


def test_equal_violations_are_told_once_with_their_trials(make_task: MakeTask) -> None:
    violations = [
        TrialViolation(trial=trial, rule="forbidden_tool", message=message)
        for trial, message in [(5, "a"), (2, "a"), (3, "b")]
    ]

    groups = findings.violation_groups(make_task(violations=tuple(violations)))

    assert [(group.message, group.trials) for group in groups] == [("a", (2, 5)), ("b", (3,))]
