"""What a checkout leaves out of the files that tasks name: contents in git LFS, submodules, whatever is empty."""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

_POINTER: Final = b"version https://git-lfs.github.com/spec/v1"
_LONGEST_POINTER: Final = 1024  # Bytes, by the specification of git LFS
_SUBMODULE: Final = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)
_FETCH_LFS: Final = "fetch it with `git lfs pull`, in a workflow with `lfs: true` of actions/checkout"
_FETCH_SUBMODULE: Final = "fetch it with `git submodule update --init`, in a workflow with `submodules: true`"


def left_out(path: Path) -> str:
    """Return what a file, or anything in a folder, lacks and how to get it; an empty text where nothing is missing."""
    try:
        return _left_out(path, path.stat().st_mtime_ns)
    except OSError:
        return ""


# Many tasks have one sandbox. A folder that is changed meanwhile is looked at again.
@lru_cache(maxsize=1024)
def _left_out(path: Path, _changed: int) -> str:
    if path.is_file():
        return f"is a pointer of git LFS: {_FETCH_LFS}" if _is_pointer(path) else ""
    for folder, folders, files in os.walk(path):
        if not folders and not files and Path(folder).resolve() in _submodules(path):
            return f"has no contents in {Path(folder).name}, a submodule of git: {_FETCH_SUBMODULE}"
        pointer = next((name for name in files if _is_pointer(Path(folder, name))), None)
        if pointer is not None:
            return f"has {pointer}, a pointer of git LFS in place of the file: {_FETCH_LFS}"
    return ""


def is_empty(path: Path) -> bool:
    """Return whether a file has no bytes, or a folder no file that has some."""
    files = [path] if path.is_file() else [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    return not any(file.stat().st_size for file in files if file.exists())


def _is_pointer(file: Path) -> bool:
    try:
        if not len(_POINTER) < file.lstat().st_size < _LONGEST_POINTER or not file.is_file():
            return False
        with file.open("rb") as stream:
            return stream.read(len(_POINTER)) == _POINTER
    except OSError:
        return False


def _submodules(path: Path) -> set[Path]:
    """Return the folders of the submodules of the repository that a path lies in."""
    return {folder for top in path.resolve().parents if (top / ".git").exists() for folder in _named_in(top)}


def _named_in(top: Path) -> Iterator[Path]:
    try:
        text = (top / ".gitmodules").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    yield from ((top / name).resolve() for name in _SUBMODULE.findall(text))
