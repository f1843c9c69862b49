"""The lock of a file whose process was just killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from passgate.tasks.files import locks
from passgate.tasks.files.locks import take_lock

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
    monkeypatch.setattr(locks, "SECONDS_TO_WAIT", 0.2)
    file = tmp_path / "file"
    file.touch()
    with holding(file, 4242) as process, file.open() as stream:
        with pytest.raises(BlockingIOError):
            take_lock(stream.fileno())
        process.kill()
