"""Run the user's own git about the repository that a folder lies in, without changing anything."""

import getpass
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

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


def run_git(
    folder: Path, *arguments: str, stdin: bytes = b"", seconds: float | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run a git command, for at most `SECONDS` unless told otherwise. Raise `GitError` if git cannot be run,
    `NoAnswerError` if it takes longer.
    """
    limit = SECONDS if seconds is None else seconds
    try:
        return subprocess.run(
            **git_process(folder, *arguments), input=stdin, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoAnswerError(f"git {arguments[0]} took longer than {limit:g} s on this machine") from error
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror or error}") from error


def git_bytes(folder: Path, *arguments: str, stdin: bytes = b"", seconds: float | None = None) -> bytes:
    """Return what a git command prints. Raise `GitError` if git is missing, fails or takes too long."""
    return _output(run_git(folder, *arguments, stdin=stdin, seconds=seconds), arguments[0])


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
