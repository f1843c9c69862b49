"""Temporary folders: private, held by their process, and gone when it is."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.files.temporary import ROOT_PREFIX, TemporaryFolder, private_roots, sweep, temporary_folder
from tests.waiting import LIMIT

HOLDS_A_FOLDER = """
import sys
from passgate.tasks.files.temporary import TemporaryFolder
from tests.waiting import LIMIT
folder = TemporaryFolder("run-1")
(folder.path / "hidden-test").write_text("the answer")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the machine."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("passgate.tasks.files.temporary._OFTEN_TEMPORARY", ())
    return tmp_path


Holder = tuple[subprocess.Popen[str], Path]


@pytest.fixture
def holder(place: Path) -> Iterator[Callable[[], Holder]]:
    """Start processes that hold a folder each."""
    started: list[subprocess.Popen[str]] = []

    def _start() -> Holder:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS_A_FOLDER],
            env={**os.environ, "TMPDIR": str(place)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    yield _start
    for process in started:
        process.kill()
        process.communicate()


def killed(holder: Callable[[], Holder]) -> Path:
    """What a process leaves that is killed."""
    process, folder = holder()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert folder.is_dir()
    return folder


def test_a_folder_is_for_its_owner_only_and_says_whose_it_is(place: Path) -> None:
    before = os.umask(0)
    try:
        with temporary_folder("run-1") as folder:
            assert folder.parent == place / f"{ROOT_PREFIX}{os.getuid()}"
            assert folder.name.startswith(f"run-1-{os.getpid()}-")
            assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)] == [0o700, 0o700]
    finally:
        os.umask(before)
    assert list(folder.parent.iterdir()) == []
    with temporary_folder("run-1/change") as folder:
        assert folder.name.startswith(f"run-1-change-{os.getpid()}-")


def test_a_root_that_is_open_to_others_is_closed(place: Path) -> None:
    root = place / f"{ROOT_PREFIX}{os.getuid()}"
    root.mkdir()
    root.chmod(0o777)
    with temporary_folder("run-1"):
        assert stat.S_IMODE(root.stat().st_mode) == 0o700


def put_a_file(root: Path) -> None:
    root.write_text("")


def put_a_link(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    root.symlink_to(root.parent / "elsewhere")


def put_what_is_anothers(root: Path) -> None:
    root.mkdir()
    try:
        os.chown(root, os.getuid() + 1, -1)
    except PermissionError:
        pytest.skip("only root gives folders away")


@pytest.mark.parametrize("put", [put_a_file, put_a_link, put_what_is_anothers])
def test_a_root_that_is_not_ours_is_not_used(place: Path, put: Callable[[Path], None]) -> None:
    put(place / f"{ROOT_PREFIX}{os.getuid()}")
    with pytest.raises(UsageError, match="TMPDIR"):
        TemporaryFolder("run-1")


def test_a_sweep_removes_what_a_killed_process_has_left(holder: Callable[[], Holder]) -> None:
    folder = killed(holder)
    assert sweep() == []
    assert not folder.exists()
    folder = killed(holder)
    again = folder.with_name(f"run-1-{os.getpid()}-abcdefgh")
    folder.rename(again)
    assert sweep() == []
    assert not again.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="passgate finds processes in /proc")
def test_a_sweep_ends_the_processes_that_a_trial_of_a_killed_process_has_left(holder: Callable[[], Holder]) -> None:
    living, theirs = holder()
    folder = killed(holder)

    def started(**variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "600"], start_new_session=True, env={**os.environ, **variables})

    left = started(HOME=f"{folder}/trial/home")
    others = [started(PWD=str(folder)), started(HOME=f"{folder}2/home"), started(HOME=f"{theirs}/trial/home")]
    try:
        assert sweep() == []
        assert left.wait(timeout=LIMIT) == -signal.SIGKILL
        assert [process.poll() for process in (living, *others)] == [None] * 4
    finally:
        for process in (left, *others):
            process.kill()
            process.wait()


def test_a_sweep_lets_folders_of_living_processes_be(holder: Callable[[], Holder]) -> None:
    process, theirs = holder()
    with temporary_folder("run-1") as ours:
        assert sweep() == []
        assert (theirs / "hidden-test").exists()
        assert ours.is_dir()
    assert process.poll() is None


def test_two_sweeps_at_once_are_one(holder: Callable[[], Holder]) -> None:
    folders = [killed(holder) for _ in range(2)]
    sweeps = [
        subprocess.Popen(
            [sys.executable, "-c", "from passgate.tasks.files.temporary import sweep; assert sweep() == []"],
            env={**os.environ, "TMPDIR": str(folders[0].parents[1])},
        )
        for _ in range(2)
    ]
    assert [process.wait(timeout=LIMIT) for process in sweeps] == [0, 0]
    assert not any(folder.exists() for folder in folders)


def test_a_sweep_without_a_root_does_nothing(place: Path) -> None:
    assert private_roots() == ()
    assert sweep() == []
    assert list(place.iterdir()) == []
