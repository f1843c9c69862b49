"""Write the files of a commit into a folder exactly as they were committed.

`git archive` and `git checkout` obey attributes, which can leave out and convert files, and which a change can edit.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from passgate.tasks.errors import UsageError
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.integrity import git
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import LINK, SUBMODULE, GitError, git_bytes, split_names
from passgate.tasks.integrity.objects import Objects

MOST_FILES = 100_000
MOST_BYTES = 512 * 1024 * 1024
_PROGRAM = "100755"
_NEVER_COPIED = frozenset({".git", STATE_FOLDER.name, "__pycache__"})
# How a commit's placeholder of a file begins that a git filter (LFS, git-crypt) stores elsewhere or encrypts.
_PLACEHOLDERS = (b"version https://git-lfs.github.com/spec/", b"\0GITCRYPT\0")


class CommitTooLargeError(UsageError):
    """A commit has more or larger files than passgate writes out."""


@dataclass(frozen=True)
class CommittedFile:
    """A file of a commit, or a submodule."""

    path: str  # Relative to the repository
    mode: str
    hash: str  # Of the content; the commit of a submodule
    size: int

    @property
    def is_link(self) -> bool:
        return self.mode == LINK

    @property
    def is_submodule(self) -> bool:
        return self.mode == SUBMODULE


def is_committed(objects: Objects, commit: str, path: str) -> bool:
    """Return whether a commit contains a path of the repository. Raise `GitError`."""
    return path == "." or bool(objects.mode(commit, path))


def path_dependencies(checkout: Checkout, commit: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that decide which bytes the files at and below `paths` contain. Raise `UsageError`.

    They are the attributes files of the folders above, and those of these folders that are links or submodules, in the
    commit or now.
    """
    folders = {parent for path in paths for parent in PurePosixPath(path).parents}
    attributes = {(folder / ".gitattributes").as_posix() for folder in folders}
    above = [folder.as_posix() for folder in folders - {PurePosixPath()}]
    try:
        modes = {name: {checkout.objects.mode(commit, name), checkout.index.get(name)} for name in above}
    except GitError as error:
        raise UsageError(f"git cannot list the files of {commit[:12]}: {error}") from error
    return sorted(attributes | {name for name, both in modes.items() if both & {LINK, SUBMODULE}})


def committed_files(root: Path, commit: str, paths: Sequence[str] = ()) -> list[CommittedFile]:
    """List the files and submodules of a commit at and below `paths`, or all of them without paths.

    Raise `UsageError` if git fails, `CommitTooLargeError` for too many or too large files.
    """
    names = [] if "." in paths else paths
    try:
        printed = git_bytes(
            root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", *names, seconds=git.LONG_SECONDS
        )
    except GitError as error:
        raise UsageError(f"git cannot list the files of {commit[:12]}: {error}") from error
    files = []
    for line in split_names(printed):
        fields, _, path = line.partition("\t")
        mode, _, hash_, length = fields.split()
        files.append(CommittedFile(path, mode, hash_, 0 if length == "-" else int(length)))
    size = sum(file.size for file in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise CommitTooLargeError(
            f"{len(files)} files with {size / 1e6:.0f} MB at {commit[:12]} are more than the {MOST_FILES} files and "
            f"{MOST_BYTES / 1e6:.0f} MB that can be taken out"
        )
    return files


def write_files(objects: Objects, files: Sequence[CommittedFile], folder: Path) -> None:
    """Write files of a commit, but not its submodules, into a folder that contains at most others of the same commit.

    Raise `UsageError` if git cannot read them, `OSError` if they cannot be written.
    """
    # Links last, so that nothing is written through one.
    for file in sorted((file for file in files if not file.is_submodule), key=lambda file: file.is_link):
        if not {"..", ".git", ""}.isdisjoint(file.path.split("/")):
            raise UsageError(f"git has a file {file.path!r}, a path that cannot be written")
        try:
            found = objects.read(file.hash)
        except GitError as error:
            raise UsageError(f"git cannot read the files of the merge base: {error}") from error
        if found is None:
            raise UsageError(f"git does not have {file.path} of the merge base: fetch the history")
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.is_link:
            place.symlink_to(os.fsdecode(found[1]))
        else:
            place.write_bytes(found[1])
            place.chmod(0o755 if file.mode == _PROGRAM else 0o644)


def add_uncommitted(
    root: Path, files: Sequence[CommittedFile], edited: Iterable[str], paths: Sequence[str], folder: Path
) -> None:
    """Copy from the working tree what a commit does not contain: ignored files below `paths`, and the contents of files
    that a git filter stores elsewhere, unless they are `edited`. Raise `OSError`, `GitError`.
    """
    unedited = {file.path for file in files if not (file.is_link or file.is_submodule)} - {*edited}
    placeholders = [path for path in unedited if _is_placeholder(folder / path) and not _is_placeholder(root / path)]
    for path in placeholders:
        shutil.copyfile(root / path, folder / path)
    ignored = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *paths)
    for path in split_names(git_bytes(root, *ignored, seconds=git.LONG_SECONDS)):
        place = folder / path
        # git prints another repository as a name that ends with a slash.
        if path.endswith("/") or not _NEVER_COPIED.isdisjoint(PurePosixPath(path).parts):
            continue
        if not place.exists() and not place.is_symlink() and place.parent.resolve().is_relative_to(folder.resolve()):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / path, place, follow_symlinks=False)


def _is_placeholder(file: Path) -> bool:
    if not file.is_file():
        return True
    with file.open("rb") as content:
        return content.read(64).startswith(_PLACEHOLDERS)
