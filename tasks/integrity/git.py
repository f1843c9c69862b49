"""Run the user's own git about a folder's repository, and read its commits, without changing anything."""

import getpass
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import Any, Final, Self

from passgate.tasks.errors import UsageError
from passgate.tasks.files.environment import bound_to_no_repository

LINK: Final = "120000"  # The mode of a symbolic link in a repository
SUBMODULE: Final = "160000"
HASH: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SECONDS: Final = 60  # For a command that takes a moment, on a machine that may be busy
LONG_SECONDS: Final = 120  # For a command that takes longer the larger a repository is
# A repository may name programs that git would run, and paths may look like patterns.
_SETTINGS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "advice.graftFileDeprecated=false"),  # git would print the advice before its error message
    "--literal-pathspecs",
)
_NO_PROMPTS = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
# Refs that a fetch brings could put other commits in the place of those that judge.
_NO_REPLACEMENTS = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
_NOT_FOUND = frozenset({1, 2})  # The exit codes for a commit, setting or remote that does not exist
_OUTSIDE = b"not a git repository"


class GitError(UsageError):
    """Git failed, so nothing is known about the repository, not even that there is none. Contains git's message."""


class NoAnswerError(GitError):
    """Git did not answer in time."""


def git_process(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return the arguments of `subprocess` that start a git command in a folder."""
    return {
        "args": ["git", *_SETTINGS, *arguments],
        "cwd": folder,
        "env": {**bound_to_no_repository(os.environ), **_NO_PROMPTS, **_NO_REPLACEMENTS},
    }


def run_git(folder: Path, *arguments: str, seconds: float | None = None) -> "subprocess.CompletedProcess[bytes]":
    """Run a git command, for at most `SECONDS` unless told otherwise. Raise `GitError` if git cannot be run,
    `NoAnswerError` if it takes longer.
    """
    limit = SECONDS if seconds is None else seconds
    try:
        process = git_process(folder, *arguments)
        return subprocess.run(**process, input=b"", capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoAnswerError(f"git {arguments[0]} took longer than {limit:g} s on this machine") from error
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror or error}") from error


def git_bytes(folder: Path, *arguments: str, seconds: float | None = None) -> bytes:
    """Return what a git command prints. Raise `GitError` if git is missing, fails or takes too long."""
    return _output(run_git(folder, *arguments, seconds=seconds), arguments[0])


def git_text(folder: Path, *arguments: str) -> str:
    """Return the text that a git command prints, without surrounding white space.

    Return an empty text if what is asked for does not exist, and outside of a repository. Raise `GitError` if git
    fails.
    """
    result = run_git(folder, *arguments)
    if result.returncode not in _NOT_FOUND and _OUTSIDE not in result.stderr:
        return _output(result, arguments[0]).decode("utf-8", "replace").strip()
    return ""


def _output(result: "subprocess.CompletedProcess[bytes]", command: str) -> bytes:
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(lines[0][:500] if lines else f"git {command} exited {result.returncode}")
    return result.stdout


class Objects:
    """The contents of a repository's commits, read through one process of git. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        """Start git. Raise `GitError` if git cannot be run."""
        command = git_process(folder, "cat-file", "--batch", "--follow-symlinks")
        try:
            self._process = subprocess.Popen(
                **command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise GitError(f"git cannot be run: {error.strerror or error}") from error
        # A partial clone fetches each content when it is read, which may take for ever.
        self._timer = Timer(LONG_SECONDS, self._process.kill)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Nothing is lost by a kill: git only reads.
        self._timer.cancel()
        self._process.kill()
        self._process.communicate()

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Return the kind of an object, such as `blob`, and its content, or `None` if it does not exist.

        `name` is a hash or `COMMIT:PATH`. Links in the path are followed as long as they stay in the repository. Raise
        `GitError` if git does not answer.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or "\n" in name:
            return None
        try:
            stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
            stdin.flush()
        except OSError:
            pass  # git has exited, so there is no answer to read below
        header = stdout.readline().split()
        if header and header[-1] in {b"missing", b"ambiguous"}:
            return None
        size = int(header[-1]) + 1 if header else 0
        content = stdout.read(size)
        if not header or len(content) < size:
            raise GitError("git cat-file did not answer completely")
        # For a link that leads out of the repository or nowhere, git prints the link's path.
        leads_nowhere = header[0] in {b"dangling", b"loop", b"notdir", b"symlink"}
        return None if leads_nowhere else (header[1].decode(), content[:-1])

    def file(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file in a commit, through links, or `None` if there is none. Raise `GitError`."""
        found = self.read(f"{commit}:{path}")
        return found[1] if found is not None and found[0] == "blob" else None

    def contains(self, commit: str, path: str) -> bool:
        """Return whether a commit contains a path of the repository. Raise `GitError`."""
        return path == "." or bool(self.mode(commit, path))

    def mode(self, commit: str, path: str) -> str:
        """Return the mode of a commit's entry at a path, such as `LINK`, or an empty text. Raise `GitError`."""
        # For a link, git returns its target, and for a submodule nothing, so read the entry from the folder around it.
        place = PurePosixPath(path)
        folder = "" if place.parent == PurePosixPath() else place.parent.as_posix()
        found = self.read(f"{commit}:{folder}")
        name, tree = place.name.encode("utf-8", "surrogateescape"), found[1] if found and found[0] == "tree" else b""
        # A tree object is a row of `MODE NAME`, a null byte and a hash.
        position = 0
        while position < len(tree):
            end = tree.index(b"\0", position)
            mode, _, entry = tree[position:end].partition(b" ")
            if entry == name:
                return mode.decode()
            position = end + 1 + len(commit) // 2
        return ""


def split_names(output: bytes) -> list[str]:
    """Return the names in the output of a git command with `-z`, as the file system has them."""
    return [name.decode("utf-8", "surrogateescape") for name in output.split(b"\0") if name]


def printable_name(name: str) -> str:
    """Return a name that git printed as a text that every file and terminal can take."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def full_commit(folder: Path, name: str) -> str:
    """Return the commit that a hash, branch or tag means in a folder's repository, or an empty text. Raise
    `GitError`.
    """
    return git_text(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def user_name(folder: Path) -> str:
    """Return the user's name: as git has it, else the login name, else an empty text."""
    try:
        with suppress(GitError):
            if name := git_text(folder, "config", "user.name"):
                return name
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in many containers
        return ""
