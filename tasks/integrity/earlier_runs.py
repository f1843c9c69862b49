"""The runs of a history, for whoever judges, reuses or shows them: none that a change brings, none that cannot be.

Whoever makes a change could bring the files of a folder that only passgate writes, if git tracks it.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.dataset import ALL_DAYS, Days, History, TasksOfRuns, joined
from passgate.tasks.history.encoding import codes_of, decoded
from passgate.tasks.history.plausible import (
    CHECKED,
    CHECKED_OF_SUMMARIES,
    implausible_runs,
    implausible_summaries,
)
from passgate.tasks.history.symlinks import way
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import LINK, SUBMODULE, GitError, printable_name
from passgate.tasks.integrity.merge_base import commit_times
from passgate.tasks.model.baseline import Repeat

_NAMED = 3
Part = TypeVar("Part")
_TRACKED_AS = {
    "file": "git tracks",
    "link": "git tracks the link",
    "submodule": "it lies in the submodule",
}


@dataclass(frozen=True)
class EarlierRuns:
    """Rows of a history that can be what they say."""

    trials: pd.DataFrame
    left_out: str = ""  # How many trials are not among them, and why; empty where all are
    renamed: Mapping[str, str] = field(default_factory=dict)  # Of tasks that had another name in them, that name
    repeats: tuple[Repeat, ...] = ()  # Of the commit that is run, the oldest first


@dataclass(frozen=True)
class EarlierSummaries:
    """Summaries of a history that can be what they say: a row per run and eval task."""

    table: pa.Table
    left_out: str = ""  # As of `EarlierRuns`


@dataclass(frozen=True)
class Kept(Generic[Part]):
    """What is kept of the portions of a history that can be what they say."""

    parts: list[Part]
    left_out: str = ""  # As of `EarlierRuns`


def open_history(location: str, checkout: Checkout) -> History:
    """The history at a folder or URL, for runs of what is checked out.

    Raises `UsageError` for one that git tracks there or that is a file, `StorageError` for one that cannot be opened.
    """
    history = History(location)
    if history.folder is not None:
        if history.folder.is_file():
            raise UsageError(f"the history {location} is a file: name a folder or URL with --history or in gates.yaml")
        refuse_tracked(f"the history {location}", history.folder, checkout)
    return history


def read_earlier_runs(
    history: History,
    checkout: Path,
    now: datetime,
    columns: Sequence[str],
    where: Mapping[str, str] | None = None,
    of: TasksOfRuns | None = None,
) -> EarlierRuns:
    """The rows of a history whose columns have these values, without the runs that cannot be what they say; with `of`
    only those of some tasks and runs.

    `checkout` lies in the repository whose commits the runs name; `open_history` says whether git tracks the history
    there. Raises `StorageError` for a history that cannot be read.
    """
    wanted = tuple(dict.fromkeys((*columns, *CHECKED)))
    trials = history.trials(where, wanted, of)
    try:
        wrong = implausible_runs(trials, commit_times(checkout, trials["git_commit"].dropna().unique()), now)
    except (ValueError, TypeError, OverflowError) as error:
        raise StorageError(f"the history {history.location} holds rows that are not passgate's: {error}") from error
    is_wrong = trials["run_id"].isin(list(wrong))
    kept, count = trials[~is_wrong][list(columns)].reset_index(drop=True), int(is_wrong.sum())
    return EarlierRuns(kept, _left_out(count, "trial", wrong))


def read_earlier_summaries(history: History, checkout: Path, now: datetime, columns: Sequence[str]) -> EarlierSummaries:
    """The summaries of a history without the runs that cannot be what they say, as `read_earlier_runs` has the trials.

    Raises `StorageError` for a history that cannot be read.
    """
    earlier = read_encoded_summaries(history, checkout, now, columns)
    return EarlierSummaries(decoded(earlier.table), earlier.left_out)


def read_encoded_summaries(
    history: History,
    checkout: Path,
    now: datetime,
    columns: Sequence[str],
    days: Days = ALL_DAYS,
    suite: str | None = None,
) -> EarlierSummaries:
    """The same of some days or one suite, with their texts encoded."""
    kept = read_summary_portions(history, checkout, now, columns, lambda portion: portion, days, suite)
    return EarlierSummaries(joined(kept.parts, columns), kept.left_out)


def read_summary_portions(
    history: History,
    checkout: Path,
    now: datetime,
    columns: Sequence[str],
    part_of: Callable[[pa.Table], Part],
    days: Days = ALL_DAYS,
    suite: str | None = None,
) -> Kept[Part]:
    """What is kept of each portion of the same encoded summaries, for whoever reads those of years.

    A suite of a run is in one portion. Raises `StorageError` for a history that cannot be read.
    """
    wanted = tuple(dict.fromkeys((*columns, *CHECKED_OF_SUMMARIES)))
    parts, left_out, wrong, seen = list[Part](), 0, dict[str, str](), set[tuple[str, str]]()
    for portion in history.encoded_portions(wanted, days, suite):
        found = _wrong_in(portion, seen, checkout, now)
        kept = portion.select(list(columns))
        if found:
            is_wrong = pc.is_in(portion["run_id"].cast(pa.string()), pa.array(list(found), pa.string()))
            kept, left_out, wrong = kept.filter(pc.invert(is_wrong)), left_out + pc.sum(is_wrong).as_py(), wrong | found
        if len(kept):
            parts.append(part_of(kept))
    return Kept(parts, _left_out(left_out, "task", wrong))


def _wrong_in(portion: pa.Table, seen: set[tuple[str, str]], checkout: Path, now: datetime) -> dict[str, str]:
    """The runs of a portion that cannot be what they say, each with the reason. `seen` are the suites of the runs of
    earlier portions, and gets those of this one.
    """
    commits = [commit for commit in codes_of(portion["git_commit"]).names if commit]
    suites = portion.group_by(["run_id", "suite"]).aggregate([])
    pairs = set(zip(suites["run_id"].to_pylist(), suites["suite"].to_pylist(), strict=True))
    twice = {run_id: "a suite stands in several files of it" for run_id, _ in pairs & seen}
    seen |= pairs
    return twice | implausible_summaries(portion, commit_times(checkout, commits), now)


def _left_out(count: int, noun: str, wrong: Mapping[str, str]) -> str:
    if not wrong:
        return ""
    named = ", ".join(f"{run_id} ({why})" for run_id, why in sorted(wrong.items(), reverse=True)[:_NAMED])
    more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
    return (
        f"passgate leaves out {_counted(len(wrong), 'run')} of the history ({_counted(count, noun)}) that cannot be "
        "genuine. Check the clocks of the machines and who can write the history. To end this note, delete the files "
        f"that are named after {named}{more}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


class _Identity(NamedTuple):
    """A file or folder by whatever name: file systems have several spellings of one name."""

    device: int
    inode: int


@dataclass(frozen=True)
class _FolderOnDisk:
    """What a folder is and holds on the disk, links followed."""

    links: frozenset[_Identity]  # The links that lead to it or to what it holds
    folders: frozenset[_Identity]  # The folder and all below it
    around: frozenset[_Identity]  # The folders that these lie in


@dataclass(frozen=True)
class Tracked:
    """Something of a folder that git tracks."""

    top: Path  # The top folder of the repository that tracks it
    path: str  # Relative to the top folder
    kind: Literal["file", "link", "submodule"]
    root: str  # What to take out of git: the folder itself, the link or the submodule; relative to the top folder


def refuse_tracked(what: str, place: Path, checkout: Checkout) -> None:
    """Refuse a folder of passgate's that the repository around `checkout` tracks, or one that this lies in.

    `what` names the folder in the message, with its article. Raises `UsageError`, also where git cannot tell.
    """
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
    """The first thing of a folder that the repository around `checkout` tracks, or one that this lies in; `None` where
    there is nothing. Raises `GitError` where git knows the repository and cannot tell.
    """
    held = _held(checkout.folder.absolute() / place)
    return next((found for each in _repositories(checkout) for found in _of_repository(each, held)), None)


def _repositories(checkout: Checkout) -> Iterator[Checkout]:
    """The repository that a folder lies in, the one that this lies in, and so on. One without a commit, or that git
    does not open, has no change.
    """
    known = {checkout.top: checkout}
    # Git is asked only where it could find a repository. With GIT_DIR set it finds the same one from everywhere.
    for folder in checkout.top.parents if checkout.top else ():
        if (folder / ".git").exists():
            outer = Checkout(folder)
            known.setdefault(outer.top, outer)
    yield from known.values()


def _of_repository(checkout: Checkout, held: _FolderOnDisk) -> Iterator[Tracked]:
    top = checkout.top
    if top is None or not checkout.head or not (held.links or held.folders):
        return
    known: dict[str, _Identity | None] = {}
    for path, mode in checkout.index.items():
        folder = path.rpartition("/")[0]
        if folder not in known:
            known[folder] = _identity(top / folder)
        if mode == LINK and _identity(top / path, follow=False) in held.links:
            yield Tracked(top, path, "link", path)
        elif known[folder] in held.folders:
            yield Tracked(top, path, "file", _outermost(top, folder, held))
        elif mode == SUBMODULE and _identity(top / path) in held.folders | held.around:
            yield Tracked(top, path, "submodule", path)


def _outermost(top: Path, folder: str, held: _FolderOnDisk) -> str:
    """The outermost folder on the way to a tracked one that belongs to the place; empty for the top folder."""
    parts = folder.split("/") if folder else []
    ways = ("/".join(parts[:length]) for length in range(len(parts) + 1))
    return next((one for one in ways if _identity(top / one) in held.folders), folder)


def _held(place: Path) -> _FolderOnDisk:
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
    around = {parent for end in ends for parent in end.parents}
    return _FolderOnDisk(_identities(links, follow=False), _identities(folders), _identities(around))


def _identities(paths: set[Path], *, follow: bool = True) -> frozenset[_Identity]:
    return frozenset(filter(None, (_identity(path, follow=follow) for path in paths)))


def _identity(path: Path, *, follow: bool = True) -> _Identity | None:
    """`None` for what is not there."""
    try:
        found = path.stat(follow_symlinks=follow)
    except OSError:
        return None
    return _Identity(found.st_dev, found.st_ino)
