"""What an agent changed in its workspace."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.sandboxes.conftest import sh

from passgate.tasks.model.transcript import ChangedFile, ChangeKind, FileChanges
from passgate.tasks.sandboxes import changed_files
from passgate.tasks.sandboxes.changed_files import MOST_DIFF, MOST_FILES, MOST_LINES, changes_since, list_files

Change = Callable[[Path], object]
Changed = Callable[[Change], FileChanges]


@pytest.fixture
def template(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    (folder / "src").mkdir(parents=True)
    (folder / "README.md").write_text("one\ntwo\nthree\n")
    (folder / "src/main.py").write_text("print(1)\n")
    (folder / "newline").write_text("hello\n")
    return folder


@pytest.fixture
def changed(template: Path, tmp_path: Path) -> Changed:
    """What is found after a change of a fresh copy of the template."""

    def _changed(change: Change) -> FileChanges:
        workspace = tmp_path / "workspace"
        shutil.copytree(template, workspace, symlinks=True)
        before = list_files(workspace)
        change(workspace)
        return changes_since(before, workspace, template)

    return _changed


def only(changes: FileChanges) -> ChangedFile:
    (file,) = changes.files
    assert changes.remark == ""
    return file


NO_NEWLINE = "\\ No newline at end of file"


def test_added_modified_and_deleted_files_have_diffs_and_stand_in_order(changed: Changed) -> None:
    def change(workspace: Path) -> None:
        (workspace / "README.md").write_text("one\n2\nthree\n")
        (workspace / "src/main.py").unlink()
        (workspace / "new").mkdir()
        (workspace / "new/a.txt").write_text("hello")
        (workspace / "newline").write_text("hello")

    found = [(file.path, file.change, file.size, file.diff) for file in changed(change).files]
    assert found == [
        (
            "README.md",
            ChangeKind.MODIFIED,
            12,
            "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three",
        ),
        ("new/a.txt", ChangeKind.ADDED, 5, f"--- /dev/null\n+++ b/new/a.txt\n@@ -0,0 +1 @@\n+hello\n{NO_NEWLINE}"),
        ("newline", ChangeKind.MODIFIED, 5, f"--- a/newline\n+++ b/newline\n@@ -1 +1 @@\n-hello\n+hello\n{NO_NEWLINE}"),
        ("src/main.py", ChangeKind.DELETED, None, "--- a/src/main.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-print(1)"),
    ]


def a_tree_deeper_than_a_path_may_be_long(workspace: Path) -> None:
    number = os.open(workspace, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=number)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=number)
        os.close(number)
        number = below
    os.close(number)


@pytest.mark.parametrize(
    "change",
    [
        lambda workspace: (workspace / "README.md").write_text("one\ntwo\nthree\n"),
        lambda workspace: os.utime(workspace / "README.md"),
        lambda workspace: (workspace / ".git").mkdir() or (workspace / ".git/index").write_text("x"),
        lambda workspace: (
            (workspace / "src/node_modules").mkdir() or (workspace / "src/node_modules/a.js").write_text("x")
        ),
        lambda workspace: (workspace / "empty/folder").mkdir(parents=True),
        lambda workspace: None,
        a_tree_deeper_than_a_path_may_be_long,
    ],
    ids=["written as it was", "touched", "of git", "installed packages", "a folder", "nothing", "a deep tree"],
)
def test_what_is_no_change(change: Change, changed: Changed) -> None:
    assert changed(change) == FileChanges()


def test_a_file_is_changed_whatever_time_it_is_given(changed: Changed) -> None:
    def change(workspace: Path) -> None:
        file = workspace / "README.md"
        found = file.stat()
        file.write_text("one\nTWO\nthree\n")
        os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))

    assert only(changed(change)).change is ChangeKind.MODIFIED


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.write_bytes(b"\0binary"),
        lambda file: file.write_bytes(b"\xff\xfe latin"),
        lambda file: file.write_bytes(b"x" * 70_000),
        lambda file: file.write_text("a line\n" * 6000),
        os.mkfifo,
        lambda file: file.symlink_to("/etc/hostname"),
        lambda file: file.symlink_to("."),
        lambda file: socket.socket(socket.AF_UNIX).bind(os.path.relpath(file)),
    ],
    ids=["binary", "latin", "large", "long diff", "pipe", "link outside", "link in a circle", "socket"],
)
@pytest.mark.filterwarnings("ignore:unclosed")
def test_what_is_no_small_text_is_told_without_a_diff(make: Change, changed: Changed, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = only(changed(lambda workspace: make(workspace / "it")))
    assert (file.path, file.change, file.diff) == ("it", ChangeKind.ADDED, None)


@pytest.mark.parametrize(("differing", "has_diff"), [(MOST_LINES, True), (MOST_LINES + 1, False)])
def test_a_diff_has_so_many_lines_that_differ_and_no_more(differing: int, has_diff: bool, template, changed) -> None:
    def write(folder: Path, word: str) -> None:
        (folder / "README.md").write_text("same\n" * 700 + f"{word}\n" * differing + "same\n" * 700)

    write(template, "old")
    assert (only(changed(lambda workspace: write(workspace, "new"))).diff is not None) is has_diff


def test_a_file_whose_earlier_content_is_not_known_has_no_diff(template: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    shutil.copytree(template, workspace)
    (workspace / "README.md").write_text("by the reset\n")
    (workspace / "by-the-reset").write_text("x\n")
    before = list_files(workspace)
    (workspace / "README.md").write_text("by the agent\n")
    (workspace / "by-the-reset").unlink()

    files = [(file.path, file.change, file.diff) for file in changes_since(before, workspace, template).files]
    assert files == [("README.md", ChangeKind.MODIFIED, None), ("by-the-reset", ChangeKind.DELETED, None)]


def test_paths_from_agents_are_text_of_bounded_length(changed: Changed) -> None:
    def change(workspace: Path) -> None:
        (workspace / os.fsdecode(b"\xff name")).write_text("x\n")
        (workspace / "two\nlines").write_text("x\n")
        deep = workspace / "/".join(["d" * 200] * 4)
        deep.mkdir(parents=True)
        (deep / "file").write_text("x\n")

    files = changed(change).files

    assert {file.path for file in files} == {"? name", "two\nlines", "/".join(["d" * 200] * 3)[:499] + "…"}
    named = {(file.diff or "").split("\n")[1] for file in files if len(file.path) < 100}
    assert named == {"+++ b/? name", "+++ b/two?lines"}


def test_many_changed_files_are_counted_and_all_diffs_have_bounded_room(changed: Changed) -> None:
    def change(workspace: Path) -> None:
        for number in range(MOST_FILES + 7):
            (workspace / f"{number:04}").write_text("some text\n" * 100)

    changes = changed(change)

    assert (len(changes.files), changes.left_out, changes.remark) == (MOST_FILES, 7, "7 more changed files")
    assert sum(len(file.diff or "") for file in changes.files) <= MOST_DIFF
    assert changes.files[0].diff is not None
    assert changes.files[-1].diff is None


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch])
def test_a_workspace_with_too_many_files_or_folders_is_not_compared(make, changed, monkeypatch) -> None:
    monkeypatch.setattr(changed_files, "MOST_ENTRIES", 20)
    changes = changed(lambda workspace: [make(workspace / str(number)) for number in range(30)])
    assert changes == FileChanges(too_many_files=True)
    assert changes.remark == "the workspace has too many files to compare them"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all")
def test_nothing_is_said_of_a_folder_that_cannot_be_listed(changed: Changed) -> None:
    assert changed(lambda workspace: (workspace / "src").chmod(0)) == FileChanges()


async def test_what_the_reset_did_is_no_change_of_the_agent(isolation: str, describe, sandbox_of) -> None:
    describe(description="reset: ['echo reset > by-the-reset']\n")
    async with sandbox_of(a_task(sandbox="notes", reset=("echo task > by-the-task",))) as sandbox:
        assert sandbox.agent_changes() == FileChanges()
        await sh(sandbox.for_the_agent, "echo agent >> README.md; echo x > notes.txt")
        changes = sandbox.agent_changes()
        shutil.rmtree(sandbox.workspace)
        gone = sandbox.agent_changes()
        assert sandbox.workspace.is_dir()
    kinds = {file.path: file.change for file in changes.files}
    assert kinds == {"README.md": ChangeKind.MODIFIED, "notes.txt": ChangeKind.ADDED}
    assert "+agent" in (changes.files[0].diff or "")
    lost = dict.fromkeys(("README.md", "by-the-reset", "by-the-task"), ChangeKind.DELETED)
    assert {file.path: file.change for file in gone.files} == lost, "a workspace that is gone has lost all its files"
