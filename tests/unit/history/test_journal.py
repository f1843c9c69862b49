"""The journal: what was appended is on disk, and what a killed run left can be read."""

import asyncio
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.history.journal import FileJournal, read_journal
from passgate.tasks.model.trial import TrialStatus
from tests.builders import a_finished, a_task

TASK = a_task()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run" / "journal.jsonl"


async def append(file: Path, *trials: int) -> None:
    with FileJournal(file) as journal:
        for trial in trials:
            await journal.append(a_finished(TASK, trial))


def numbers(file: Path) -> list[int]:
    return [finished.trial.trial for finished in read_journal(file)[0]]


async def test_what_is_appended_reads_back_and_is_carried_on(file: Path) -> None:
    assert read_journal(file) == ([], 0)
    finished = a_finished(TASK, said="grün\n\u2028\x00\x7f 😀")
    with FileJournal(file) as journal:
        await journal.append(finished)
        assert read_journal(file) == ([finished], file.stat().st_size)
    await append(file, 1, 2)
    assert numbers(file) == [0, 1, 2]
    assert file.read_bytes().count(b"\n") == 3


async def test_of_a_trial_that_stands_twice_the_later_line_counts(file: Path) -> None:
    lines = (TASK, TrialStatus.ERROR), (a_task(task_id="other"), TrialStatus.FAILED), (TASK, TrialStatus.PASSED)
    with FileJournal(file) as journal:
        for task, status in lines:
            await journal.append(a_finished(task, 0, status=status))
    trials = [(one.trial.task_id, one.trial.status) for one in read_journal(file)[0]]
    assert trials == [("say-yes", TrialStatus.PASSED), ("other", TrialStatus.FAILED)]


@pytest.mark.parametrize("torn", [b'{"trial"', b"\x00\x00\x00", b'{"trial": 1}\n', b"\xff\xfe\n", b"\n"])
async def test_a_torn_last_line_is_left_out_and_cut_off(file: Path, torn: bytes) -> None:
    await append(file, 0, 1)
    whole = file.read_bytes()
    file.write_bytes(whole + torn)
    trials, length = read_journal(file)
    assert (len(trials), length) == (2, len(whole))
    with FileJournal(file) as journal:
        assert journal.drop_torn_line() is True
        assert file.read_bytes() == whole
        assert journal.drop_torn_line() is False
        await journal.append(a_finished(TASK, 2))
    assert numbers(file) == [0, 1, 2]


async def test_a_damaged_line_in_the_middle_is_no_torn_line(file: Path) -> None:
    await append(file, 0, 1, 2)
    lines = file.read_bytes().split(b"\n")
    lines[1] = lines[1][:-10]
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(StorageError, match=r"journal\.jsonl:2: the journal is damaged in this line"):
        read_journal(file)
    with FileJournal(file) as journal, pytest.raises(StorageError, match=":2:"):
        journal.drop_torn_line()


async def test_what_append_returned_for_is_on_disk_in_whole_lines(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        synced.append(file.stat().st_size)

    monkeypatch.setattr(os, "fsync", fsync)
    with FileJournal(file) as journal:
        await journal.append(a_finished(TASK, 0))
        assert synced == [file.stat().st_size]
        long = "x" * 100_000
        await asyncio.gather(*(journal.append(a_finished(TASK, trial, said=long)) for trial in range(1, 100)))
        assert synced[-1] == file.stat().st_size
    assert sorted(numbers(file)) == list(range(100))
    assert len(synced) < 50, "trials that wait together share an fsync"


async def test_a_disk_that_is_full_is_a_storage_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with FileJournal(file) as journal:
        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match=r"cannot write the journal .*No space left"):
            await journal.append(a_finished(TASK, 0))


async def test_a_write_that_stops_half_way_damages_no_other_trial(file: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with FileJournal(file) as journal:
        await journal.append(a_finished(TASK, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 100, before[1]))
        try:
            with pytest.raises(StorageError, match=r"cannot write the journal .*File too large"):
                await journal.append(a_finished(TASK, 1))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        await journal.append(a_finished(TASK, 2))
    assert numbers(file) == [0, 2]


async def test_what_cannot_be_cut_back_is_before_the_next_trial(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, truncate = os.write, os.ftruncate

    def fails(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def stops_half_way(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", fails)
        return write(descriptor, data[: len(data) // 2])

    with FileJournal(file) as journal:
        await journal.append(a_finished(TASK, 0))
        monkeypatch.setattr(os, "write", stops_half_way)
        monkeypatch.setattr(os, "ftruncate", fails)
        for trial in (1, 2):
            with pytest.raises(StorageError, match=r"cannot write the journal .*Input/output error"):
                await journal.append(a_finished(TASK, trial))
        monkeypatch.setattr(os, "write", write)
        monkeypatch.setattr(os, "ftruncate", truncate)
        await journal.append(a_finished(TASK, 3))
    assert numbers(file) == [0, 3]


async def test_a_second_writer_in_this_process_or_another_is_refused(file: Path) -> None:
    locks = [sys.executable, "-c", "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"]
    with FileJournal(file) as journal:
        with pytest.raises(StorageError, match="another process: the run is already running"), FileJournal(file):
            pass
        assert b"BlockingIOError" in subprocess.run([*locks, str(file)], capture_output=True, check=False).stderr
        await journal.append(a_finished(TASK, 0))
    await append(file, 1)
    assert numbers(file) == [0, 1]


def test_a_journal_that_cannot_be_opened_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot open the journal"), FileJournal(tmp_path / "file" / "j"):
        pass
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="cannot read the journal"):
        read_journal(tmp_path / "folder")
