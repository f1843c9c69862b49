"""The files of a repository that decide a verdict: their places, the targets of links, the edits of a change."""

import io
import os
import posixpath
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from dotenv import dotenv_values

from passgate.tasks.errors import UsageError
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import LINK, SUBMODULE, GitError, git_bytes, printable_name, split_names
from passgate.tasks.model.run import Edit

What = Literal["tasks and graders", "policy", "prices", "quarantine", "baseline pins", "agents"]

_GRADERS: Final = "tasks and graders"
_NEVER_ENTERED = frozenset({".git", STATE_FOLDER.name, "__pycache__", "node_modules"})
_KINDS: Mapping[str, Literal["added", "changed", "deleted"]] = {"A": "added", "D": "deleted"}
_BYTECODE = "__pycache__"
_DIFF = ("diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty")
_MOST_STEPS = 1000  # Through links


@dataclass(frozen=True)
class JudgingPlaces:
    """The suites folder, the gates file and every other judging file, relative to the repository's top folder."""

    suites: str
    gates: str
    what: Mapping[str, What]  # Every judging file and folder, with the targets of links
    leads_out: bool = False  # Whether a link of theirs leads out of the repository

    def add(self, names: Iterable[str], above: Iterable[str], what: What = _GRADERS) -> "JudgingPlaces":
        """Return these places and more: `names` relative to the suites folder, and `above` in every folder above it.

        Leave out what is outside of the repository or contains the suites folder.
        """
        outer = PurePosixPath(self.suites).parents
        more = [
            *(f"{self.suites}/{name}" for name in names),
            *(f"{folder}/{name}" for folder in outer for name in above),
        ]
        paths = (PurePosixPath(posixpath.normpath(name)) for name in more)
        inside = [path for path in paths if not path.is_absolute() and path.parts[:1] != ("..",) and path not in outer]
        return replace(self, what={**dict.fromkeys(map(str, inside), what), **self.what})

    def add_dependencies(self, checkout: Checkout, commit: str) -> "JudgingPlaces":
        """Return these places and the paths that decide which bytes are there: the attributes files of the folders
        above, and those of these folders that are links or submodules, in the commit or now. Raise `UsageError`.

        Git knows nothing below a link or a submodule, so leave out what is below one.
        """
        folders = {parent for path in self.what for parent in PurePosixPath(path).parents}
        paths = {(folder / ".gitattributes").as_posix() for folder in folders}
        try:
            for name in map(str, folders - {PurePosixPath()}):
                if {checkout.objects.mode(commit, name), checkout.index.get(name)} & {LINK, SUBMODULE}:
                    paths.add(name)
        except GitError as error:
            raise UsageError(f"git cannot list the files of {commit[:12]}: {error}") from error
        what: dict[str, What] = {**dict.fromkeys(sorted(paths), _GRADERS), **self.what}
        below = {name for name in what if not paths.isdisjoint(map(str, PurePosixPath(name).parents))}
        return replace(self, what={name: one for name, one in what.items() if name not in below})


def judging_places(
    root: Path, working_folder: Path, suites: str, gates: str, beside_gates: Mapping[str, What]
) -> JudgingPlaces | None:
    """Return the places that a request names, or `None` if one of them is outside of the repository.

    `root` is the repository's top folder without links, `beside_gates` names further files in the gates file's folder.
    """
    folder = Path(os.path.normpath(working_folder.resolve() / suites))
    file = Path(os.path.normpath(working_folder.resolve() / gates))
    named: dict[Path, What] = {folder: _GRADERS, file: "policy"}
    named |= {file.with_name(name): what for name, what in beside_gates.items()}
    if not all(path.is_relative_to(root) or path.resolve().is_relative_to(root) for path in named):
        return None
    # A name can reach the repository through a link; then only the target is inside.
    both = {place: what for path, what in named.items() for place in (path, path.resolve())}
    what = {_relative(path, root): what for path, what in both.items() if path.is_relative_to(root)}
    leads_out = not all(path.resolve().is_relative_to(root) for path in named)
    folder, file = (path if path.is_relative_to(root) else path.resolve() for path in (folder, file))
    return JudgingPlaces(_relative(folder, root), _relative(file, root), what, leads_out)


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def way(path: Path) -> tuple[list[Path], Path]:
    """Return the links that an absolute path leads through, and its end, which need not exist."""
    links: list[Path] = []
    here, rest = Path(path.anchor), [*path.parts[1:]]
    for _ in range(_MOST_STEPS):
        if not rest:
            break
        part = rest.pop(0)
        step = here.parent if part == os.pardir else here / part
        if step.is_symlink():
            links.append(step)
            target = step.readlink()
            here = Path(target.anchor) if target.is_absolute() else here
            rest = [*target.parts[len(Path(target.anchor).parts) :], *rest]
        else:
            here = step
    return links, here


def linked_places(root: Path, places: Iterable[str], left_out: Collection[str] = ()) -> set[str]:
    """Return the links on the way to `places` and below them, and everything that these links lead through and to.

    All paths are relative to the folder `root`, whose own path has no links. Leave out what is outside of it. Do not
    search `left_out`.
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
    """List the judging files that differ between a commit and the working tree, sorted by path.

    `judging` maps files and folders, relative to the repository's top folder, to their kind. Changes count whether they
    are staged, committed or neither, and so do new files that git does not ignore. Raise `UsageError` if git fails,
    because a change that cannot be compared must not look like one without edits.
    """
    if not judging:
        return ()
    top = checkout.top or checkout.folder
    try:
        compared = git_bytes(top, *_DIFF, commit, "--", *judging)
        new = [name for name in checkout.untracked if _what(name, judging) is not None]
        # Files that git assumes to be unchanged, or that a sparse checkout leaves out.
        entries = split_names(git_bytes(top, "ls-files", "-v", "-z", "--", *judging))
        unwatched = [entry[2:] for entry in entries if entry[0].islower() or entry[0] == "S"]
        # `git status` of the outer repository would start a git that obeys a submodule's settings.
        submodules = [path for path, mode in checkout.index.items() if mode == SUBMODULE and _what(path, judging)]
        dirty = [path for path in submodules if _is_dirty(top / path)]
    except GitError as error:
        raise UsageError(f"git cannot list what this change edits of the files that judge it: {error}") from error
    words = iter(split_names(compared))
    # git prints a status and a name in turn.
    kinds = {name: _KINDS.get(status[0], "changed") for status, name in zip(words, words, strict=True)}
    for name in new:
        if _BYTECODE not in PurePosixPath(name).parts:
            kinds[name] = "changed" if name in kinds else "added"
    for name in (*unwatched, *dirty):
        kinds.setdefault(name, "changed" if os.path.lexists(top / name) else "deleted")
    edited = {name: _what(name, judging) or _GRADERS for name in sorted(kinds)}
    return tuple(Edit(path=printable_name(name), kind=kinds[name], what=what) for name, what in edited.items())


def _is_dirty(submodule: Path) -> bool:
    """Return whether a submodule, or one in it, has other files than its commit; not if it is not checked out."""
    if not (submodule / ".git").exists():
        return False
    status = split_names(git_bytes(submodule, *_STATUS))
    if any(_BYTECODE not in PurePosixPath(entry[3:]).parts for entry in status):
        return True
    staged = split_names(git_bytes(submodule, "ls-files", "--stage", "-z"))
    inner = (path for entry, _, path in (entry.partition("\t") for entry in staged) if entry.startswith(SUBMODULE))
    return any(_is_dirty(submodule / path) for path in inner)


def _what(name: str, judging: Mapping[str, What]) -> What | None:
    """Return the kind of a file: of its own entry, else of the innermost folder with an entry, else `None`."""
    path = PurePosixPath(name)
    return next((judging[str(place)] for place in (path, *path.parents) if str(place) in judging), None)


def edited_prefect_settings(checkout: Checkout, commit: str) -> tuple[str, ...]:
    """Return the tracked files of the working folder whose Prefect settings differ from those of a commit: a logging
    configuration can name code that Prefect calls. Raise `GitError`.
    """
    edited = []
    for name in (".env", "prefect.toml", "pyproject.toml"):
        file = checkout.folder.resolve() / name
        path = file.relative_to(checkout.top or file.parent).as_posix()
        # An untracked file belongs to the machine, not to the change.
        if checkout.is_tracked(path):
            before = checkout.objects.file(commit, path) or b""
            now = file.read_bytes() if file.is_file() else b""
            if _prefect_settings(name, before) != _prefect_settings(name, now):
                edited.append(name)
    return tuple(edited)


def _prefect_settings(name: str, content: bytes) -> Any:
    """Return the Prefect settings of a file, or its bytes if they cannot be parsed."""
    try:
        text = content.decode("utf-8")
        if name == ".env":
            values = dotenv_values(stream=io.StringIO(text), interpolate=False)
            return {key: value for key, value in values.items() if key.upper().startswith("PREFECT_")}
        settings = tomllib.loads(text)
    except ValueError:
        return content
    if name == "prefect.toml":
        return settings
    tools = settings.get("tool")
    return tools.get("prefect", {}) if isinstance(tools, dict) else {}
