"""The reasons of a verdict as a report of GitLab's Code Quality."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.verdict import Decision, Reason, Verdict
from passgate.tasks.reports.run_files import RUN_FILES

MakeTask = Callable[..., TaskMeasurement]
MakeReason = Callable[..., Reason]
MakeVerdict = Callable[..., Verdict]


def findings(verdict: Verdict) -> list[dict[str, Any]]:
    return list(json.loads(RUN_FILES["code-quality.json"](RunView(verdict))))


def test_reads_as_the_golden_file(failing_verdict: Verdict, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(RUN_FILES["code-quality.json"](RunView(failing_verdict)), "code_quality_failing.json")


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_every_finding_has_what_gitlab_reads(name: str, request: pytest.FixtureRequest) -> None:
    found = findings(request.getfixturevalue(f"{name}_verdict"))
    for one in found:
        assert set(one) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert one["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert one["location"]["path"]
        assert one["location"]["lines"]["begin"] >= 1
    assert len({one["fingerprint"] for one in found}) == len(found)


@pytest.mark.parametrize(
    ("rule", "blocking", "severity"),
    [
        (Rule.SAFETY_VIOLATION, True, "blocker"),
        (Rule.GOLDEN_REGRESSION, True, "critical"),
        (Rule.GOLDEN_REGRESSION, False, "minor"),
    ],
)
def test_the_severity_says_whether_it_blocks(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict, rule: Rule, blocking: bool, severity: str
) -> None:
    task = make_task(task_id="a")
    reason = make_reason(task, rule, "it fell", blocking=blocking)
    assert [one["severity"] for one in findings(make_verdict(Decision.FAIL, (task,), reasons=(reason,)))] == [severity]


def test_the_fingerprint_of_a_fall_does_not_change_with_its_figures(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict
) -> None:
    task = make_task(task_id="a")
    prints = {
        findings(make_verdict(Decision.FAIL, (task,), reasons=(make_reason(task, Rule.GOLDEN_REGRESSION, message),)))[
            0
        ]["fingerprint"]
        for message in ("1 of 3 now", "0 of 3 now")
    }
    assert len(prints) == 1


def test_a_reason_without_a_file_stands_at_the_policy(make_verdict: MakeVerdict) -> None:
    reason = Reason(rule=Rule.LATENCY, blocking=True, message="slower")
    (found,) = findings(make_verdict(Decision.FAIL, (), reasons=(reason,)))
    assert found["location"] == {"path": "gates.yaml", "lines": {"begin": 1}}


def test_hostile_text_stays_text(
    make_task: MakeTask, make_reason: MakeReason, make_verdict: MakeVerdict, hostile: str
) -> None:
    task = make_task(task_id="a")
    reason = make_reason(task, Rule.SAFETY_VIOLATION, hostile)
    (found,) = findings(make_verdict(Decision.FAIL, (task,), reasons=(reason,)))
    assert not {"\x1b", "\n", "\x00"} & set(found["description"])
