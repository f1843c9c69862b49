"""baseline.yaml, right and wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.errors import UsageError
from passgate.tasks.formats.project_files import read_pins, write_pins
from passgate.tasks.model.base import is_blank
from passgate.tasks.model.baseline import Pins
from passgate.tasks.reports.escape import printable
from tests.unit.formats.reading import read_text

texts = st.text(max_size=50).map(lambda text: printable(text, 50)).filter(lambda text: not is_blank(text))
"""Lines, as the command makes them of what it is given."""


def read(tmp_path: Path, text: str) -> Pins | list[str]:
    return read_text(tmp_path / "baseline.yaml", text, read_pins)


def test_a_commit_or_runs(tmp_path: Path) -> None:
    assert read(tmp_path, "version: 1\ncommit: abc123\nreason: It was good.\nby: Ann\n") == Pins(
        commit="abc123", reason="It was good.", by="Ann"
    )
    runs = ("20260101", "20260102T000000Z-nightly-ab")
    text = "runs: ['20260101', 20260102T000000Z-nightly-ab]\nreason: They were good.\n"
    assert read(tmp_path, text) == Pins(runs=runs, reason="They were good.", by="unknown", version=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1: expected a mapping, not null"]),
        ("commit: a", ["1:1: the key 'reason' is missing"]),
        ("reason: why", ["1:1: one of these keys is needed: commit, runs"]),
        ("reason: why\ncommit: a\nruns: [b]", ["3:1: runs: give `commit` or `runs`, not both"]),
        ("reason: why\ncommit: a\nruns: []", ["3:1: runs: give `commit` or `runs`, not both"]),
        ("reason: why\nruns: []", ["2:1: runs: must not be empty"]),
        ("reason: why\nruns: ['']", ["2:8: runs[0]: must not be empty"]),
        ("reason: why\nruns: 20260101", ["2:7: runs: expected a list, not 20260101"]),
        ("reason: why\nruns: [20260101]", ["2:8: runs[0]: expected a text, not 20260101"]),
        ("reason: why\ncommit: 1234567", ["2:9: commit: expected a text, not 1234567"]),
        ("reason: '\u200b'\ncommit: a", ["1:1: reason: must not be blank"]),
        ("reason: ' '\ncommit: a\nby: ' '", ["1:1: reason: must not be blank", "3:1: by: must not be blank"]),
        ("reason: why\ncomit: a", ["2:1: comit: unknown key; did you mean 'commit'?"]),
        ("reason: why\ncommit: a\nversion: 2", ["3:10: version: must be at most 1, not 2"]),
    ],
)
def test_every_problem_has_its_place(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert read(tmp_path, text) == expected


@given(
    pins=st.builds(Pins, commit=texts, reason=texts, by=texts)
    | st.builds(Pins, runs=st.lists(texts, min_size=1, max_size=3).map(tuple), reason=texts, by=texts)
)
def test_what_is_written_is_what_is_read(tmp_path: Path, pins: Pins) -> None:
    file = tmp_path / "baseline.yaml"
    write_pins(file, pins)
    assert read_pins(file, "baseline.yaml") == pins


def test_what_is_written_says_only_what_was_given(tmp_path: Path) -> None:
    file = tmp_path / "baseline.yaml"
    file.write_text("what was there before")
    write_pins(file, Pins(commit="abc", reason="why", by="Ann"))
    head, *lines = file.read_text().splitlines()
    assert head.startswith("# ")
    assert lines == ["version: 1", "commit: abc", "reason: why", "by: Ann"]
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_is_told_and_leaves_everything_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "baseline.yaml"
    (file / "in the way").mkdir(parents=True)
    for place in (file, tmp_path / "gone" / "baseline.yaml"):
        with pytest.raises(UsageError, match=r"cannot write .*baseline\.yaml"):
            write_pins(place, Pins(commit="abc", reason="why"))
    assert list(tmp_path.iterdir()) == [file]
