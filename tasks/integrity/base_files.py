"""The files of a commit, written into a folder as they were committed.

`git archive` and `git checkout` go by attributes: these leave out files and convert others, and a change may edit them.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from passgate.tasks.errors import UsageError
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.integrity.git import LINK, SUBMODULE, Checkout, GitError, Objects, git_bytes, names_of

MOST_FILES = 100_000
MOST_BYTES = 512 * 1024 * 1024
_SECONDS = 120
_PROGRAM = "100755"
_NEVER_COPIED = frozenset({".git", STATE_FOLDER.name, "__pycache__"})
# What stands in a commit for a file that a filter of git's (LFS, git-crypt) keeps elsewhere or encrypted.
_STAND_INS = (b"version https://git-lfs.github.com/spec/", b"\0GITCRYPT\0")


class CommitTooLargeError(UsageError):
    """There is more at a commit than is taken out of it."""


@dataclass(frozen=True)
class CommittedFile:
    """A file of a commit, or a submodule: another repository in its place."""

    path: str  # Relative to the repository
    mode: str
    hash: str  # Of its content; of a submodule its commit
    size: int

    @property
    def is_link(self) -> bool:
        return self.mode == LINK

    @property
    def is_submodule(self) -> bool:
        return self.mode == SUBMODULE


def is_committed(objects: Objects, commit: str, path: str) -> bool:
    """Whether a commit has a file, a folder or a submodule of this path, relative to the repository.

    Raises `GitError` where git cannot tell.
    """
    return path == "." or bool(objects.mode(commit, path))


def path_dependencies(checkout: Checkout, commit: str, paths: Iterable[str]) -> list[str]:
    """What else says of which bytes the files at and below these paths are: the attributes of the folders above them,
    and of these folders those that are links or submodules, at the commit or now.

    Raises `UsageError` where git cannot tell.
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
    """The files and submodules of a commit at and below these paths, all of them where there are none.

    Raises `UsageError` where git cannot tell, `CommitTooLargeError` where they are too many or too large.
    """
    names = [] if "." in paths else paths
    try:
        printed = git_bytes(root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", *names, seconds=_SECONDS)
    except GitError as error:
        raise UsageError(f"git cannot list the files of {commit[:12]}: {error}") from error
    files = []
    for line in names_of(printed):
        described, _, path = line.partition("\t")
        mode, _, hashed, length = described.split()
        files.append(CommittedFile(path, mode, hashed, 0 if length == "-" else int(length)))
    size = sum(file.size for file in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise CommitTooLargeError(
            f"{len(files)} files with {size / 1e6:.0f} MB at {commit[:12]} are more than the {MOST_FILES} files and "
            f"{MOST_BYTES / 1e6:.0f} MB that can be taken out"
        )
    return files


def write_files(objects: Objects, files: Sequence[CommittedFile], folder: Path) -> None:
    """Write files of a commit, and not its submodules, into a folder that is empty or holds others of the same commit.

    Raises `UsageError` where git cannot give them, `OSError` where they cannot be written.
    """
    # Links come last, so that nothing is written through one.
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
    """Complete the files of a commit in a folder by what no commit holds and the working tree has: ignored files below
    the paths, and of files that are not `edited` the contents that git's filters keep elsewhere. Raises `OSError`,
    `GitError`.
    """
    unedited = {file.path for file in files if not (file.is_link or file.is_submodule)} - {*edited}
    stand_ins = [path for path in unedited if _is_stand_in(folder / path) and not _is_stand_in(root / path)]
    for path in stand_ins:
        shutil.copyfile(root / path, folder / path)
    ignored = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *paths)
    for path in names_of(git_bytes(root, *ignored, seconds=_SECONDS)):
        place = folder / path
        # A name that ends with a slash is another repository.
        if path.endswith("/") or not _NEVER_COPIED.isdisjoint(PurePosixPath(path).parts):
            continue
        if not place.exists() and not place.is_symlink() and place.parent.resolve().is_relative_to(folder.resolve()):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / path, place, follow_symlinks=False)


def _is_stand_in(file: Path) -> bool:
    if not file.is_file():
        return True
    with file.open("rb") as content:
        return content.read(64).startswith(_STAND_INS)
