"""Find the base of a run: the commit at which the change left the baseline branch."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from passgate.tasks.errors import UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.formats.project_files import read_policy
from passgate.tasks.integrity.checkout import REMOTE, Checkout
from passgate.tasks.integrity.git import GitError, full_commit, git_bytes, git_text
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.policy import DEFAULT_BRANCH, Policy
from passgate.tasks.model.run import Base, RunRequest

MOST_ANCESTORS = 1000
_FETCH = "fetch the history, as actions/checkout does with `fetch-depth: 0`"
_USE_BASE = "name the commit with --base"
_ASK = "`git remote set-head origin --auto` asks the remote for its default branch"


def request_base(checkout: Checkout, request: RunRequest, policy: Policy) -> Base:
    """Return the base of a request whose own files define `policy`. Raise `UsageError` for an unknown `--base`."""
    own = policy.baseline.branch
    return find_base(checkout, own, request.base, branch_at=partial(_policy_branch, checkout, request, own))


def _policy_branch(checkout: Checkout, request: RunRequest, own: str, commit: str) -> str | None:
    """Return the branch that the gates file of a commit names, or `None` if the commit has nothing to judge with."""
    root, folder = checkout.top, checkout.folder.resolve()
    suites, gates = (Path(os.path.normpath(folder / name)) for name in (request.suites, request.gates))
    # No change can edit a gates file outside of the repository.
    if root is None or not gates.is_relative_to(root):
        return own
    content = checkout.objects.file(commit, gates.relative_to(root).as_posix())
    if content is None:
        is_inside = suites.is_relative_to(root)
        has_suites = is_inside and checkout.objects.contains(commit, suites.relative_to(root).as_posix())
        return (checkout.baseline_branch or DEFAULT_BRANCH) if has_suites else None
    with temporary_folder("base") as temporary:
        file = temporary / Path(request.gates).name
        file.write_bytes(content)
        policy = read_policy(file, request.gates)
    default = checkout.baseline_branch or DEFAULT_BRANCH
    return policy.into(default).baseline.branch if isinstance(policy, Policy) else default


def find_base(
    checkout: Checkout,
    branch: str,
    given: str | None,
    branch_at: Callable[[str], str | None] = lambda _: DEFAULT_BRANCH,
) -> Base:
    """Find the base of a checkout: the `given` commit, else the merge base of HEAD and the branch that the change goes
    into, and the tip of that branch. The branch of the remote `origin` is preferred to a local one.

    The change itself must not name the branch. The CI system names it in the environment. Without one, the files at the
    tip of the remote's default branch name it: `branch_at` returns that name, or `None` for a commit with nothing to
    judge with. In that case, and without a default branch, use `branch`, which the change's own files name, with a
    note.

    Outside of a repository the base is empty. If the base is unknown, `note` says why and what to do. If the change
    could have chosen who judges it, or git fails, `doubt` says why. Raise `UsageError` for an unknown `given` commit.
    """
    try:
        if given is not None:
            commit = checkout.find_commit(given)
            if not commit:
                raise UsageError(f"--base {given}: the repository of {checkout.folder} has no such commit; {_FETCH}")
            return _base(checkout, commit)
        if not checkout.head:
            return _base_without_head(checkout)
        target, default = checkout.target, checkout.default_branch
        if target and checkout.tip_commit(target):
            return _base_with(checkout, target)
        if target:
            missing = f"the branch {target!r}, the target of this change, is missing here; {_FETCH}"
            return _base_with(checkout, default or target, missing if default else "", missing)
        return _base_without_target(checkout, default, branch, branch_at)
    except GitError as error:
        note = f"the merge base is unknown: {error}"
        return Base(note=note, doubt=note)


def _base_without_target(checkout: Checkout, default: str, own: str, branch_at: Callable[[str], str | None]) -> Base:
    """Return the base if no CI system names the branch that the change goes into."""
    several = f"passgate does not know which is the default branch, {' or '.join(checkout.default_candidates)}: {_ASK}"
    doubt = several if checkout.default_candidates else ""
    if default and not checkout.merge_base(default):
        return _base_with(checkout, default, doubt, doubt)
    named = branch_at(checkout.tip_commit(default)) if default else None
    if named is not None:
        if named == default or checkout.tip(named):
            return _base_with(checkout, named, doubt, doubt)
        missing = f"the branch {named!r}, which the gates file of {default!r} names, is missing here; {_FETCH}"
        return _base_with(checkout, default, missing, missing)
    if own != default and checkout.tip(own):
        only_own = f"only this change's own gates file says that it goes into {own!r}: {_ASK}"
        return _base_with(checkout, own, only_own, only_own)
    return _base_with(checkout, default or own, doubt, doubt)


def first_parents(folder: Path, commit: str) -> tuple[str, ...]:
    """Return an existing commit and its first-parent ancestors, the newest first, at most 1000. Raise `GitError`."""
    limit = f"--max-count={MOST_ANCESTORS}"
    return tuple(git_text(folder, "rev-list", "--first-parent", limit, "--end-of-options", commit, "--").split())


def _base(checkout: Checkout, commit: str, note: str = "") -> Base:
    ancestors = first_parents(checkout.folder, commit)
    shallow = f"the clone is shallow, so the baseline may miss earlier runs: {_FETCH}"
    is_cut_off = len(ancestors) < MOST_ANCESTORS and checkout.is_shallow
    return Base(commit=commit, ancestors=ancestors, note=note).add_note(shallow if is_cut_off else "")


def _base_with(checkout: Checkout, branch: str, note: str = "", doubt: str = "") -> Base:
    """Return the base of a change into a branch. A doubt about the branch itself has priority."""
    tip, commit = checkout.tip_commit(branch), checkout.merge_base(branch)
    if not commit:
        why = f"the merge base is unknown: HEAD and the branch {branch!r} have no commit in common"
        if not tip:
            why = f"the merge base is unknown: there is no branch {branch!r} here; {_FETCH}, or {_USE_BASE}"
        elif checkout.is_shallow:
            why = f"the merge base is unknown: the clone is shallow; {_FETCH}"
        unknown = "" if checkout.is_alone and not checkout.target else why
        return Base(tip=tip, note=note, doubt=doubt or unknown).add_note(why)
    base = _base(checkout, commit, note)
    # A checkout with no commits beyond the branch has no change to judge.
    is_ahead = commit != checkout.head
    doubt = doubt or _local_only(checkout, branch, is_ahead)
    return base.model_copy(update={"tip": tip if is_ahead and tip != commit else "", "doubt": doubt})


def _local_only(checkout: Checkout, branch: str, is_ahead: bool) -> str:
    """Return why a local branch of this name may contain anything, or an empty text if the remote vouches for it."""
    is_named_by_ci = branch == checkout.target and checkout.target_commit
    if is_named_by_ci or checkout.tip(branch).startswith(REMOTE):
        return ""
    if checkout.has_remote:
        fetch = f"`git fetch origin +refs/heads/{branch}:{REMOTE}/{branch}`"
        return f"the remote's branch {branch!r} is missing here, and the local one may be of any commit: {fetch}"
    if is_ahead or checkout.target:
        return f"only a local branch {branch!r} says what judges, and there is no remote `origin`: {_USE_BASE}"
    return ""


def _base_without_head(checkout: Checkout) -> Base:
    """Return the base of a folder without a repository, or of a repository without a commit. Raise `GitError`."""
    target = f"this is a change into {checkout.target!r}, and" if checkout.target else ""
    if not checkout.is_repository:
        return Base(doubt=f"{target} the folder is in no repository") if target else Base()
    git_bytes(checkout.folder, "rev-parse", "--git-dir")
    note = "the merge base is unknown: the repository has no commit yet"
    return Base(note=note, doubt=f"{target} {note}" if target else "")


def pinned_ancestors(pins: Pins | None, folder: Path) -> tuple[str, ...]:
    """Return the pinned commit and its first-parent ancestors, or nothing if none is pinned or git does not know it."""
    commit = full_commit(folder, pins.commit) if pins is not None and pins.commit is not None else ""
    return first_parents(folder, commit) if commit else ()


def pinned_base(base: Base, pins: Pins | None, folder: Path) -> Base:
    """Return the base with the ancestors of the pinned commit, if one is pinned. The judging commit stays the same.

    If the repository around `folder` does not know the pinned commit, the note states it, and only runs of that
    commit are the baseline.
    """
    if pins is None or pins.commit is None:
        return base
    ancestors = pinned_ancestors(pins, folder)
    unknown = f"the pinned commit {pins.commit} is not known here, and so its ancestors are not: fetch the history"
    return base.model_copy(update={"ancestors": ancestors, "note": base.note if ancestors else unknown})
