"""What was found of the machine and of graders, as text."""

import re
from typing import Any

import pytest
from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.model.checks import CheckCounts, Fault, GraderCheck, GraderFinding, State, Symptom
from passgate.tasks.reports.checks import doctor_report, grader_checks_report


def symptom(subject: str = "machine", state: State = State.OK, found: str = "fine", **more: str) -> Symptom:
    return Symptom(subject, more.pop("what", "git"), state, found, **more)


def doctor(*symptoms: Symptom, width: int = 100, color: bool = False) -> str:
    return doctor_report(symptoms, width=width, color=color)


def test_symptoms_stand_under_what_they_belong_to_with_their_remedies() -> None:
    report = doctor(
        symptom(),
        symptom("agent a", State.FAILED, "no such program", what="cli", remedy="install it"),
        symptom("agent a", State.WARNING, "not known", what="price"),
    )
    assert report.splitlines() == [
        "machine",
        "✓ ok      git: fine",
        "",
        "agent a",
        "✗ failed  cli: no such program",
        "│         → install it",
        "! warning price: not known",
        "",
        "1 ok, 1 warning, 1 failed",
    ]


def a_check(**changes: Any) -> GraderCheck:
    plain: dict[str, Any] = {
        "suite": "golden",
        "task_id": "say-yes",
        "file": "suites/golden/say-yes.yaml",
        "line": 1,
        "known_good": "passed",
        "known_bad": CheckCounts(right=2, of=2),
        "graders": CheckCounts(right=1, of=1),
    }
    return GraderCheck(**(plain | changes))


def a_finding(**changes: Any) -> GraderFinding:
    plain: dict[str, Any] = {
        "fault": Fault.KNOWN_BAD_PASSES,
        "file": "suites/golden/say-yes.yaml",
        "line": 7,
        "column": 5,
        "path": "graders[0]",
        "graders": ("answer",),
        "message": "doing nothing passes",
        "remedy": "let a grader notice it",
    }
    return GraderFinding(**(plain | changes))


def graders(*checks: GraderCheck, width: int = 120, color: bool = False) -> str:
    return grader_checks_report(checks, width=width, color=color)


def test_a_row_per_task_then_faults_with_their_places_and_remedies_then_a_count() -> None:
    faulty = a_check(
        task_id="other",
        known_good="failed",
        known_bad=CheckCounts(right=1, of=2, unmeasured=1),
        mutants=CheckCounts(right=3, of=4),
        graders=CheckCounts(),
        findings=(a_finding(), a_finding(path="graders", graders=(), message="no known-good transcript")),
        unmeasured=("doing nothing was not measured: no judge",),
    )
    lines = [" ".join(line.split()) for line in graders(a_check(), faulty, width=300).splitlines() if line.strip()]
    assert lines == [
        "task known-good known-bad mutants graders",
        "golden/say-yes passed 2/2 - 1/1",
        "golden/other failed 1/2 (1 not measured) 3/4 -",
        lines[3],
        "faults",
        "✗ suites/golden/say-yes.yaml:7:5: graders[0] (answer): doing nothing passes",
        "│ → let a grader notice it",
        "✗ suites/golden/say-yes.yaml:7:5: graders: no known-good transcript",
        "│ → let a grader notice it",
        "not measured",
        "? golden/other: doing nothing was not measured: no judge",
        "2 tasks, 2 faults, 1 not measured",
    ]
    assert lines[3].startswith("known-good: what must pass")


def test_without_faults_there_is_no_list_of_them() -> None:
    text = graders(a_check(notes=("it passes when the call 1 is gone",)))
    assert "\nfaults\n" not in text
    assert "not measured" not in text
    assert text.endswith("\n1 task, 0 faults\n")


FAULTY = a_finding(file=HOSTILE, path=HOSTILE, graders=(HOSTILE,), message=HOSTILE, remedy=HOSTILE)
FORGED = "\x1b[2J::error::x\n✓ ok      git: fine"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(doctor(symptom("agent \x1b[31m", State.FAILED, FORGED, remedy=FORGED), width=80), id="doctor"),
        pytest.param(
            graders(a_check(task_id=HOSTILE, findings=(FAULTY,), unmeasured=(HOSTILE,)), width=80), id="graders"
        ),
    ],
)
def test_text_from_outside_steers_no_terminal_and_passes_for_no_line_of_the_report(text: str) -> None:
    assert not {"\x1b", "\u202e"} & set(text)
    assert not re.search(r"^\s*::error|^✓ ok|^ci_merge PASS", text, re.MULTILINE)


def test_long_texts_are_bounded_and_broken_within_their_width() -> None:
    found = graders(a_check(findings=(a_finding(message="word " * 5000),)), width=60)
    assert len(found) < 3000
    for text in (found, doctor(symptom(found="word " * 100), width=60)):
        assert max(map(len, text.splitlines())) <= 60


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[" in doctor(symptom(), color=True)
    assert "\x1b[" in graders(a_check(), color=True)
