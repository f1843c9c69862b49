"""The violations of a verdict as SARIF, and its reasons as a report of GitLab's Code Quality."""

import json
from typing import Any

import jsonschema
import pytest
from tests.schema_store import published_schema
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.measurements import a_task
from tests.unit.reports.verdicts import VERDICTS, a_reason, a_verdict

from passgate.tasks.model.measurement import TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.verdict import Decision, RunView, Verdict
from passgate.tasks.report import RUN_FILES


def sarif(verdict: Verdict) -> str:
    return RUN_FILES["violations.sarif"](RunView(verdict))


def results(verdict: Verdict) -> list[dict[str, Any]]:
    (run,) = json.loads(sarif(verdict))["runs"]
    return list(run["results"])


def violation(trial: int, message: str = "the agent read /etc/passwd") -> TrialViolation:
    return TrialViolation(trial=trial, rule=Rule.SAFETY_VIOLATION, message=message)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(published_schema("https://json.schemastore.org/sarif-2.1.0.json"))


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_is_valid_by_the_published_schema(name: str, validator: jsonschema.Draft7Validator) -> None:
    validator.validate(json.loads(sarif(VERDICTS[name])))


def test_a_violation_keeps_its_fingerprint_whatever_its_trials() -> None:
    first, later, other = (
        results(a_verdict(Decision.PASS, (a_task(task_id=name, violations=(violation(trial),)),)))[0]
        for name, trial in (("a", 0), ("a", 1), ("b", 0))
    )
    assert first["partialFingerprints"] == later["partialFingerprints"] != other["partialFingerprints"]


def test_hostile_text_stays_text(validator: jsonschema.Draft7Validator) -> None:
    task = a_task(task_id="a", file="javascript:alert(1)/\u202ex.yaml", violations=(violation(0, HOSTILE),))
    text = sarif(a_verdict(Decision.PASS, (task,)))
    document = json.loads(text)
    validator.validate(document)
    result = document["runs"][0]["results"][0]
    assert "\x1b" not in result["message"]["text"]
    assert "\n" not in result["message"]["text"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("javascript%3Aalert")
    assert text.encode()


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
