"""What of a verdict is shown first."""

import pytest
from tests.unit.reports.measurements import a_failed_task, a_task
from tests.unit.reports.provenance import a_confirmation
from tests.unit.reports.verdicts import AWAITING, FAILING, REJECTED, a_reason, a_verdict

from passgate.tasks.model.measurement import TaskState, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Exemption, Finding, Verdict
from passgate.tasks.reports import findings


def test_findings_are_ordered_by_severity() -> None:
    undecided = a_task(task_id="undecided", state=TaskState.UNDECIDED)
    reported = a_failed_task(task_id="reported", passed=0, failed=3)
    blocking = a_failed_task(task_id="blocking")
    worse = a_failed_task(task_id="worse", passed=0, failed=3)
    veto = a_task(task_id="veto", violations=(TrialViolation(trial=1, rule="forbidden_tool", message="x"),))
    reasons = tuple(a_reason(task, Rule.TASK_FAILED, "x") for task in (blocking, worse))
    missing = a_task(task_id="missing", state=TaskState.UNDECIDED)
    tasks = (a_task(), undecided, reported, missing, blocking, worse, veto)
    reasons = (*reasons, a_reason(missing, Rule.MISSING_EVIDENCE, "x"))
    found = findings.findings(a_verdict(Decision.FAIL, tasks, reasons=reasons))
    assert [finding.task.task_id for finding in found] == [
        "veto", "worse", "blocking", "missing", "reported", "undecided",
    ]  # fmt: skip


def test_a_passed_task_with_a_blocking_reason_is_a_failure() -> None:
    task = a_task()
    verdict = a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, Rule.SAFETY_VIOLATION, "x"),))
    (finding,) = findings.findings(verdict)
    assert finding.is_failure
    assert not finding.is_undecided


@pytest.mark.parametrize("state", [TaskState.UNDECIDED, TaskState.PASSED])
def test_missing_evidence_leaves_a_task_undecided(state: TaskState) -> None:
    task = a_task(state=state)
    reasons = (a_reason(task, Rule.MISSING_EVIDENCE, "x"),)
    (finding,) = findings.findings(a_verdict(Decision.INCONCLUSIVE, (task,), reasons=reasons))
    assert finding.is_undecided
    assert not finding.is_failure


def test_a_task_of_the_same_name_in_another_suite_keeps_its_own_reasons() -> None:
    golden, other = a_task(), a_task(suite=Suite.ADVERSARIAL)
    verdict = a_verdict(Decision.FAIL, (golden, other), reasons=(a_reason(other, Rule.COST, "x"),))
    assert [finding.task.suite for finding in findings.findings(verdict)] == [Suite.ADVERSARIAL]


def test_reasons_that_no_measured_task_carries() -> None:
    assert [reason.rule for reason in findings.reasons_without_task(FAILING)] == [Rule.LATENCY]


def test_blocking_reasons_come_first() -> None:
    weights = [reason.blocking for reason in findings.ordered_reasons(FAILING)]
    assert weights == [True] * 7 + [False] * 4


def test_equal_violations_are_told_once_with_their_trials() -> None:
    violations = [
        TrialViolation(trial=trial, rule="forbidden_tool", message=message)
        for trial, message in [(5, "a"), (2, "a"), (3, "b")]
    ]
    groups = findings.violation_groups(a_task(violations=tuple(violations)))
    assert [(group.message, group.trials) for group in groups] == [("a", (2, 5)), ("b", (3,))]


def why(verdict: Verdict) -> str:
    (finding,) = findings.every_task(verdict)
    return finding.why_not_blocking


def test_why_a_failed_task_does_not_block() -> None:
    task = a_failed_task()
    new, broken = (Exemption(task=task.name, why=text) for text in ("not admitted yet", "quarantined until May"))
    fits = a_confirmation(task.name, Finding.FITS)
    reported = a_reason(task, Rule.GOLDEN_REGRESSION, "x", blocking=False)
    verdict = a_verdict(Decision.PASS, (task,))

    def changed(**changes: object) -> str:
        return why(verdict.model_copy(update=changes))

    assert changed() == ""
    assert changed(reasons=(reported, reported)) == "golden_regression: reported only"
    assert changed(reasons=(reported,), confirmations=(fits,)) == (
        "fits its baseline: 5/12 now, 58/60 at the baseline, 9 confirming trials"
    )
    assert changed(confirmations=(fits,), quarantined=(broken,)) == "quarantined until May"
    assert changed(not_admitted=(new,), quarantined=(broken,)) == "not admitted yet; quarantined until May"
    assert changed(not_admitted=(Exemption(task="adversarial/repair_invoice_totals", why="new"),)) == ""


def test_in_short_a_task_that_does_not_block_says_why_and_another_what_is_wrong() -> None:
    task = a_failed_task(failure="wrong")
    red = a_reason(task, Rule.TASK_FAILED, "failed at the baseline too; pass^3 requires ...", blocking=False)
    blocking = a_reason(task, Rule.TASK_FAILED, "pass^3 requires ...")

    def in_short(**changes: object) -> str:
        (finding,) = findings.every_task(a_verdict(Decision.FAIL, (task,)).model_copy(update=changes))
        return finding.why_in_short

    assert in_short(reasons=(red,)) == "does not block: failed at the baseline too; pass^3 requires ..."
    assert in_short(reasons=(red,), quarantined=(Exemption(task=task.name, why="until May"),)) == (
        "does not block: until May"
    )
    assert in_short(reasons=(blocking,)) == "wrong"


@pytest.mark.parametrize("finding", [Finding.UNDECIDED, Finding.UNFINISHED, Finding.FALLEN])
def test_what_has_fallen_is_no_excuse(finding: Finding) -> None:
    task = a_failed_task()
    reason = a_reason(task, Rule.GOLDEN_REGRESSION, "x", blocking=False)
    confirmation = a_confirmation(task.name, finding)
    shown = why(a_verdict(Decision.PASS, (task,), reasons=(reason,), confirmations=(confirmation,)))
    assert shown.startswith("golden_regression: " if finding is Finding.FALLEN else f"{finding}: ")


def test_nothing_excuses_what_blocks_a_violation_or_a_pass() -> None:
    failed, passed = a_failed_task(), a_task()
    veto = a_failed_task(violations=(TrialViolation(trial=1, rule="forbidden_tool", message="x"),))
    for task, blocking in ((failed, True), (veto, False), (passed, False)):
        withheld = Exemption(task=task.name, why="quarantined")
        reason = a_reason(task, Rule.TASK_FAILED, "x", blocking=blocking)
        assert why(a_verdict(Decision.FAIL, (task,), reasons=(reason,), quarantined=(withheld,))) == ""


def test_missing_evidence_and_an_awaited_sign_off_are_open() -> None:
    for verdict, rules in (
        (AWAITING, {Rule.SIGN_OFF}), (REJECTED, set()), (FAILING, {Rule.MISSING_EVIDENCE})
    ):  # fmt: skip
        assert {reason.rule for reason in verdict.reasons if findings.is_open(verdict, reason)} == rules
