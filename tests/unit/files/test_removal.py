"""Trees are gone, whatever lies in them, and nothing else is."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from passgate.tasks.files.removal import remove_tree
from tests.unit.files.trees import dig

DEEPER_THAN_PYTHON_CALLS = 3000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


def test_a_tree_deeper_than_a_path_can_say_is_removed(tree: Path) -> None:
    dig(tree, DEEPER_THAN_PYTHON_CALLS)
    assert remove_tree(tree) is None
    assert not tree.exists()


def test_a_tree_is_removed_whatever_lies_in_it(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1500):
        (tree / f"file-{number}").touch()
        (tree / f"folder-{number}").mkdir()
    for name in (b"\xff\xfe", b"\n", b"-rf", b"*", b" ", b"x" * 255):
        (tree / os.fsdecode(name)).write_text("x")
        (tree / os.fsdecode(b"d" + name[1:])).mkdir(exist_ok=True)
    os.mkfifo(tree / "fifo")
    monkeypatch.chdir(tree)
    (tree / "a/b/c").mkdir(parents=True)
    (tree / "a/b/file").write_text("x")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for path in (tree / "a/b/file", tree / "a/b/c", tree / "a/b", tree / "a", tree):
            path.chmod(0)
        assert remove_tree(tree) is None
    assert not tree.exists()


def test_what_links_lead_to_stays(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (tree / "link").symlink_to(outside)
    (tree / "loop").symlink_to(tree)
    (tree / "dangling").symlink_to("nowhere")
    assert remove_tree(tree) is None
    assert (outside / "kept").read_text() == "kept"


def test_a_link_in_the_place_of_the_tree_is_removed_and_not_followed(tree: Path, tmp_path: Path) -> None:
    (tree / "kept").write_text("kept")
    link = tmp_path / "link"
    link.symlink_to(tree)
    assert remove_tree(link) is None
    assert not link.is_symlink()
    assert (tree / "kept").exists()


@pytest.mark.parametrize("name", ["gone", "gone/further"])
def test_a_tree_that_is_not_there_is_removed(tmp_path: Path, name: str) -> None:
    assert remove_tree(tmp_path / name) is None


@pytest.fixture
def mounted(tree: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder of the tree on which another folder of the same file system is mounted; gives that other one."""
    outside, point = tmp_path / "outside", tree / "a/mounted"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    point.mkdir(parents=True)
    if subprocess.run(["mount", "--bind", outside, point], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user cannot mount")
    yield outside
    subprocess.run(["umount", point], check=True)


def test_what_is_mounted_in_the_tree_stays_and_is_told(tree: Path, mounted: Path) -> None:
    (tree / "a/file").write_text("x")
    remains = remove_tree(tree)
    assert str(remains) == (f"cannot remove {tree}: mounted: another file system is mounted there; remove it yourself")
    assert (mounted / "kept").read_text() == "kept"
    assert not (tree / "a/file").exists()


@pytest.fixture
def immutable(tree: Path) -> Iterator[Path]:
    """A file that nobody can remove."""
    file = tree / "a/immutable"
    file.parent.mkdir()
    file.write_text("x")
    if subprocess.run(["chattr", "+i", file], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user cannot make a file immutable")
    yield file
    subprocess.run(["chattr", "-i", file], check=True)


def test_what_cannot_be_removed_is_told_and_the_rest_is_gone(tree: Path, immutable: Path) -> None:
    (tree / "a/file").write_text("x")
    (tree / "b/c").mkdir(parents=True)
    assert str(remove_tree(tree)) == (f"cannot remove {tree}: immutable: Operation not permitted; remove it yourself")
    assert [str(left.relative_to(tree)) for left in tree.rglob("*")] == ["a", "a/immutable"]
