"""Which of the files that a change is judged by it edits itself."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity.git import GitError, git_bytes
from passgate.tasks.model.run import Edit

What = Literal["tasks and graders", "policy", "prices", "quarantine", "baseline pins", "agents"]

_KINDS: Mapping[str, Literal["added", "deleted"]] = {"A": "added", "D": "deleted"}
_MADE_BY_PYTHON = "__pycache__"
_SECONDS = 60
_DIFF = ("diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


def find_edits(root: Path, commit: str, judging: Mapping[str, What]) -> tuple[Edit, ...]:
    """The files that differ between a commit and the working tree, in the order of their paths.

    `root` is the repository's top folder; `judging` says of files and folders, relative to it, what they are. Changes
    count whether or not they are staged or committed, and so do new files that git does not ignore. Raises `UsageError`
    where git cannot tell: a change that cannot be compared must not pass for one without edits.
    """
    if not judging:
        return ()
    try:
        compared = git_bytes(root, *_DIFF, commit, "--", *judging, seconds=_SECONDS)
        new = git_bytes(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *judging, seconds=_SECONDS)
    except GitError as error:
        raise UsageError(f"git cannot list what this change edits of the files that judge it: {error}") from error
    kinds = dict(_compared(names_of(compared)))
    for name in names_of(new):
        if _MADE_BY_PYTHON not in PurePosixPath(name).parts:
            kinds[name] = "changed" if name in kinds else "added"
    return tuple(Edit(path=printable_name(name), kind=kinds[name], what=_what(name, judging)) for name in sorted(kinds))


def names_of(printed: bytes) -> list[str]:
    """The names that git prints with `-z`, as the file system has them."""
    return [name.decode("utf-8", "surrogateescape") for name in printed.split(b"\0") if name]


def printable_name(name: str) -> str:
    """A name that git prints, as a text that can be written anywhere."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _compared(words: Iterable[str]) -> Iterator[tuple[str, Literal["added", "changed", "deleted"]]]:
    """Statuses and names in turns."""
    rest = iter(words)
    for status, name in zip(rest, rest, strict=True):
        yield name, _KINDS.get(status[0], "changed")


def _what(name: str, judging: Mapping[str, What]) -> What:
    """What the file is by its own entry, else by that of the innermost folder that it lies in."""
    path = PurePosixPath(name)
    return next((judging[str(place)] for place in (path, *path.parents) if str(place) in judging), "tasks and graders")
