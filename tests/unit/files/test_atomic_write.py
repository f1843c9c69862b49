"""Files that are there whole or not at all."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.files import atomic_write
from passgate.tasks.files.atomic_write import PRIVATE_FILE, READABLE, take_lock, write_atomically


def test_a_file_is_written_over_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    for text in ("first", "Zoë\n"):
        write_atomically(file, text)
        assert file.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("mode", "others"), [(PRIVATE_FILE, 0), (READABLE, stat.S_IROTH)])
def test_only_its_owner_reads_a_private_file(tmp_path: Path, mode: int, others: int) -> None:
    file = tmp_path / "a.txt"
    before = os.umask(0o022)
    try:
        write_atomically(file, "text", mode=mode)
    finally:
        os.umask(before)
    assert file.stat().st_mode & stat.S_IRWXO == others


def test_what_cannot_be_written_leaves_everything_as_it_was_and_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "\udc80")
    assert file.read_text() == "before"
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(StorageError, match=f"cannot write {folder}: "):
        write_atomically(folder, "text")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.txt", "folder"]
    with pytest.raises(StorageError, match="No such file or directory"):
        write_atomically(tmp_path / "missing" / "a.txt", "text")


HOLDS = """
import fcntl, sys, time
stream = open(sys.argv[1])
fcntl.flock(stream, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def holding(file: Path, seconds: float) -> "subprocess.Popen[str]":
    """Start a process that holds the lock of a file for some seconds, and wait until it does."""
    command = [sys.executable, "-c", HOLDS, str(file), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_that_is_about_to_be_free_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with holding(file, 0.5), file.open() as stream:
        take_lock(stream.fileno())


def test_a_lock_that_stays_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_write, "SECONDS_TO_WAIT", 0.2)
    file = tmp_path / "file"
    file.touch()
    with holding(file, 4242) as process, file.open() as stream:
        with pytest.raises(BlockingIOError):
            take_lock(stream.fileno())
        process.kill()
