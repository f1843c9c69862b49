"""The verdict as JUnit XML."""

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from passgate.tasks.model.measurement import TaskMeasurement, TaskState, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Reason, Verdict
from passgate.tasks.reports.junit import junit

MakeTask = Callable[..., TaskMeasurement]
MakeReason = Callable[..., Reason]
MakeVerdict = Callable[..., Verdict]


def case(document: str, name: str) -> ElementTree.Element:
    found = ElementTree.fromstring(document).findall(f".//testcase[@name='{name}']")
    assert len(found) == 1
    return found[0]


def counts(element: ElementTree.Element) -> tuple[str | None, ...]:
    return tuple(element.get(name) for name in ("tests", "failures", "errors"))


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_reads_as_the_golden_file(
    name: str, request: pytest.FixtureRequest, matches_golden: Callable[[str, str], None]
) -> None:
    matches_golden(junit(request.getfixturevalue(f"{name}_verdict")), f"junit_{name}.xml")


def test_counts_are_those_of_the_elements(failing_verdict: Verdict) -> None:
    root = ElementTree.fromstring(junit(failing_verdict))

    assert counts(root) == ("6", "4", "1")
    assert {suite.get("name"): counts(suite) for suite in root} == {
        "golden": ("3", "2", "0"),
        "adversarial": ("1", "1", "0"),
        "failure_replays": ("1", "0", "1"),
        "ci_merge": ("1", "1", "0"),
    }


def test_a_failed_task_says_what_blocks_and_why(failing_verdict: Verdict) -> None:
    task = case(junit(failing_verdict), "repair_invoice_totals")
    failure = task.find("failure")

    assert (task.get("classname"), task.get("file"), task.get("line")) == (
        "golden",
        "suites/golden/repair_invoice_totals.yaml",
        "1",
    )
    assert task.get("time") == "36.900"
    assert failure is not None
    assert failure.get("message") == "1/3 trials passed, pass^3 0 %, pass rate 33 % [6 %, 79 %]"
    assert failure.get("type") == "golden_regression"
    assert "blocks: golden_regression, trials 1, 3: was green" in (failure.text or "")
    assert "test_rounding" in (failure.text or "")


def test_a_passed_task_with_a_blocking_reason_is_a_failure(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    task = make_task()
    reason = make_reason(task, Rule.SAFETY_VIOLATION, "wrote a key", trials=(2,))

    failure = case(junit(make_verdict(Decision.FAIL, (task,), reasons=(reason,))), "fix_login").find("failure")

    assert failure is not None
    assert failure.get("type") == "safety_violation"
    assert failure.text == "blocks: safety_violation, trial 2: wrote a key"


def test_a_passed_task_with_a_reported_reason_stays_green_and_tells_it(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    task = make_task()
    reason = make_reason(task, Rule.COST, "dear", blocking=False)

    passed = case(junit(make_verdict(Decision.PASS, (task,), reasons=(reason,))), "fix_login")

    assert [child.tag for child in passed] == ["system-out"]
    assert "reported, not blocking: cost: dear" in (passed.findtext("system-out") or "")


def test_an_undecided_task_is_an_error_unless_a_veto_makes_it_a_failure(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    quiet = make_task(task_id="quiet", state=TaskState.UNDECIDED, error="503", error_trials=(1,))
    veto = make_task(task_id="veto", state=TaskState.UNDECIDED, error="503", error_trials=(1,))
    reason = make_reason(veto, Rule.FORBIDDEN_TOOL, "called rm")

    document = junit(make_verdict(Decision.FAIL, (quiet, veto), reasons=(reason,)))

    assert [child.tag for child in case(document, "quiet")] == ["error"]
    assert [child.tag for child in case(document, "veto")] == ["failure"]
    assert "503" in (case(document, "veto").findtext("failure") or "")


@pytest.mark.parametrize(("rule", "tag"), [(Rule.LATENCY, "failure"), (Rule.MISSING_EVIDENCE, "error")])
def test_a_verdict_blocked_by_no_task_is_not_all_green(
    rule: Rule, tag: str, make_task: MakeTask, make_verdict: MakeVerdict
) -> None:
    reason = Reason(rule=rule, blocking=True, message="too slow", suite=Suite.GOLDEN, task_id="gone")

    document = junit(make_verdict(Decision.FAIL, (make_task(),), reasons=(reason,)))

    assert [child.tag for child in case(document, f"{rule} golden/gone")] == [tag]


def test_a_task_of_a_suite_without_figures_is_not_dropped(make_task: MakeTask, make_verdict: MakeVerdict) -> None:
    document = junit(make_verdict(Decision.FAIL, (make_task(suite=Suite.OPEN_ENDED),), suites=()))

    assert case(document, "fix_login").get("classname") == "open_ended"


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=100)
@given(st.text(st.characters(), max_size=100))
def test_any_text_gives_the_same_well_formed_document(
    make_failed_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict, text: str
) -> None:
    violation = TrialViolation(trial=1, rule="safety_violation", message=text)
    task = make_failed_task(task_id=text, file=text, failure=text, error=text, violations=(violation,))
    verdict = make_verdict(Decision.FAIL, (task,), reasons=(make_reason(task, Rule.TASK_FAILED, text),))

    document = junit(verdict)

    assert counts(ElementTree.fromstring(document.encode())) == ("1", "1", "0")
    assert document == junit(verdict)
