"""Where git keeps a repository: its folder, that of a linked worktree, its objects, and those that it borrows."""

from contextlib import suppress
from pathlib import Path
from typing import Final

_MOST_BORROWED: Final = 20  # Repositories whose objects one borrows, directly or through another one


def git_folders(checkout: Path) -> list[Path]:
    """Return the resolved folders that hold what the `.git` of a checkout leads to; none if it has none."""
    entry = checkout / ".git"
    own = entry if entry.is_dir() else _linked_folder(entry, "gitdir: ")
    if own is None:
        return []
    # The folder of a linked worktree names the one that it shares with the others.
    shared = _linked_folder(own / "commondir")
    folders = [own, *([shared] if shared else [])]
    for git in folders.copy():
        waiting, seen = [git / "objects"], set[Path]()
        while waiting and len(seen) < _MOST_BORROWED:
            objects = waiting.pop()
            if objects not in seen:
                seen.add(objects)
                folders.append(objects)
                with suppress(OSError, UnicodeDecodeError):
                    lines = (objects / "info" / "alternates").read_text(encoding="utf-8").splitlines()
                    waiting += [objects / line for line in lines if line and not line.startswith("#")]
    return list(dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()))


def _linked_folder(file: Path, begin: str = "") -> Path | None:
    """Return the folder that a file of git names, relative to the folder that the file is in."""
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_text(encoding="utf-8").strip()
        if text.startswith(begin):
            return file.parent / text.removeprefix(begin)
    return None
