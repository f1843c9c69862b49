"""Where links in a repository lead."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from passgate.tasks.history.run_folder import STATE_FOLDER
from passgate.tasks.history.symlinks import way

_NEVER_ENTERED = frozenset({".git", STATE_FOLDER.name, "__pycache__", "node_modules"})


def linked_places(root: Path, places: Iterable[str], left_out: Collection[str] = ()) -> set[str]:
    """The links on the way to these places of a folder and below them, and all that they lead through and to.

    Everything is relative to the folder `root`, which has no links in its own path; what lies outside is no part of
    the answer. Nothing is looked for in the places that are `left_out`.
    """
    never = {root / place for place in left_out}
    found: set[Path] = set()
    waiting, seen = [root / place for place in places], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        links, end = way(path)
        if links:
            found |= {*links, end}
        if end.is_relative_to(root) and end.is_dir():
            waiting += _links_below(end, never)
    return {path.relative_to(root).as_posix() for path in found if path.is_relative_to(root)}


def _links_below(folder: Path, never: Collection[Path]) -> Iterator[Path]:
    if folder in never:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink():
            yield Path(entry)
        elif entry.name not in _NEVER_ENTERED and entry.is_dir():
            yield from _links_below(Path(entry), never)
