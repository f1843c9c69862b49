"""Where a history and runs may lie: in no folder that git tracks.

If git tracks a folder that only passgate writes, a change could bring its files.
"""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from passgate.tasks.errors import UsageError
from passgate.tasks.history.dataset import History
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import LINK, SUBMODULE, GitError, printable_name
from passgate.tasks.integrity.judging_places import way

_TRACKED_AS = {
    "file": "git tracks",
    "link": "git tracks the link",
    "submodule": "it lies in the submodule",
}


def open_history(location: str, checkout: Checkout | None = None) -> History:
    """Open the history at a folder or URL, for runs of what is checked out, by default around the working folder.

    Raise `UsageError` for one that git tracks there or that is a file, `StorageError` for one that cannot be opened.
    """
    history = History(location)
    if history.folder is not None:
        if history.folder.is_file():
            raise UsageError(f"the history {location} is a file: name a folder or URL with --history or in gates.yaml")
        refuse_tracked(f"the history {location}", history.folder, checkout)
    return history


_Identity = tuple[int, int]
"""The device and inode of a file or folder: file systems have several spellings of one name."""


@dataclass(frozen=True)
class _FolderOnDisk:
    """A folder with all that lies in it on the disk, links followed."""

    links: set[_Identity | None]  # The links that lead to it or to what it holds
    folders: set[_Identity | None]  # The folder and all below it
    around: set[_Identity | None]  # The folders that these lie in


@dataclass(frozen=True)
class Tracked:
    """Something in a folder that git tracks."""

    top: Path  # The top folder of the repository that tracks it
    path: str  # Relative to the top folder
    kind: Literal["file", "link", "submodule"]
    root: str  # What to take out of git: the folder itself, the link or the submodule; relative to the top folder


def refuse_tracked(what: str, place: Path, checkout: Checkout | None = None) -> None:
    """Refuse a folder of passgate's that the repository around `checkout`, or one further out, tracks.

    `what` names the folder in the message, with its article. Raise `UsageError`, also if git cannot tell.
    """
    checkout = checkout or Checkout(Path.cwd())
    try:
        found = find_tracked(place, checkout)
    except GitError as error:
        raise UsageError(f"git cannot tell whether {what} is in the repository: {error}") from error
    if found is None:
        return
    name = printable_name(os.path.relpath(found.top / found.path, checkout.folder))
    why = f"{what} must not be in git, but {_TRACKED_AS[found.kind]} {name}"
    root = shlex.quote(printable_name(os.path.relpath(found.top / found.root, checkout.folder)))
    remedy = f"take it out of git with `git rm -r --cached {root}`, a line in .gitignore and a commit"
    if not found.root:
        remedy = f"{what} needs a folder of its own"
    raise UsageError(f"{why}, so a change could bring its own results: {remedy}")


def find_tracked(place: Path, checkout: Checkout) -> Tracked | None:
    """Return the first thing in a folder that the repository around `checkout` tracks, or one further out; `None` if
    there is nothing. Raise `GitError` if git knows the repository and cannot tell.
    """
    folder = _folder_on_disk(checkout.folder.absolute() / place)
    # The repository that the checkout's folder lies in, the one that this lies in, and so on.
    repositories = {checkout.top: checkout}
    # Git is asked only where it could find a repository. With GIT_DIR set it finds the same one from everywhere.
    for parent in checkout.top.parents if checkout.top else ():
        if (parent / ".git").exists():
            outer = Checkout(parent)
            repositories.setdefault(outer.top, outer)
    return next((found for each in repositories.values() for found in _tracked_in(each, folder)), None)


def _tracked_in(checkout: Checkout, place: _FolderOnDisk) -> Iterator[Tracked]:
    top = checkout.top
    # A repository without a commit, or that git does not open, has no change.
    if top is None or not checkout.head or not (place.links or place.folders):
        return
    known: dict[str, _Identity | None] = {}
    for path, mode in checkout.index.items():
        folder = path.rpartition("/")[0]
        if folder not in known:
            known[folder] = _identity(top / folder)
        if mode == LINK and _identity(top / path, follow=False) in place.links:
            yield Tracked(top, path, "link", path)
        elif known[folder] in place.folders:
            yield Tracked(top, path, "file", _outermost(top, folder, place))
        elif mode == SUBMODULE and _identity(top / path) in place.folders | place.around:
            yield Tracked(top, path, "submodule", path)


def _outermost(top: Path, folder: str, place: _FolderOnDisk) -> str:
    """Return the outermost folder on the way to a tracked one that belongs to the place; empty for the top folder."""
    parts = folder.split("/") if folder else []
    ways = ("/".join(parts[:length]) for length in range(len(parts) + 1))
    return next((one for one in ways if _identity(top / one) in place.folders), folder)


def _folder_on_disk(place: Path) -> _FolderOnDisk:
    links: set[Path] = set()
    folders: set[Path] = set()
    ends: set[Path] = set()
    waiting = [place]
    while waiting:
        passed, end = way(waiting.pop())
        links.update(passed)
        if end in folders or not end.is_dir():
            continue
        ends.add(end)
        for folder, inner, files in os.walk(end):
            folders.add(Path(folder))
            waiting += [Path(folder, name) for name in (*inner, *files) if Path(folder, name).is_symlink()]
    return _FolderOnDisk(
        links={_identity(link, follow=False) for link in links} - {None},
        folders={_identity(folder) for folder in folders} - {None},
        around={_identity(parent) for end in ends for parent in end.parents} - {None},
    )


def _identity(path: Path, *, follow: bool = True) -> _Identity | None:
    """Return the identity of a path; `None` for what is not there."""
    try:
        found = path.stat(follow_symlinks=follow)
    except OSError:
        return None
    return found.st_dev, found.st_ino
