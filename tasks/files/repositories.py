"""Where git keeps a repository: its folder, that of a linked worktree, its objects, and those that it borrows."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST_BORROWED: Final = 20  # Repositories whose objects one borrows, directly or through another one


def git_folders(checkout: Path) -> list[Path]:
    """Return the folders, resolved, that hold what the `.git` of a checkout leads to; none where it has none."""
    entry = checkout / ".git"
    own = entry if entry.is_dir() else _led_to(entry, "gitdir: ")
    if own is None:
        return []
    # The folder of a linked worktree names the one that it shares with the others.
    folders = [own, *([shared] if (shared := _led_to(own / "commondir")) else [])]
    folders += [folder for git in folders for folder in _objects(git / "objects")]
    return list(dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()))


def _objects(folder: Path) -> Iterator[Path]:
    """Yield a folder of objects, and those that it borrows from."""
    waiting, seen = [folder], set[Path]()
    while waiting and len(seen) < _MOST_BORROWED:
        objects = waiting.pop()
        if objects in seen:
            continue
        seen.add(objects)
        yield objects
        with suppress(OSError, UnicodeDecodeError):
            lines = (objects / "info" / "alternates").read_text(encoding="utf-8").splitlines()
            waiting += [objects / line for line in lines if line and not line.startswith("#")]


def _led_to(file: Path, begin: str = "") -> Path | None:
    """Return the folder that a file of git names, relative to the folder that the file is in."""
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_text(encoding="utf-8").strip()
        if text.startswith(begin):
            return file.parent / text.removeprefix(begin)
    return None
