"""The verdict as JUnit XML."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task, a_task
from tests.unit.reports.provenance import a_confirmation
from tests.unit.reports.verdicts import APPROVED, AWAITING, FAILING, REJECTED, VERDICTS, a_reason, a_verdict

from passgate.tasks.model.measurement import TaskState, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Exemption, Finding, Reason, Verdict
from passgate.tasks.reports.run_files import RUN_FILES


def junit(verdict: Verdict) -> str:
    return RUN_FILES["junit.xml"](RunView(verdict))


def case(document: str, name: str) -> ElementTree.Element:
    found = ElementTree.fromstring(document).findall(f".//testcase[@name='{name}']")
    assert len(found) == 1
    return found[0]


def counts(element: ElementTree.Element) -> tuple[str | None, ...]:
    return tuple(element.get(name) for name in ("tests", "failures", "errors", "skipped"))


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_reads_as_the_golden_file(name: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(junit(VERDICTS[name]), f"junit_{name}.xml")


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing", "awaiting", "approved", "rejected"])
def test_is_valid_by_what_readers_have_in_common(name: str, schema: xmlschema.XMLSchema) -> None:
    schema.validate(junit(VERDICTS[name]))


def test_counts_are_those_of_the_elements() -> None:
    root = ElementTree.fromstring(junit(FAILING))
    assert counts(root) == ("12", "5", "1", None)
    assert {suite.get("name"): counts(suite) for suite in root} == {
        "golden": ("8", "2", "0", "3"),
        "adversarial": ("1", "1", "0", "0"),
        "failure_replays": ("2", "1", "1", "0"),
        "ci_merge": ("1", "1", "0", "0"),
    }
    for suite in root:
        for name in ("failure", "error", "skipped"):
            assert suite.get(f"{name}s".replace("skippeds", "skipped")) == str(len(suite.findall(f"testcase/{name}")))


def test_a_failed_task_says_what_blocks_and_why() -> None:
    task = case(junit(FAILING), "repair_invoice_totals")
    failure = task.find("failure")
    assert (task.get("classname"), task.get("file"), task.get("line")) == (
        "golden",
        "suites/golden/repair_invoice_totals.yaml",
        "1",
    )
    assert task.get("time") == "36.900"
    assert failure is not None
    assert failure.get("message") == (
        "1/3 trials passed, pass^3 0 %, pass rate 33 % [6 %, 79 %], 4/9 confirming trials passed"
    )
    assert failure.get("type") == "golden_regression"
    assert "blocks: golden_regression, trials 1, 3: regression confirmed" in (failure.text or "")
    assert "test_rounding" in (failure.text or "")


def test_a_passed_task_with_a_blocking_reason_is_a_failure() -> None:
    task = a_task()
    reason = a_reason(task, Rule.SAFETY_VIOLATION, "wrote a key", trials=(2,))
    failure = case(junit(a_verdict(Decision.FAIL, (task,), reasons=(reason,))), "fix_login").find("failure")
    assert failure is not None
    assert failure.get("type") == "safety_violation"
    assert failure.text == "blocks: safety_violation, trial 2: wrote a key"


def test_a_passed_task_with_a_reported_reason_stays_green_and_tells_it() -> None:
    task = a_task()
    reason = a_reason(task, Rule.COST, "dear", blocking=False)
    passed = case(junit(a_verdict(Decision.PASS, (task,), reasons=(reason,))), "fix_login")
    assert [child.tag for child in passed] == ["system-out"]
    assert "reported, not blocking: cost: dear" in (passed.findtext("system-out") or "")


def test_an_undecided_task_is_an_error_unless_a_veto_makes_it_a_failure() -> None:
    quiet = a_task(task_id="quiet", state=TaskState.UNDECIDED, error="503", error_trials=(1,))
    veto = a_task(task_id="veto", state=TaskState.UNDECIDED, error="503", error_trials=(1,))
    reason = a_reason(veto, Rule.FORBIDDEN_TOOL, "called rm")
    document = junit(a_verdict(Decision.FAIL, (quiet, veto), reasons=(reason,)))
    assert [child.tag for child in case(document, "quiet")] == ["error"]
    assert [child.tag for child in case(document, "veto")] == ["failure"]
    assert "503" in (case(document, "veto").findtext("failure") or "")


@pytest.mark.parametrize(("rule", "tag"), [(Rule.LATENCY, "failure"), (Rule.MISSING_EVIDENCE, "error")])
def test_a_verdict_blocked_by_no_task_is_not_all_green(rule: Rule, tag: str) -> None:
    reason = Reason(rule=rule, blocking=True, message="too slow", suite=Suite.GOLDEN, task_id="gone")
    document = junit(a_verdict(Decision.FAIL, (a_task(),), reasons=(reason,)))
    assert [child.tag for child in case(document, f"{rule} golden/gone")] == [tag]


def test_a_task_of_a_suite_without_figures_is_not_dropped() -> None:
    document = junit(a_verdict(Decision.FAIL, (a_task(suite=Suite.OPEN_ENDED),), suites=()))
    assert case(document, "fix_login").get("classname") == "open_ended"


@pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.UNDECIDED])
def test_a_task_that_does_not_block_is_skipped_and_says_why(state: TaskState) -> None:
    task = a_failed_task(state=state)
    reason = a_reason(task, Rule.TASK_FAILED, "wrong", blocking=False)
    withheld = (Exemption(task=task.name, why="quarantined until\n2026-05-01"),)
    document = junit(a_verdict(Decision.PASS, (task,), reasons=(reason,), quarantined=withheld))
    skipped = case(document, task.task_id).find("skipped")
    assert skipped is not None
    assert skipped.attrib == {
        "message": "quarantined until 2026-05-01; 1/3 trials passed, pass^3 0 %, pass rate 33 % [6 %, 79 %]"
    }
    assert [child.tag for child in case(document, task.task_id)] == ["properties", "skipped", "system-out"]
    told = case(document, task.task_id).findtext("system-out") or ""
    assert "reported, not blocking: task_failed, trials 1, 3: wrong\n" in told
    assert "1 of 14 tests failed" in told


def test_a_task_whose_rule_the_gate_only_reports_is_skipped() -> None:
    task = a_failed_task()
    reason = a_reason(task, Rule.TASK_FAILED, "wrong", blocking=False)
    root = ElementTree.fromstring(junit(a_verdict(Decision.PASS, (task,), reasons=(reason,))))
    assert counts(root)[:3] == ("1", "0", "0")
    skipped = root.find(".//skipped")
    assert skipped is not None
    assert (skipped.get("message") or "").startswith("task_failed: reported only; 1/3 trials passed")


def test_no_quarantine_hides_a_violation() -> None:
    violation = TrialViolation(trial=1, rule="forbidden_tool", message="called rm")
    task = a_failed_task(violations=(violation,))
    document = junit(a_verdict(Decision.FAIL, (task,), quarantined=(Exemption(task=task.name, why="quarantined"),)))
    assert case(document, task.task_id).find("failure") is not None


def test_confirming_trials_are_properties_of_the_case() -> None:
    def properties(name: str) -> dict[str | None, str | None]:
        found = case(junit(FAILING), name).findall("properties/property")
        return {one.get("name"): one.get("value") for one in found}

    assert properties("flaky_search") == {
        "confirming_passed": "5",
        "confirming_failed": "4",
        "confirming_errors": "1",
        "against_baseline": "fits its baseline: 7/12 now, 51/60 at the baseline, 9 confirming trials",
    }
    assert properties("resume_upload") == {"trials_not_run": "3"}
    assert properties("sort_rows") == {"reused_from": "20260330T020000Z-ci_merge-19bc"}
    assert properties("new_search")["withheld"] == (
        "not admitted yet: 3 of 12 trials passed on main, 19 of 20 are required"
    )
    assert "fallen: 5/12 now" in (case(junit(FAILING), "repair_invoice_totals").findtext("failure") or "")


def test_an_awaited_sign_off_is_an_error_and_a_refused_one_a_failure() -> None:
    tags = [
        [child.tag for child in ElementTree.fromstring(junit(verdict)).findall(".//testcase[@name='sign_off']/*")]
        for verdict in (AWAITING, REJECTED, APPROVED)
    ]
    assert tags == [["error"], ["failure"], []]


@given(st.text(st.characters(), max_size=100))
def test_any_text_gives_the_same_well_formed_document(text: str) -> None:
    violation = TrialViolation(trial=1, rule="safety_violation", message=text)
    task = a_failed_task(task_id=text, file=text, failure=text, error=text, violations=(violation,))
    verdict = a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, Rule.TASK_FAILED, text),))
    document = junit(verdict)
    assert counts(ElementTree.fromstring(document.encode())) == ("1", "1", "0", None)
    assert document == junit(verdict)


@given(st.text(st.characters(), max_size=100))
def test_any_text_of_a_person_or_a_file_gives_a_well_formed_document(text: str) -> None:
    task = a_failed_task(task_id="x", reused_from=text)
    withheld = (Exemption(task=task.name, why=f"because {text}"),)
    fits = (a_confirmation(task.name, Finding.FITS),)
    document = junit(a_verdict(Decision.PASS, (task,), not_admitted=withheld, confirmations=fits))
    (skipped,) = ElementTree.fromstring(document.encode()).iter("skipped")
    assert (skipped.get("message") or "").startswith("because")
    assert "\n" not in (skipped.get("message") or "")
