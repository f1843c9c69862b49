"""What the doctor found, as text."""

from passgate.tasks.model.checks import State, Symptom
from passgate.tasks.reports.checks import doctor_report


def symptom(subject: str = "machine", state: State = State.OK, found: str = "fine", **more: str) -> Symptom:
    return Symptom(subject=subject, what=more.pop("what", "git"), state=state, found=found, **more)


def test_symptoms_stand_under_what_they_belong_to_with_their_remedies() -> None:
    report = doctor_report(
        [
            symptom(),
            symptom("agent a", State.FAILED, "no such program", what="cli", remedy="install it"),
            symptom("agent a", State.WARNING, "not known", what="price"),
        ],
        width=100,
        color=False,
    )
    assert report.splitlines() == [
        "machine",
        "  ✓ ok      git: fine",
        "",
        "agent a",
        "  ✗ failed  cli: no such program",
        "            → install it",
        "  ! warning price: not known",
        "",
        "1 ok, 1 warning, 1 failed",
    ]


def test_nothing_that_was_found_can_steer_the_terminal_or_pass_for_a_line_of_its_own() -> None:
    hostile = "\x1b[2J::error::x\n  ✓ ok      git: fine"
    report = doctor_report([symptom("agent \x1b[31m", State.FAILED, hostile, remedy=hostile)], width=80, color=False)
    assert "\x1b" not in report
    assert "::error" not in report
    assert not any(line.startswith("  ✓ ok") for line in report.splitlines())


def test_long_lines_are_broken_within_their_width() -> None:
    report = doctor_report([symptom(found="word " * 100)], width=60, color=False)
    assert max(map(len, report.splitlines())) <= 60


def test_colours_only_where_they_are_wanted() -> None:
    assert "\x1b[" in doctor_report([symptom()], width=80, color=True)
