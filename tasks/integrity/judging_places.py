"""Where in a repository the files are that a gate judges by, where links lead from there, and which a change edits."""

import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from passgate.tasks.errors import UsageError
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.history.symlinks import way
from passgate.tasks.integrity.git import SUBMODULE, Checkout, GitError, git_bytes, names_of, printable_name
from passgate.tasks.model.run import Edit

What = Literal["tasks and graders", "policy", "prices", "quarantine", "baseline pins", "agents"]

_GRADERS: Final = "tasks and graders"
_NEVER_ENTERED = frozenset({".git", STATE_FOLDER.name, "__pycache__", "node_modules"})
_KINDS: Mapping[str, Literal["added", "changed", "deleted"]] = {"A": "added", "D": "deleted"}
_MADE_BY_PYTHON = "__pycache__"
_SECONDS = 60
_DIFF = ("diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")


@dataclass(frozen=True)
class JudgingPlaces:
    """The suites folder and the gates file, and what else judges, all relative to the repository's top folder."""

    suites: str
    gates: str
    what: Mapping[str, What]  # Every file and folder that judges, where links lead included
    leads_out: bool = False  # Whether a link leads from any of them out of the repository

    def with_more(self, names: Iterable[str], above: Iterable[str], what: What = _GRADERS) -> "JudgingPlaces":
        """With further files: `names` are relative to the suites folder, and those of `above` lie in any
        folder above it. What lies outside of the repository is left out, and so is what holds the suites folder.
        """
        outer = PurePosixPath(self.suites).parents
        more = [
            *(f"{self.suites}/{name}" for name in names),
            *(f"{folder}/{name}" for folder in outer for name in above),
        ]
        paths = (PurePosixPath(posixpath.normpath(name)) for name in more)
        inside = [path for path in paths if not path.is_absolute() and path.parts[:1] != ("..",) and path not in outer]
        return replace(self, what={**dict.fromkeys(map(str, inside), what), **self.what})

    def with_ways(self, ways: Collection[str]) -> "JudgingPlaces":
        """With what says of which bytes the files are, relative to the repository. What lies below a way that is a link
        or a submodule is known to git by the way alone.
        """
        what: dict[str, What] = {**dict.fromkeys(ways, _GRADERS), **self.what}
        known = {*ways}
        below = {name for name in what if any(str(folder) in known for folder in PurePosixPath(name).parents)}
        return replace(self, what={name: one for name, one in what.items() if name not in below})


def judging_places(
    root: Path, working_folder: Path, suites: str, gates: str, beside_gates: Mapping[str, What]
) -> JudgingPlaces | None:
    """The places of what a request names in a repository; `None` where any of it is named outside.

    `root` is the repository's top folder with all links resolved, `beside_gates` are the names of further files in the
    folder of the gates file.
    """
    folder = Path(os.path.normpath(working_folder.resolve() / suites))
    file = Path(os.path.normpath(working_folder.resolve() / gates))
    named: dict[Path, What] = {folder: _GRADERS, file: "policy"}
    named |= {file.with_name(name): what for name, what in beside_gates.items()}
    if not all(path.is_relative_to(root) or path.resolve().is_relative_to(root) for path in named):
        return None
    # A name may lead through a link to the repository, and then only what it leads to lies inside.
    both = {place: what for path, what in named.items() for place in (path, path.resolve())}
    what = {_relative(path, root): what for path, what in both.items() if path.is_relative_to(root)}
    leads_out = not all(path.resolve().is_relative_to(root) for path in named)
    return JudgingPlaces(_place(folder, root), _place(file, root), what, leads_out)


def _place(path: Path, root: Path) -> str:
    return _relative(path if path.is_relative_to(root) else path.resolve(), root)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


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


def find_edits(checkout: Checkout, commit: str, judging: Mapping[str, What]) -> tuple[Edit, ...]:
    """The files that differ between a commit and the working tree, in the order of their paths.

    `judging` says of files and folders, relative to the repository's top folder, what they are. Changes count whether
    or not they are staged or committed, and so do new files that git does not ignore. Raises `UsageError` where git
    cannot tell: a change that cannot be compared must not pass for one without edits.
    """
    if not judging:
        return ()
    try:
        compared = git_bytes(checkout.top or checkout.folder, *_DIFF, commit, "--", *judging, seconds=_SECONDS)
        new = [name for name in checkout.untracked if _what(name, judging) is not None]
        unwatched = _unwatched(checkout, judging) | _edited_submodules(checkout, judging)
    except GitError as error:
        raise UsageError(f"git cannot list what this change edits of the files that judge it: {error}") from error
    words = iter(names_of(compared))
    # Statuses and names stand there in turns.
    kinds = {name: _KINDS.get(status[0], "changed") for status, name in zip(words, words, strict=True)}
    for name in new:
        if _MADE_BY_PYTHON not in PurePosixPath(name).parts:
            kinds[name] = "changed" if name in kinds else "added"
    kinds = unwatched | kinds
    edited = {name: _what(name, judging) or _GRADERS for name in sorted(kinds)}
    return tuple(Edit(path=printable_name(name), kind=kinds[name], what=what) for name, what in edited.items())


def _unwatched(checkout: Checkout, judging: Iterable[str]) -> dict[str, Literal["added", "changed", "deleted"]]:
    """The files that git is told to take as unchanged, or that a sparse checkout leaves out. Raises `GitError`."""
    folder = checkout.top or checkout.folder
    entries = names_of(git_bytes(folder, "ls-files", "-v", "-z", "--", *judging, seconds=_SECONDS))
    names = [entry[2:] for entry in entries if entry[0].islower() or entry[0] == "S"]
    return {name: "changed" if os.path.lexists(folder / name) else "deleted" for name in names}


def _edited_submodules(checkout: Checkout, judging: Mapping[str, What]) -> dict[str, Literal["changed"]]:
    """The submodules whose files are others than those of the commit that is checked out in them. Raises `GitError`.

    Asked about the repository around them git would start another git in each, which goes by the submodule's settings.
    """
    top = checkout.top or checkout.folder
    submodules = [path for path, mode in checkout.index.items() if mode == SUBMODULE and _what(path, judging)]
    return {path: "changed" for path in submodules if _is_edited(top / path)}


def _is_edited(submodule: Path) -> bool:
    """Whether the checkout of a submodule, or of one in it, has other files than its commit; a missing one has not."""
    if not (submodule / ".git").exists():
        return False
    status = names_of(git_bytes(submodule, *_STATUS, seconds=_SECONDS))
    if any(_MADE_BY_PYTHON not in PurePosixPath(entry[3:]).parts for entry in status):
        return True
    staged = names_of(git_bytes(submodule, "ls-files", "--stage", "-z", seconds=_SECONDS))
    inner = (path for entry, _, path in (entry.partition("\t") for entry in staged) if entry.startswith(SUBMODULE))
    return any(_is_edited(submodule / path) for path in inner)


def _what(name: str, judging: Mapping[str, What]) -> What | None:
    """What the file is by its own entry, else by that of the innermost folder that it lies in; `None` without any."""
    path = PurePosixPath(name)
    return next((judging[str(place)] for place in (path, *path.parents) if str(place) in judging), None)
