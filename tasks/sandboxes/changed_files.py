"""The files that an agent added, modified or deleted in its workspace."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Final, NamedTuple

from passgate.tasks.model.quotes import beginning
from passgate.tasks.model.transcript import ChangedFile, ChangeKind, FileChanges

MOST_FILES: Final = 100  # Changed files of one trial that are listed; the others are counted
MOST_DIFF: Final = 32 * 1024  # Characters of all diffs of one trial together
MOST_ENTRIES: Final = 20_000  # Files and folders of a workspace; one with more is not compared
MOST_COMPARED: Final = 64 * 1024  # Bytes of a file that has a diff
MOST_LINES: Final = 500  # Lines of a diff that differ: the time of a comparison can grow with their square
FOLDERS_OF_TOOLS: Final = frozenset(
    {".git", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "__pycache__", "node_modules"}
)
"""Folders that are not compared: installed packages and what tools keep, thousands of files that nobody reads."""
_LONGEST_PATH = 500
_NO_NEWLINE = "\n\\ No newline at end of file"  # As git and diff mark it


class _Entry(NamedTuple):
    """A file as the file system describes it. A process can set the time of its content, but not that of its entry."""

    mode: int
    size: int
    content_changed: int
    entry_changed: int
    inode: int


@dataclass(frozen=True, slots=True)
class WorkspaceFiles:
    """The files of a workspace at one moment, by their paths; without their content."""

    entries: Mapping[str, _Entry]
    unreadable: tuple[str, ...] = ()
    """Folders that cannot be listed: of the files in them nothing is known."""
    is_whole: bool = True
    """Whether the workspace has few enough files and folders to list them all."""

    def may_hold(self, path: str) -> bool:
        """Return whether there may be a file of this path: it is listed, or its folder could not be."""
        return path in self.entries or any(path.startswith(folder) for folder in self.unreadable)


NO_FILES: Final = WorkspaceFiles({})


def list_files(workspace: Path) -> WorkspaceFiles:
    """List the files of a workspace, without the folders of tools. Symbolic links are listed and not followed."""
    entries: dict[str, _Entry] = {}
    unreadable: list[str] = []
    for count, (path, entry) in enumerate(_walk(workspace, unreadable)):
        if count == MOST_ENTRIES:
            return WorkspaceFiles(entries, is_whole=False)
        if entry is not None:
            entries[path] = entry
    return WorkspaceFiles(entries, tuple(unreadable))


def changes_since(before: WorkspaceFiles, workspace: Path, template: Path | None) -> FileChanges:
    """Compare a workspace with its earlier files. Return what differs by path, with diffs of small texts.

    `template` is the folder that the workspace was copied from: the earlier content is read from there.
    """
    after = list_files(workspace)
    if not (before.is_whole and after.is_whole):
        return FileChanges(too_many_files=True)
    # What is in a folder that one side could not list is no change.
    paths = [
        path
        for path in sorted(before.entries.keys() | after.entries.keys())
        if before.entries.get(path) != after.entries.get(path)
        and (path in before.entries or not before.may_hold(path))
        and (path in after.entries or not after.may_hold(path))
    ]
    listed: list[ChangedFile] = []
    room = MOST_DIFF
    for place, path in enumerate(paths):
        if len(listed) == MOST_FILES:
            return FileChanges(files=tuple(listed), left_out=len(paths) - place)
        old, new = before.entries.get(path), after.entries.get(path)
        kind = ChangeKind.ADDED if old is None else ChangeKind.DELETED if new is None else ChangeKind.MODIFIED
        earlier = b"" if old is None else _earlier(template, path, old)
        later = b"" if new is None else _content(workspace / path)
        if kind is ChangeKind.MODIFIED and earlier is not None and earlier == later:
            continue
        name = path.encode("utf-8", "replace").decode("utf-8")  # Without bytes that are not UTF-8
        diff = _diff(name, kind, earlier, later)
        diff = diff if diff and len(diff) <= room else None
        room -= len(diff or "")
        size = None if new is None else new.size
        listed.append(ChangedFile(path=beginning(name, _LONGEST_PATH), change=kind, size=size, diff=diff))
    return FileChanges(files=tuple(listed))


def _walk(workspace: Path, unreadable: list[str]) -> Iterator[tuple[str, _Entry | None]]:
    """Yield every file with its entry, every folder without one. Folders that cannot be listed go to `unreadable`."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(workspace / folder) as listing:
                for one in listing:
                    path = f"{folder}{one.name}"
                    if not one.is_dir(follow_symlinks=False):
                        found = one.stat(follow_symlinks=False)
                        times = found.st_mtime_ns, found.st_ctime_ns
                        yield path, _Entry(found.st_mode, found.st_size, *times, found.st_ino)
                    elif one.name not in FOLDERS_OF_TOOLS:
                        folders.append(f"{path}/")
                        yield path, None
        except OSError:
            unreadable.append(folder)


def _earlier(template: Path | None, path: str, old: _Entry) -> bytes | None:
    """Return the content that a file had; `None` where it is not known."""
    if template is None:
        return None
    try:
        found = (template / path).lstat()
    except OSError:
        return None
    # A copy keeps the time of its content, unless a reset or a hook has changed the file.
    is_copy = (found.st_mode, found.st_size, found.st_mtime_ns) == (old.mode, old.size, old.content_changed)
    return _content(template / path) if is_copy else None


def _content(file: Path) -> bytes | None:
    """Return the content of a small regular file; `None` for any other."""
    try:
        # The agent may have left a pipe, which would block, or a link to a file outside.
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(number, "rb") as opened:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        try:
            content = opened.read(MOST_COMPARED + 1)
        except OSError:
            return None
    return content if len(content) <= MOST_COMPARED else None


def _diff(name: str, kind: ChangeKind, earlier: bytes | None, later: bytes | None) -> str | None:
    """Return a unified diff, as git writes it; `None` of other files than small texts."""
    old, new = _lines(earlier), _lines(later)
    if old is None or new is None:
        return None
    # Only the lines between those that both texts begin and end with have to be compared.
    shorter = min(len(old), len(new))
    begin = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    end = next((place for place in range(shorter - begin) if old[-1 - place] != new[-1 - place]), shorter - begin)
    if shorter - begin - end > MOST_LINES:
        return None
    name = name.replace("\n", "?")
    from_file = "/dev/null" if kind is ChangeKind.ADDED else f"a/{name}"
    to_file = "/dev/null" if kind is ChangeKind.DELETED else f"b/{name}"
    return "\n".join(unified_diff(old, new, from_file, to_file, lineterm=""))


def _lines(content: bytes | None) -> list[str] | None:
    if content is None or b"\0" in content:
        return None
    try:
        lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    last = lines.pop()
    return [*lines, last + _NO_NEWLINE] if last else lines
