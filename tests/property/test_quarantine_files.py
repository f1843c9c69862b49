"""Whatever a quarantine file holds: a quarantine, or problems with their places; never another exception."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import a_task

from passgate.tasks.formats.project_files import read_quarantine
from passgate.tasks.gates.guards import exempt_by_quarantine, expired, quarantine_notes, quarantined
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import QuarantineFile

TODAY = date(2026, 2, 1)
TASKS = [a_task(), a_task(task_id="other"), a_task(task_id="attack", suite="adversarial")]

texts = st.text(max_size=12) | st.sampled_from(["say-yes", "golden/say-yes", "attack", "https://host/1", "2026-02-03"])
scalars = texts | st.none() | st.booleans() | st.integers(-2, 40) | st.floats() | st.dates()
near_entries = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("task", "owner", "reason", "issue", "expires", "more"), scalars)
)
right_entries = st.fixed_dictionaries(
    {
        "task": st.sampled_from(["say-yes", "golden/other", "other"]),
        "owner": st.text("ab ", min_size=1),
        "reason": st.text(min_size=1, max_size=400),
        "issue": st.sampled_from(["https://host/1", "http://h:1/x?y", "host/1"]),
        "expires": st.dates(date(2026, 1, 1), date(2026, 6, 1)),
    }
)
documents = scalars | st.fixed_dictionaries(
    {},
    optional={
        "version": scalars,
        "most": st.integers(-1, 5) | scalars,
        "most_days": st.integers(0, 400) | scalars,
        "release_after": st.integers(0, 20) | scalars,
        "tasks": scalars | st.lists(near_entries | right_entries | scalars, max_size=4),
    },
)
right_documents = st.fixed_dictionaries({"tasks": st.lists(right_entries, max_size=3)})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quarantine") / "quarantine.yaml"


@given(document=documents | right_documents)
def test_a_file_is_a_quarantine_or_has_problems(file: Path, document: Any) -> None:
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    alone = read_quarantine(file, "quarantine.yaml", TODAY)
    with_tasks = read_quarantine(file, "quarantine.yaml", TODAY, TASKS)
    if isinstance(alone, list):
        assert alone
        assert isinstance(with_tasks, list)
        assert all(problem.line >= 1 and problem.column >= 1 and problem.message for problem in alone)
    if isinstance(with_tasks, QuarantineFile):
        assert isinstance(alone, QuarantineFile)
        assert {entry.task for entry in with_tasks.tasks} <= {"golden/say-yes", "golden/other"}
        assert all(entry.expires <= TODAY + timedelta(days=with_tasks.most_days) for entry in with_tasks.tasks)


@given(document=right_documents, today=st.dates(date(2025, 1, 1), date(2027, 1, 1)))
def test_every_entry_is_in_force_or_expired_and_told_in_short_lines(file: Path, document: Any, today: date) -> None:
    file.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    answer = read_quarantine(file, "quarantine.yaml", TODAY)
    if not isinstance(answer, QuarantineFile):
        return
    in_force, over = quarantined(answer, today), expired(answer, today)
    assert [*in_force.values(), *over] == sorted(answer.tasks, key=lambda entry: entry.expires < today)
    notes = list(quarantine_notes(answer, Baseline(branch="main"), today))
    assert len(notes) == len(over)
    for line in [*notes, *(exempt_by_quarantine(entry).why for entry in answer.tasks)]:
        assert len(line.splitlines()) == 1
        assert len(line) < 1500
