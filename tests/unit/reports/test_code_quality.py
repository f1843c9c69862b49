"""The reasons of a verdict as a report of GitLab's Code Quality."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.measurements import a_task
from tests.unit.reports.verdicts import FAILING, VERDICTS, a_reason, a_verdict

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.verdict import Decision, Reason, Verdict
from passgate.tasks.reports.run_files import RUN_FILES


def findings(verdict: Verdict) -> list[dict[str, Any]]:
    return list(json.loads(RUN_FILES["code-quality.json"](RunView(verdict))))


def test_reads_as_the_golden_file(matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(RUN_FILES["code-quality.json"](RunView(FAILING)), "code_quality_failing.json")


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_every_finding_has_what_gitlab_reads(name: str) -> None:
    found = findings(VERDICTS[name])
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
def test_the_severity_says_whether_it_blocks(rule: Rule, blocking: bool, severity: str) -> None:
    task = a_task(task_id="a")
    reason = a_reason(task, rule, "it fell", blocking=blocking)
    assert [one["severity"] for one in findings(a_verdict(Decision.FAIL, (task,), reasons=(reason,)))] == [severity]


def test_the_fingerprint_of_a_fall_does_not_change_with_its_figures() -> None:
    task = a_task(task_id="a")
    prints = {
        findings(a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, Rule.GOLDEN_REGRESSION, message),)))[0][
            "fingerprint"
        ]
        for message in ("1 of 3 now", "0 of 3 now")
    }
    assert len(prints) == 1


def test_a_reason_without_a_file_stands_at_the_policy() -> None:
    reason = Reason(rule=Rule.LATENCY, blocking=True, message="slower")
    (found,) = findings(a_verdict(Decision.FAIL, (), reasons=(reason,)))
    assert found["location"] == {"path": "gates.yaml", "lines": {"begin": 1}}


def test_hostile_text_stays_text() -> None:
    task = a_task(task_id="a")
    reason = a_reason(task, Rule.SAFETY_VIOLATION, HOSTILE)
    (found,) = findings(a_verdict(Decision.FAIL, (task,), reasons=(reason,)))
    assert not {"\x1b", "\n", "\x00"} & set(found["description"])
