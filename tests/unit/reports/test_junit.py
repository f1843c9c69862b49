"""The verdict as JUnit XML."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task, a_task
from tests.unit.reports.verdicts import (
    APPROVED,
    AWAITING,
    FAILING,
    REJECTED,
    VERDICTS,
    a_reason,
    a_verdict,
    a_verdict_that_says,
)

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Exemption, Reason, RunView, Verdict
from passgate.tasks.report import RUN_FILES


def junit(verdict: Verdict) -> str:
    return RUN_FILES["junit.xml"](RunView(verdict))


def case(document: str, name: str) -> ElementTree.Element:
    found = ElementTree.fromstring(document).findall(f".//testcase[@name='{name}']")
    assert len(found) == 1
    return found[0]


def counts(element: ElementTree.Element) -> tuple[str | None, ...]:
    return tuple(element.get(name) for name in ("tests", "failures", "errors", "skipped"))


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing", "awaiting", "approved", "rejected"])
def test_is_valid_by_what_readers_have_in_common(name: str, schema: xmlschema.XMLSchema) -> None:
    schema.validate(junit(VERDICTS[name]))


def test_counts_are_those_of_the_elements() -> None:
    root = ElementTree.fromstring(junit(FAILING))
    assert counts(root) == ("12", "5", "1", None)
    for suite in root:
        assert counts(suite) == tuple(
            str(len(suite.findall(path)))
            for path in ("testcase", "testcase/failure", "testcase/error", "testcase/skipped")
        )


def test_a_passed_task_is_a_failure_where_a_reason_blocks_and_else_stays_green_and_tells_it() -> None:
    task = a_task()
    blocking = a_reason(task, Rule.SAFETY_VIOLATION, "wrote a key", trials=(2,))
    failure = case(junit(a_verdict(Decision.FAIL, (task,), reasons=(blocking,))), "fix_login").find("failure")
    assert failure is not None
    assert failure.get("type") == "safety_violation"
    assert failure.text == "blocks: safety_violation, trial 2: wrote a key"
    reported = a_reason(task, Rule.COST, "dear", blocking=False)
    passed = case(junit(a_verdict(Decision.PASS, (task,), reasons=(reported,))), "fix_login")
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


def test_an_awaited_sign_off_is_an_error_and_a_refused_one_a_failure() -> None:
    tags = [
        [child.tag for child in ElementTree.fromstring(junit(verdict)).findall(".//testcase[@name='sign_off']/*")]
        for verdict in (AWAITING, REJECTED, APPROVED)
    ]
    assert tags == [["error"], ["failure"], []]


@given(st.text(st.characters(), max_size=100))
def test_any_text_gives_the_same_well_formed_document(text: str) -> None:
    verdict = a_verdict_that_says(text)
    document = junit(verdict)
    root = ElementTree.fromstring(document.encode())
    assert counts(root) == ("2", "1", "0", None)
    (skipped,) = root.iter("skipped")
    assert "\n" not in (skipped.get("message") or "")
    assert document == junit(verdict)
