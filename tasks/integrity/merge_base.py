"""The base of a run: the commit that a change is compared with, which is where it has left the baseline branch."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from passgate.tasks.errors import UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.formats.project_files import read_policy
from passgate.tasks.integrity.base_files import is_committed, read_committed
from passgate.tasks.integrity.git import GitError, full_commit, git_bytes, git_text, top_folder
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.policy import DEFAULT_BRANCH, Policy, is_branch_name
from passgate.tasks.model.run import Base, RunRequest

MOST_ANCESTORS = 1000
_TARGET_VARIABLES = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "CHANGE_TARGET",
    "BITBUCKET_PR_DESTINATION_BRANCH",
)
"""Where CI systems say which branch a change is to be merged into."""
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_WITH_TIMES = ("rev-list", "--no-walk=unsorted", "--ignore-missing", "--timestamp", "--stdin")
_REMOTE = "refs/remotes/origin"
_FETCH = "fetch the history, as actions/checkout does with `fetch-depth: 0`"
_ASK = "`git remote set-head origin --auto` asks the remote for its default branch"


def base_of(folder: Path, request: RunRequest, policy: Policy) -> Base:
    """The base of what is checked out, for a request whose own files make this policy.

    `folder` lies in the repository. Raises `UsageError` for a `--base` that is none.
    """
    own = policy.baseline.branch
    return find_base(folder, own, request.base, branch_at=partial(_branch_at, folder, request, own))


def _branch_at(folder: Path, request: RunRequest, own: str, commit: str) -> str | None:
    """The branch that the gates file of a commit names; `None` where the commit has nothing to judge by.

    A gates file outside of the repository is no change's to edit, and is taken at its word.
    """
    root = top_folder(folder)
    suites, gates = (Path(os.path.normpath(folder.resolve() / name)) for name in (request.suites, request.gates))
    if root is None or not gates.is_relative_to(root):
        return own
    content = read_committed(root, commit, gates.relative_to(root).as_posix())
    if content is not None:
        return _named_by(content, request.gates)
    has_suites = suites.is_relative_to(root) and is_committed(root, commit, suites.relative_to(root).as_posix())
    return DEFAULT_BRANCH if has_suites else None


def _named_by(content: bytes, name: str) -> str:
    """The branch that a gates file names; the usual one where the file cannot be read."""
    with temporary_folder("base") as folder:
        file = folder / Path(name).name
        file.write_bytes(content)
        policy = read_policy(file, name)
    return policy.baseline.branch if isinstance(policy, Policy) else DEFAULT_BRANCH


def find_base(
    folder: Path,
    branch: str,
    given: str | None,
    environment: Mapping[str, str] = os.environ,
    branch_at: Callable[[str], str | None] = lambda _: DEFAULT_BRANCH,
) -> Base:
    """The base of what is checked out in the repository that a folder lies in.

    That is the commit which is `given`, else the merge base of HEAD with the branch that the change goes into, as the
    remote `origin` has it where it has one. Which that is the change must not say itself. A CI system says it in the
    `environment`; without one it is the branch that the files of the merge base with the remote's default branch name.
    `branch_at` gives that name, `None` for a commit that has nothing to judge by: then, and where there is no default
    branch, it is `branch`, which the change's own files name, and the note says so.

    Without a repository the base is empty; where there is one that cannot tell, its `note` says why and what to do.
    Raises `UsageError` for a `given` revision that is not known.
    """
    if given is not None:
        commit = full_commit(folder, given)
        if not commit:
            raise UsageError(f"--base {given}: the repository of {folder} has no such commit; {_FETCH}")
        return _base(folder, commit)
    if not full_commit(folder, "HEAD"):
        return Base(note=_why_no_head(folder))
    target = next(filter(None, (environment.get(variable, "") for variable in _TARGET_VARIABLES)), "")
    if target and _tip(folder, target):
        return _base_with(folder, target)
    of_remote = git_text(folder, "symbolic-ref", "--quiet", f"{_REMOTE}/HEAD").removeprefix(f"{_REMOTE}/")
    default = next((name for name in (of_remote, DEFAULT_BRANCH) if _tip(folder, name)), "")
    if target:
        missing = f"the branch {target!r}, the target of this change, is missing here; {_FETCH}"
        return _base_with(folder, default, missing) if default else Base(note=_why_no_merge_base(folder, target))
    return _base_without_target(folder, default, branch, branch_at)


def _base_without_target(folder: Path, default: str, own: str, branch_at: Callable[[str], str | None]) -> Base:
    """The base where no CI system names the branch that the change goes into."""
    commit = _merge_base(folder, default) if default else ""
    if default and not commit:
        return Base(note=_why_no_merge_base(folder, default))
    named = branch_at(commit) if commit else None
    if named is not None:
        missing = f"the branch {named!r}, which the gates file of {default!r} names, is missing here; {_FETCH}"
        return _base_with(folder, named) if _tip(folder, named) else _base_with(folder, default, missing)
    if own != default and _tip(folder, own):
        return _base_with(folder, own, f"only this change's own gates file says that it goes into {own!r}: {_ASK}")
    return _base_with(folder, default or own)


def ancestors_of(folder: Path, commit: str) -> tuple[str, ...]:
    """A commit and its first-parent ancestors, the newest first, at most 1000; none where it is not known."""
    limit = f"--max-count={MOST_ANCESTORS}"
    return tuple(git_text(folder, "rev-list", "--first-parent", limit, "--end-of-options", commit, "--").split())


def commit_times(folder: Path, commits: Iterable[str]) -> dict[str, datetime]:
    """When commits were made, those of them that git knows here."""
    asked = "".join(f"{commit}\n" for commit in commits if _HASH.fullmatch(commit)).encode()
    try:
        listed = git_bytes(folder, *_WITH_TIMES, stdin=asked) if asked else b""
    except GitError:
        return {}
    pairs = (line.split() for line in listed.decode().splitlines())
    return {commit: datetime.fromtimestamp(int(seconds), UTC) for seconds, commit in pairs}


def _base(folder: Path, commit: str) -> Base:
    ancestors = ancestors_of(folder, commit)
    is_cut_off = len(ancestors) < MOST_ANCESTORS and git_text(folder, "rev-parse", "--is-shallow-repository") == "true"
    note = f"the clone is shallow, so the baseline may miss earlier runs: {_FETCH}" if is_cut_off else ""
    return Base(commit=commit, ancestors=ancestors, note=note)


def _base_with(folder: Path, branch: str, note: str = "") -> Base:
    commit = _merge_base(folder, branch)
    base = _base(folder, commit) if commit else Base(note=_why_no_merge_base(folder, branch))
    return base.model_copy(update={"note": "; ".join(filter(None, (note, base.note)))})


def _merge_base(folder: Path, branch: str) -> str:
    """The merge base of HEAD with a branch; empty where there is none."""
    tip = _tip(folder, branch)
    return git_text(folder, "merge-base", "HEAD", tip) if tip else ""


def _tip(folder: Path, branch: str) -> str:
    """The newest commit of the branch that has this very name; empty where there is none.

    As a revision a name could mean any commit, as `main~1` and `main^{/text}` do.
    """
    if not is_branch_name(branch):
        return ""
    refs = (f"{place}/{branch}" for place in (_REMOTE, "refs/heads"))
    return next(filter(None, (git_text(folder, "show-ref", "--verify", "--hash", ref) for ref in refs)), "")


def _why_no_head(folder: Path) -> str:
    if not any((parent / ".git").exists() for parent in (folder.absolute(), *folder.absolute().parents)):
        return ""
    try:
        git_bytes(folder, "rev-parse", "--git-dir")
    except GitError as error:
        return f"the merge base is unknown: {error}"
    return "the merge base is unknown: the repository has no commit yet"


def _why_no_merge_base(folder: Path, branch: str) -> str:
    known = bool(_tip(folder, branch))
    if known and git_text(folder, "rev-parse", "--is-shallow-repository") != "true":
        return f"the merge base is unknown: HEAD and the branch {branch!r} have no commit in common"
    remedy = _FETCH if known else f"{_FETCH}, or name the commit with --base"
    why = "the clone is shallow" if known else f"there is no branch {branch!r} here"
    return f"the merge base is unknown: {why}; {remedy}"


def pinned_base(base: Base, pins: Pins | None, folder: Path) -> Base:
    """The base with the pinned commit's ancestors for its own; as it is where no commit is pinned.

    Its own commit stays, by whose files a change is judged. `folder` lies in the repository; where that does not know
    the pinned commit, the note says so, and only runs of the commit itself are the baseline.
    """
    if pins is None or pins.commit is None:
        return base
    ancestors = ancestors_of(folder, pins.commit)
    unknown = f"the pinned commit {pins.commit} is not known here, and so its ancestors are not: fetch the history"
    return base.model_copy(update={"ancestors": ancestors, "note": base.note if ancestors else unknown})
