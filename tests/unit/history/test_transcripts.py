"""The transcripts of a journal by their digests."""

from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.history.journal_transcripts import JournalTranscripts
from passgate.tasks.history.run_store import RunStore
from tests.builders import a_finished, a_task

FIRST, SECOND, REUSED = (
    a_finished(a_task(), number, said=said, transcript_digest=said, **changes)
    for number, (said, changes) in enumerate((("grün\n", {}), ("two", {}), ("three", {"reused_from": "run-0"})))
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    file = tmp_path / "journal.jsonl"
    file.write_text("".join(f"{one.model_dump_json()}\n" for one in (FIRST, SECOND, REUSED)), encoding="utf-8")
    return file


def test_a_transcript_is_found_by_its_digest(journal: Path) -> None:
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"trial": {')  # as a killed run leaves it
    read = JournalTranscripts(RunStore(str(journal.parent)))
    assert [read("two"), read("grün\n"), read("another")] == [SECOND.transcript, FIRST.transcript, None]
    assert read("three") is None, "a reused trial has its transcript with its own run"


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    read = JournalTranscripts(RunStore(str(tmp_path / "no-run")))
    with pytest.raises(StorageError, match="cannot read the transcripts of"):
        read("two")


def test_a_damaged_journal_is_a_storage_error(journal: Path) -> None:
    journal.write_text("damaged\ndamaged\n", encoding="utf-8")
    with pytest.raises(StorageError, match="the journal is damaged in this line"):
        JournalTranscripts(RunStore(str(journal.parent)))("two")
