"""Files that are there whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from passgate.tasks.errors import StorageError
from passgate.tasks.files.atomic_write import PRIVATE_FILE, READABLE, write_atomically


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
