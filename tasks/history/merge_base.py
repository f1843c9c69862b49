"""The commit that a change is compared with: where it has left the baseline branch."""

import os
from collections.abc import Mapping
from pathlib import Path

from passgate.tasks.errors import UsageError
from passgate.tasks.history.git import GitError, full_commit, git_bytes, git_text
from passgate.tasks.model.run import Base

MOST_ANCESTORS = 1000
_TARGET_VARIABLES = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "CHANGE_TARGET",
    "BITBUCKET_PR_DESTINATION_BRANCH",
)
"""Where CI systems say which branch a change is to be merged into."""
_FETCH = "fetch the history, as actions/checkout does with `fetch-depth: 0`"


def find_base(folder: Path, branch: str, given: str | None, environment: Mapping[str, str] = os.environ) -> Base:
    """The base of what is checked out in the repository that a folder lies in.

    That is the commit which is `given`, else the merge base of HEAD with the baseline branch, as the remote `origin`
    has it where it has one. Where a CI system says in the `environment` that the change goes into another branch, the
    older one of both merge bases counts: the name of the baseline branch stands in a file that the change may edit.

    Without a repository the base is empty; where there is one that cannot tell, its `note` says why and what to do.
    Raises `UsageError` for a `given` revision that is not known.
    """
    if given is not None:
        commit = full_commit(folder, given)
        if not commit:
            raise UsageError(f"--base {given}: there is no such commit in the repository of {folder}; {_FETCH}")
        return _base(folder, commit)
    if not full_commit(folder, "HEAD"):
        return Base(note=_why_no_head(folder))
    commit = _merge_base(folder, branch)
    if not commit:
        return Base(note=_why_no_merge_base(folder, branch))
    targets = {name for variable in _TARGET_VARIABLES if (name := environment.get(variable, ""))} - {branch}
    for target in sorted(targets):
        commit = _older(folder, commit, _merge_base(folder, target))
    return _base(folder, commit)


def ancestors_of(folder: Path, commit: str) -> tuple[str, ...]:
    """A commit and its first-parent ancestors, the newest first, at most 1000; none where it is not known."""
    limit = f"--max-count={MOST_ANCESTORS}"
    return tuple(git_text(folder, "rev-list", "--first-parent", limit, "--end-of-options", commit, "--").split())


def _base(folder: Path, commit: str) -> Base:
    ancestors = ancestors_of(folder, commit)
    is_cut_off = len(ancestors) < MOST_ANCESTORS and git_text(folder, "rev-parse", "--is-shallow-repository") == "true"
    note = f"the clone is shallow, so that earlier runs of the baseline may be missed: {_FETCH}" if is_cut_off else ""
    return Base(commit=commit, ancestors=ancestors, note=note)


def _merge_base(folder: Path, branch: str) -> str:
    """The merge base of HEAD with a branch; empty where there is none."""
    tip = full_commit(folder, f"refs/remotes/origin/{branch}") or full_commit(folder, f"refs/heads/{branch}")
    return git_text(folder, "merge-base", "HEAD", tip) if tip else ""


def _older(folder: Path, first: str, second: str) -> str:
    """Of two ancestors of HEAD the older one; the first where the second is not known."""
    return git_text(folder, "merge-base", first, second) or first if second else first


def _why_no_head(folder: Path) -> str:
    if not any((parent / ".git").exists() for parent in (folder.absolute(), *folder.absolute().parents)):
        return ""
    try:
        git_bytes(folder, "rev-parse", "--git-dir")
    except GitError as error:
        return f"the merge base is not known: {error}"
    return "the merge base is not known: the repository has no commit yet"


def _why_no_merge_base(folder: Path, branch: str) -> str:
    known = any(full_commit(folder, f"{place}/{branch}") for place in ("refs/remotes/origin", "refs/heads"))
    if known and git_text(folder, "rev-parse", "--is-shallow-repository") != "true":
        return f"the merge base is not known: HEAD and the branch {branch!r} have no commit in common"
    remedy = _FETCH if known else f"{_FETCH}, or name the commit with --base"
    why = "the clone is shallow" if known else f"there is no branch {branch!r} here"
    return f"the merge base is not known: {why}; {remedy}"
