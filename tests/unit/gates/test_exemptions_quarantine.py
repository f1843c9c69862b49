"""Who does not block for a while, who does again, and who may leave."""

from datetime import date
from typing import Any

import pytest

from passgate.tasks.gates.exemptions import exempt_by_quarantine, expired, quarantine_notes, quarantined
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile
from passgate.tasks.model.verdict import Exemption
from tests.builders import a_baseline, a_task

LAST_DAY = date(2026, 2, 10)
TASK = a_task()
NAME = "golden/say-yes"
EMPTY = Baseline(branch="main")


def an_entry(**changes: Any) -> QuarantineEntry:
    plain = {"task": NAME, "owner": "Ann", "reason": "it flakes", "issue": "https://h/1", "expires": LAST_DAY}
    return QuarantineEntry(**(plain | changes))


def a_file(*entries: QuarantineEntry, **changes: Any) -> QuarantineFile:
    return QuarantineFile(tasks=entries, **changes)


@pytest.mark.parametrize(
    ("today", "in_force"), [(date(2026, 2, 9), True), (LAST_DAY, True), (date(2026, 2, 11), False)]
)
def test_an_entry_is_in_force_to_the_end_of_its_last_day(today: date, in_force: bool) -> None:
    entry = an_entry()
    assert quarantined(a_file(entry), today) == ({NAME: entry} if in_force else {})
    assert expired(a_file(entry), today) == (() if in_force else (entry,))


def test_of_several_entries_each_has_its_own_day() -> None:
    early, late = an_entry(task="golden/early"), an_entry(expires=date(2026, 3, 1))
    assert quarantined(a_file(early, late), date(2026, 2, 20)) == {NAME: late}
    assert expired(a_file(early, late), date(2026, 2, 20)) == (early,)
    assert quarantined(a_file(), LAST_DAY) == {}
    assert expired(a_file(), LAST_DAY) == ()
    assert list(quarantine_notes(a_file(), a_baseline(TASK, green_in_a_row=99), LAST_DAY)) == []


def test_why_a_task_does_not_block_is_one_short_line() -> None:
    assert exempt_by_quarantine(an_entry()) == Exemption(
        task=NAME, why="quarantined until 2026-02-10 by Ann: it flakes (https://h/1)"
    )
    why = exempt_by_quarantine(an_entry(owner="Ann\n  Lee", reason="first\nsecond " + "x" * 5000)).why
    assert why.startswith("quarantined until 2026-02-10 by Ann Lee: first second xxx")
    assert why.endswith("x... (https://h/1)")
    assert len(why) < 400


def test_an_expired_entry_is_named_once_with_owner_issue_and_day() -> None:
    (note,) = quarantine_notes(a_file(an_entry()), EMPTY, date(2026, 2, 11))
    assert note == (
        "the quarantine of golden/say-yes has expired and the task blocks again since 2026-02-11: repair the "
        "task, or remove its entry from quarantine.yaml (Ann: it flakes (https://h/1))"
    )
    (note,) = quarantine_notes(a_file(an_entry()), a_baseline(TASK, green_in_a_row=99), date(2026, 2, 11))
    assert "has expired" in note


@pytest.mark.parametrize(("green", "is_proposed"), [(0, False), (9, False), (10, True), (11, True)])
def test_a_task_that_was_green_long_enough_is_proposed_for_release(green: int, is_proposed: bool) -> None:
    notes = list(quarantine_notes(a_file(an_entry()), a_baseline(TASK, green_in_a_row=green), LAST_DAY))
    expected = (
        f"golden/say-yes was green in the last {green} runs on main: remove its entry from quarantine.yaml "
        "(Ann: it flakes (https://h/1))"
    )
    assert notes == ([expected] if is_proposed else [])


def test_how_long_is_the_files() -> None:
    baseline = a_baseline(TASK, green_in_a_row=3)
    assert len(list(quarantine_notes(a_file(an_entry(), release_after=3), baseline, LAST_DAY))) == 1
    assert len(list(quarantine_notes(a_file(an_entry(), release_after=4), baseline, LAST_DAY))) == 0
    assert list(quarantine_notes(a_file(an_entry(), release_after=1), EMPTY, LAST_DAY)) == []
