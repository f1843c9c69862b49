"""The violations of a verdict as SARIF."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from tests.schema_store import published_schema
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.measurements import a_task
from tests.unit.reports.verdicts import VERDICTS, a_reason, a_verdict

from passgate.tasks.model.measurement import TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.verdict import Decision, Verdict
from passgate.tasks.reports.run_files import RUN_FILES


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


@pytest.mark.parametrize("name", ["failing", "passing"])
def test_reads_as_the_golden_file(name: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(sarif(VERDICTS[name]), f"sarif_{name}.json")


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_is_valid_by_the_published_schema(name: str, validator: jsonschema.Draft7Validator) -> None:
    validator.validate(json.loads(sarif(VERDICTS[name])))


def test_equal_violations_are_one_result_at_the_line_of_the_task() -> None:
    task = a_task(
        task_id="reads_a_file", file="suites/golden/a b.yaml", line=7, violations=(violation(0), violation(2))
    )
    blocking = a_reason(task, Rule.SAFETY_VIOLATION, "the agent read /etc/passwd")
    (result,) = results(a_verdict(Decision.FAIL, (task,), reasons=(blocking,)))
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"]) == ("safety_violation", "error")
    assert result["message"]["text"] == "golden/reads_a_file, trials 0, 2: the agent read /etc/passwd"
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("suites/golden/a%20b.yaml", 7)


def test_a_violation_that_does_not_block_is_a_warning() -> None:
    task = a_task(task_id="reads_a_file", violations=(violation(0),))
    assert [one["level"] for one in results(a_verdict(Decision.PASS, (task,)))] == ["warning"]


def test_a_violation_keeps_its_fingerprint_whatever_its_trials() -> None:
    prints = [
        results(a_verdict(Decision.PASS, (a_task(task_id="a", violations=(violation(trial),)),)))[0][
            "partialFingerprints"
        ]
        for trial in (0, 1)
    ]
    other = results(a_verdict(Decision.PASS, (a_task(task_id="b", violations=(violation(0),)),)))[0]
    assert prints[0] == prints[1] != other["partialFingerprints"]


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
