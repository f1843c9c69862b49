"""The checkout that a folder lies in, as git and the CI system describe it: commit, branches, target, files."""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from passgate.tasks.integrity import git
from passgate.tasks.integrity.git import (
    HASH,
    GitError,
    NoAnswerError,
    Objects,
    full_commit,
    git_bytes,
    git_text,
    printable_name,
    run_git,
    split_names,
)
from passgate.tasks.model.policy import DEFAULT_BRANCH, is_branch_name
from passgate.tasks.model.run import Revision

TARGET_VARIABLES = (
    "GITHUB_BASE_REF",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH",
    "CHANGE_TARGET",
    "BITBUCKET_PR_DESTINATION_BRANCH",
    "SYSTEM_PULLREQUEST_TARGETBRANCHNAME",
    "CI_COMMIT_TARGET_BRANCH",
    "BITRISEIO_GIT_BRANCH_DEST",
    "CF_PULL_REQUEST_TARGET",
)  # In which CI systems name the branch that a change is to be merged into
TARGET_COMMIT_VARIABLES = ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA",)  # In which they name the commit at its tip
DEFAULT_VARIABLES = ("CI_DEFAULT_BRANCH", "BUILDKITE_PIPELINE_DEFAULT_BRANCH")  # In which they name the default branch
# A pull request is checked out without a branch; the CI system knows its name.
BRANCH_VARIABLES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH", "BRANCH_NAME")
_EVENT_VARIABLE = "GITHUB_EVENT_PATH"  # The file in which GitHub describes the event that started a job
_JOB_VARIABLES = ("JENKINS_URL", "TF_BUILD", "BUILDKITE", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID", "GITHUB_ACTIONS")
_NOT_SET = frozenset({"", "0", "false"})
USUAL_BRANCHES = (DEFAULT_BRANCH, "master", "trunk")
REMOTE = "refs/remotes/origin"
# With renames, an entry would contain a second name.
_STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all")


class Checkout:
    """The checkout that a folder lies in. Ask git about each fact when it is first needed, and only once, because it
    does not change while passgate loads a plan. Use it as a context manager to read `objects`.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        """Describe the checkout around `folder`. `environment` contains the variables of the CI system."""
        self.folder = folder
        self._environment = environment
        self._merge_bases: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "objects" in self.__dict__:
            self.objects.__exit__()

    @property
    def target(self) -> str:
        """The branch that the change goes into, as the CI system says, or an empty text."""
        named = next(filter(None, (self._environment.get(name, "") for name in TARGET_VARIABLES)), "")
        # The job of a merge queue has its own branch and no variable for the target branch.
        return named or self._event_value("merge_group", "base_ref").removeprefix("refs/heads/")

    def _event_value(self, *keys: str) -> str:
        found: Any = self._event
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, str) else ""

    @cached_property
    def _event(self) -> Any:
        try:
            return json.loads(Path(self._environment[_EVENT_VARIABLE]).read_bytes())
        except (KeyError, OSError, ValueError, RecursionError):
            return {}

    @property
    def is_ci(self) -> bool:
        """Whether this is a job of a CI system: it sets CI."""
        return self._environment.get("CI", "").lower() not in _NOT_SET

    @property
    def is_job(self) -> bool:
        """Whether a CI system started this command, also if it does not set CI."""
        return self.is_ci or bool(self.target) or any(self._environment.get(name) for name in _JOB_VARIABLES)

    @cached_property
    def target_commit(self) -> str:
        """The tip of the target branch as the CI system says, or an empty text if it names none that is here."""
        named = (self._environment.get(name, "") for name in TARGET_COMMIT_VARIABLES)
        known = (full_commit(self.folder, name) for name in named if HASH.fullmatch(name))
        return next(filter(None, known), "")

    def find_commit(self, name: str) -> str:
        """Return the commit of a branch, a hash or an expression, or an empty text. Raise `GitError`.

        A branch is preferred to a tag of the same name.
        """
        refs = [] if HASH.fullmatch(name) else [f"refs/remotes/{name}", f"refs/heads/{name}"]
        return full_commit(self.folder, next((ref for ref in refs if ref in self._refs), name))

    @cached_property
    def has_remote(self) -> bool:
        """Return whether there is a remote `origin`."""
        return bool(git_text(self.folder, "config", "--get", "remote.origin.url"))

    @cached_property
    def is_alone(self) -> bool:
        """Whether the repository contains nothing but this commit: no remote, no branch at another commit."""
        return not self.has_remote and {commit for commit, _ in self._refs.values()} <= {self.head}

    @cached_property
    def _position(self) -> list[str]:
        """The top folder, whether the clone is shallow, and the commit of HEAD, which a new repository lacks."""
        try:
            result = run_git(
                self.folder, "rev-parse", "--show-toplevel", "--is-shallow-repository", "--verify", "HEAD^{commit}"
            )
        except NoAnswerError:
            raise
        except GitError:
            return []
        return result.stdout.decode("utf-8", "surrogateescape").splitlines()

    @cached_property
    def _refs(self) -> Mapping[str, tuple[str, str]]:
        """The commit of every branch and the branch that a symbolic one stands for, by the full name of its ref."""
        command = ("for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", "refs/heads", "refs/remotes")
        # Names of branches may contain what `splitlines` takes for the end of a line.
        lines = git_text(self.folder, *command).split("\n") if self._position else []
        return {name: (commit, target) for name, commit, target in (line.split("\0") for line in lines if line)}

    @cached_property
    def is_repository(self) -> bool:
        """Whether the folder is in a repository, by the `.git` that git looks for; works without git."""
        here = self.folder.absolute()
        return any((folder / ".git").exists() for folder in (here, *here.parents))

    @property
    def top(self) -> Path | None:
        """The top folder of the repository, or `None` outside of one. Raise `NoAnswerError`."""
        return Path(self._position[0]).resolve() if self._position else None

    @property
    def is_shallow(self) -> bool:
        return self._position[1:2] == ["true"]

    @property
    def head(self) -> str:
        """The commit that is checked out, or an empty text."""
        return next((word for word in self._position[2:3] if HASH.fullmatch(word)), "")

    @property
    def default_branch(self) -> str:
        """The default branch of the repository: that of the remote `origin`, else that of the CI system, else the first
        branch with a usual name. An empty text if none of them is here.
        """
        named = (self._remote_head, *self._ci_defaults)
        return next((name for name in named if self.tip(name)), next(iter(self._usual), ""))

    @property
    def _ci_defaults(self) -> list[str]:
        named = [self._environment.get(name, "") for name in DEFAULT_VARIABLES]
        return [name for name in (*named, self._event_value("repository", "default_branch")) if name]

    @property
    def baseline_branch(self) -> str:
        """The default branch for a policy that names none: one with a usual name, or from the CI system. Otherwise an
        empty text, because another branch could be the change's own, as in a clone of its checkout.
        """
        name = self.default_branch
        return name if name in {*USUAL_BRANCHES, *self._ci_defaults} else ""

    @property
    def default_candidates(self) -> list[str]:
        """The branches of the remote with a usual name, if nothing says which of them is the default branch."""
        is_remote = len(self._usual) > 1 and self.tip(self._usual[0]).startswith(REMOTE)
        return self._usual if is_remote and self.default_branch == self._usual[0] != self._remote_head else []

    @cached_property
    def _usual(self) -> list[str]:
        """The branches with a usual name: those of the remote, else the local ones."""
        tips = {name: self.tip(name) for name in USUAL_BRANCHES}
        remote = [name for name, tip in tips.items() if tip.startswith(REMOTE)]
        return remote or [name for name, tip in tips.items() if tip]

    @property
    def _remote_head(self) -> str:
        """The default branch of the remote `origin`, or an empty text if git does not know it."""
        return self._refs.get(f"{REMOTE}/HEAD", ("", ""))[1].removeprefix(f"{REMOTE}/")

    def tip(self, branch: str) -> str:
        """Return the ref of the branch with exactly this name, of the remote `origin` if it has one, or an empty text.

        A name such as `main~1` or `main^{/text}` is no branch, although git takes it for a commit.
        """
        refs = [f"{place}/{branch}" for place in (REMOTE, "refs/heads")]
        return next((ref for ref in refs if is_branch_name(branch) and ref in self._refs), "")

    def tip_commit(self, branch: str) -> str:
        """Return the commit at the tip of a branch: for the target, the one that the CI system names, if any."""
        named = self.target_commit if branch == self.target else ""
        return named or self._refs.get(self.tip(branch), ("", ""))[0]

    def merge_base(self, branch: str) -> str:
        """Return the merge base of HEAD and a branch, or an empty text."""
        if branch not in self._merge_bases:
            tip = self.tip_commit(branch)
            self._merge_bases[branch] = git_text(self.folder, "merge-base", "HEAD", tip) if tip else ""
        return self._merge_bases[branch]

    @cached_property
    def objects(self) -> Objects:
        """The contents of the repository's commits. Raise `GitError`."""
        return Objects(self.folder)

    @cached_property
    def _status(self) -> list[str]:
        try:
            return split_names(git_bytes(self.folder, *_STATUS, seconds=git.LONG_SECONDS))
        except NoAnswerError:
            raise
        except GitError:
            return []

    @property
    def revision(self) -> Revision:
        """The commit and branch; empty without a repository, a commit or git. Raise `NoAnswerError`."""
        headers = dict(line[2:].split(" ", 1) for line in self._status if line.startswith("# "))
        commit, branch = headers.get("branch.oid", ""), headers.get("branch.head", "")
        if not HASH.fullmatch(commit):
            return Revision()
        named = (self._environment.get(name, "") for name in BRANCH_VARIABLES)
        return Revision(
            commit=commit,
            branch=printable_name(branch) if branch != "(detached)" else next(filter(None, named), ""),
            dirty=any(not line.startswith(("# ", "? ")) for line in self._status),
            folder=self._folder_in_repository,
        )

    @property
    def _folder_in_repository(self) -> str:
        here = self.folder.resolve()
        is_below = self.top is not None and here.is_relative_to(self.top) and here != self.top
        return here.relative_to(self.top).as_posix() if self.top is not None and is_below else ""

    @property
    def untracked(self) -> list[str]:
        """The files that git neither tracks nor ignores, relative to the top folder. Raise `GitError`."""
        if not self._status:
            raise GitError("git status did not answer")
        return [line[2:] for line in self._status if line.startswith("? ")]

    @cached_property
    def index(self) -> Mapping[str, str]:
        """The mode of each file in git's index, by its path from the top folder. Raise `GitError`."""
        if self.top is None:
            return {}
        entries = split_names(git_bytes(self.top, "ls-files", "--stage", "-z", seconds=git.LONG_SECONDS))
        return {path: entry[:6] for entry, _, path in (entry.partition("\t") for entry in entries)}

    def is_tracked(self, path: str) -> bool:
        """Return whether git tracks a file or a folder at this path. Raise `GitError`."""
        return path in self.index or any(known.startswith(f"{path}/") for known in self.index)
