"""Which state of the repository is being run."""

import os
import subprocess
from pathlib import Path

from passgate.tasks.model.run import Revision

# A pull request is checked out without a branch; the CI system knows its name.
_BRANCH_VARIABLES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH", "BRANCH_NAME")
_GIT_SECONDS = 10


def current_revision(folder: Path) -> Revision:
    """The commit and branch of the repository that a folder lies in; empty without a repository or git."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if not commit:
        return Revision()
    named = (os.environ.get(name, "") for name in _BRANCH_VARIABLES)
    return Revision(
        commit=commit,
        branch=_git(folder, "symbolic-ref", "--short", "HEAD") or next(filter(None, named), ""),
        dirty=bool(_git(folder, "status", "--porcelain", "--untracked-files=no")),
    )


def _git(folder: Path, *arguments: str) -> str:
    try:
        result = subprocess.run(
            ["git", *arguments],  # noqa: S607 - the user's own git
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
