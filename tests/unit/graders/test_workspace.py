import os
import threading
from pathlib import Path

import pytest

from passgate.tasks.graders.workspace import LIMIT, UnusableFileError, is_present, read_bytes, read_text


def test_a_workspace_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert read_text(tmp_path / "link", "file") == "x"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert is_present(tmp_path, "a")
    with pytest.raises(UnusableFileError):
        read_bytes(tmp_path, "a")
    with pytest.raises(UnusableFileError):
        read_bytes(tmp_path, "a/file")


def test_a_fifo_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    opened = threading.Event()

    def wait_for_a_reader() -> None:
        os.close(os.open(tmp_path / "pipe", os.O_WRONLY))
        opened.set()

    writer = threading.Thread(target=wait_for_a_reader, daemon=True)
    writer.start()
    with pytest.raises(UnusableFileError, match="pipe is not a regular file"):
        read_bytes(tmp_path, "pipe")
    assert not opened.wait(0.2)
    os.close(os.open(tmp_path / "pipe", os.O_RDONLY))
    assert opened.wait(240)


@pytest.mark.parametrize(("size", "readable"), [(LIMIT, True), (LIMIT + 1, False)])
def test_the_limit_is_what_may_just_be_read(size: int, readable: bool, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(size)
    if readable:
        assert len(read_bytes(tmp_path, "file")) == size
    else:
        with pytest.raises(UnusableFileError, match="larger than 10 MB"):
            read_bytes(tmp_path, "file")


def test_a_name_that_is_too_long_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(UnusableFileError, match="cannot be accessed"):
        read_bytes(tmp_path, "x" * 1000)
