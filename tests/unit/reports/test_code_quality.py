"""The reasons of a verdict as a report of GitLab's Code Quality."""

import json
from typing import Any

import pytest
from tests.unit.reports.measurements import a_task
from tests.unit.reports.verdicts import VERDICTS, a_reason, a_verdict

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.verdict import Decision, RunView, Verdict
from passgate.tasks.report import RUN_FILES


def findings(verdict: Verdict) -> list[dict[str, Any]]:
    return list(json.loads(RUN_FILES["code-quality.json"](RunView(verdict))))


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_every_finding_has_what_gitlab_reads(name: str) -> None:
    found = findings(VERDICTS[name])
    for one in found:
        assert set(one) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert one["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert one["location"]["path"]
        assert one["location"]["lines"]["begin"] >= 1
    assert len({one["fingerprint"] for one in found}) == len(found)


def test_the_fingerprint_of_a_fall_does_not_change_with_its_figures() -> None:
    task = a_task(task_id="a")
    reasons = (a_reason(task, Rule.GOLDEN_REGRESSION, message) for message in ("1 of 3 now", "0 of 3 now"))
    now, later = (findings(a_verdict(Decision.FAIL, (task,), reasons=(reason,))) for reason in reasons)
    assert now[0]["fingerprint"] == later[0]["fingerprint"]
