"""Which state of the repository is being run."""

import getpass
import os
from pathlib import Path

from passgate.tasks.integrity.git import git_text
from passgate.tasks.model.run import Revision

# A pull request is checked out without a branch; the CI system knows its name.
_BRANCH_VARIABLES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH", "BRANCH_NAME")


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
