"""The user's own git, asked about the repository that a folder lies in; it changes nothing and runs nothing else."""

import getpass
import os
import subprocess
from pathlib import Path

from passgate.tasks.model.run import Revision

LINK, SUBMODULE = "120000", "160000"
"""The modes of what is no file in a repository."""
_SECONDS = 10
# A repository may name programs that git would run, and paths may look like patterns.
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--literal-pathspecs")
_ASKS_NOBODY = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
# A pull request is checked out without a branch; the CI system knows its name.
_BRANCH_VARIABLES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH", "BRANCH_NAME")


class GitError(Exception):
    """What git has said in place of an answer."""


def git_bytes(folder: Path, *arguments: str, stdin: bytes = b"", seconds: float = _SECONDS) -> bytes:
    """What a git command prints. Raises `GitError` when there is no git, it fails, or takes longer than `seconds`."""
    try:
        result = subprocess.run(
            ["git", *_SETTINGS, *arguments],  # noqa: S607 - the user's own git
            cwd=folder,
            env={**os.environ, **_ASKS_NOBODY},
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(f"git {arguments[0]} took longer than {seconds:g} s") from error
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror or error}") from error
    if result.returncode != 0:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(said[0][:500] if said else f"git {arguments[0]} exited {result.returncode}")
    return result.stdout


def git_text(folder: Path, *arguments: str) -> str:
    """The text that a git command prints, without the white space around it; empty when it fails."""
    try:
        return git_bytes(folder, *arguments).decode("utf-8", "replace").strip()
    except GitError:
        return ""


def names_of(printed: bytes) -> list[str]:
    """The names that git prints with `-z`, as the file system has them."""
    return [name.decode("utf-8", "surrogateescape") for name in printed.split(b"\0") if name]


def printable_name(name: str) -> str:
    """A name that git prints, as a text that can be written anywhere."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def is_tracked(root: Path, path: str) -> bool:
    """Whether git has a file of this path, relative to the repository `root`, now."""
    return bool(git_text(root, "ls-files", "--", path))


def top_folder(folder: Path) -> Path | None:
    """The top folder of the repository that a folder lies in; `None` outside of one."""
    top = git_text(folder, "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else None


def full_commit(folder: Path, name: str) -> str:
    """The commit that a hash, branch or tag means in the repository that a folder lies in; empty where none."""
    return git_text(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def current_revision(folder: Path) -> Revision:
    """The commit and branch of the repository that a folder lies in; empty without a repository or git."""
    commit = git_text(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return Revision()
    named = (os.environ.get(name, "") for name in _BRANCH_VARIABLES)
    return Revision(
        commit=commit,
        branch=git_text(folder, "symbolic-ref", "--short", "HEAD") or next(filter(None, named), ""),
        dirty=bool(git_text(folder, "status", "--porcelain", "--untracked-files=no")),
    )


def user_name(folder: Path) -> str:
    """Who works here: as git calls them, else by the name they have logged in with; empty where nobody knows."""
    try:
        return git_text(folder, "config", "user.name") or getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in many containers
        return ""
