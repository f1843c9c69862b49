"""The user's own git, asked about the repository that a folder lies in; it changes nothing and runs nothing else."""

import getpass
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import Any, Self

from passgate.tasks.errors import UsageError
from passgate.tasks.files.environment import bound_to_no_repository
from passgate.tasks.model.policy import DEFAULT_BRANCH, is_branch_name
from passgate.tasks.model.run import Revision

LINK, SUBMODULE = "120000", "160000"  # The modes of what is no file in a repository
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
)  # Where CI systems say which branch a change is to be merged into
TARGET_COMMIT_VARIABLES = ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA",)  # Where they say which commit is its tip
DEFAULT_VARIABLES = ("CI_DEFAULT_BRANCH", "BUILDKITE_PIPELINE_DEFAULT_BRANCH")  # Where they name the default branch
_EVENT_VARIABLE = "GITHUB_EVENT_PATH"  # The file in which GitHub says more of what has started a job
USUAL_BRANCHES = (DEFAULT_BRANCH, "master", "trunk")
REMOTE = "refs/remotes/origin"
_JOB_VARIABLES = ("JENKINS_URL", "TF_BUILD", "BUILDKITE", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID", "GITHUB_ACTIONS")
_NOT_SET = frozenset({"", "0", "false"})
HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECONDS = 60  # Of what takes git a moment, on a machine that may be busy
_LONG_SECONDS = 120  # For what takes longer the larger a repository is
# A repository may name programs that git would run, and paths may look like patterns.
_SETTINGS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "advice.graftFileDeprecated=false"),  # the advice would stand before git's own words
    "--literal-pathspecs",
)
_ASKS_NOBODY = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
# Refs that come with a fetch could put other commits into the places of those that judge.
_AS_COMMITTED = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
# A pull request is checked out without a branch; the CI system knows its name.
BRANCH_VARIABLES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH", "BRANCH_NAME")
_HAS_NONE = frozenset({1, 2})  # How git exits that has no such commit, setting or remote
_OUTSIDE = b"not a git repository"
# Renames would bring a second name into an entry.
_STATUS = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all")


class GitError(UsageError):
    """What git has said in place of an answer. It says nothing of the repository, not even that there is none."""


class NoAnswerError(GitError):
    """Git has not answered in time."""


def _git(folder: Path, *arguments: str) -> dict[str, Any]:
    """What starts a git command, for `subprocess`."""
    return {
        "args": ["git", *_SETTINGS, *arguments],
        "cwd": folder,
        "env": {**bound_to_no_repository(os.environ), **_ASKS_NOBODY, **_AS_COMMITTED},
    }


def _run(folder: Path, *arguments: str, stdin: bytes = b"", seconds: float) -> "subprocess.CompletedProcess[bytes]":
    try:
        return subprocess.run(
            **_git(folder, *arguments), input=stdin, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoAnswerError(f"git {arguments[0]} took longer than {seconds:g} s on this machine") from error
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror or error}") from error


def git_bytes(folder: Path, *arguments: str, stdin: bytes = b"", seconds: float = _SECONDS) -> bytes:
    """What a git command prints. Raises `GitError` when there is no git, it fails, or takes longer than `seconds`."""
    return _output(_run(folder, *arguments, stdin=stdin, seconds=seconds), arguments[0])


def _output(result: "subprocess.CompletedProcess[bytes]", command: str) -> bytes:
    if result.returncode != 0:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitError(said[0][:500] if said else f"git {command} exited {result.returncode}")
    return result.stdout


def git_text(folder: Path, *arguments: str) -> str:
    """The text that a git command prints, without the white space around it; empty where git has not what is asked
    for, and outside of a repository. Raises `GitError` where git gives no answer.
    """
    result = _run(folder, *arguments, seconds=_SECONDS)
    if result.returncode not in _HAS_NONE and _OUTSIDE not in result.stderr:
        return _output(result, arguments[0]).decode("utf-8", "replace").strip()
    return ""


def names_of(printed: bytes) -> list[str]:
    """The names that git prints with `-z`, as the file system has them."""
    return [name.decode("utf-8", "surrogateescape") for name in printed.split(b"\0") if name]


def printable_name(name: str) -> str:
    """A name that git prints, as a text that can be written anywhere."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def full_commit(folder: Path, name: str) -> str:
    """The commit that a hash, branch or tag means in the repository that a folder lies in; empty where none."""
    return git_text(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def user_name(folder: Path) -> str:
    """Who works here: as git calls them, else by the name they have logged in with; empty where nobody knows."""
    try:
        with suppress(GitError):
            if name := git_text(folder, "config", "user.name"):
                return name
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in many containers
        return ""


class Objects:
    """The contents of a repository's commits, read through one process of git. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        """Raises `GitError` where git cannot be run."""
        command = _git(folder, "cat-file", "--batch", "--follow-symlinks")
        try:
            self._process = subprocess.Popen(
                **command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise GitError(f"git cannot be run: {error.strerror or error}") from error
        # A clone without its contents fetches them when they are asked for, which may take for ever.
        self._timer = Timer(_LONG_SECONDS, self._process.kill)
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
        """The kind of an object, as in `blob`, and its content; `None` where there is none.

        `name` is a hash or `COMMIT:PATH`; links in the path are followed as far as they stay in the repository. Raises
        `GitError` where git gives no answer.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or "\n" in name:
            return None
        try:
            stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
            stdin.flush()
        except OSError:
            pass  # git has ended: there is no answer to read
        header = stdout.readline().split()
        if header and header[-1] in {b"missing", b"ambiguous"}:
            return None
        size = int(header[-1]) + 1 if header else 0
        content = stdout.read(size)
        if not header or len(content) < size:
            raise GitError("git cat-file gives no whole answer")
        # Of a link that leads nowhere in the repository it gives the path that it leads to.
        leads_nowhere = header[0] in {b"dangling", b"loop", b"notdir", b"symlink"}
        return None if leads_nowhere else (header[1].decode(), content[:-1])

    def file(self, commit: str, path: str) -> bytes | None:
        """The content of a file of a commit, wherever in it links lead; `None` where there is none. Raises
        `GitError`.
        """
        found = self.read(f"{commit}:{path}")
        return found[1] if found is not None and found[0] == "blob" else None

    def mode(self, commit: str, path: str) -> str:
        """The mode of what a commit has at a path, as in `LINK`; empty where there is nothing. Raises `GitError`."""
        # Asked for a link git gives what it leads to, and for a submodule nothing: only the folder around says which.
        place = PurePosixPath(path)
        folder = "" if place.parent == PurePosixPath() else place.parent.as_posix()
        found = self.read(f"{commit}:{folder}")
        name = place.name.encode("utf-8", "surrogateescape")
        if found is None or found[0] != "tree":
            return ""
        return next((mode for mode, entry in _entries(found[1], len(commit) // 2) if entry == name), "")


def _entries(tree: bytes, hash_size: int) -> Iterator[tuple[str, bytes]]:
    """Modes and names of a tree's content: `MODE NAME`, a null byte and the hash, one after the other."""
    position = 0
    while position < len(tree):
        end = tree.index(b"\0", position)
        mode, _, name = tree[position:end].partition(b" ")
        yield mode.decode(), name
        position = end + 1 + hash_size


class Checkout:
    """What git says of the repository that a folder lies in. Each thing is asked when it is first needed, and once, as
    it cannot change while passgate loads a plan. Use it as a context manager where `objects` are needed.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] = os.environ) -> None:
        """`environment` has the variables of a CI system."""
        self.folder = folder
        self._environment = environment
        self._tips: dict[str, str] = {}
        self._merge_bases: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "objects" in self.__dict__:
            self.objects.__exit__()

    @property
    def target(self) -> str:
        """The branch that a change goes into, as the CI system says; empty without one."""
        named = next(filter(None, (self._environment.get(name, "") for name in TARGET_VARIABLES)), "")
        # The job of a merge queue has a branch of its own, and no variable for the one that it goes into.
        return named or self._told_by_event("merge_group", "base_ref").removeprefix("refs/heads/")

    def _told_by_event(self, *keys: str) -> str:
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
        """Whether this is a job of a CI system, which sets CI."""
        return self._environment.get("CI", "").lower() not in _NOT_SET

    @property
    def is_job(self) -> bool:
        """Whether anything says that nobody has started this by hand, also where a CI system does not set CI."""
        return self.is_ci or bool(self.target) or any(self._environment.get(name) for name in _JOB_VARIABLES)

    @cached_property
    def target_commit(self) -> str:
        """The tip of the target branch as the CI system says; empty where it does not, or where it is not here."""
        named = (self._environment.get(name, "") for name in TARGET_COMMIT_VARIABLES)
        known = (full_commit(self.folder, name) for name in named if HASH.fullmatch(name))
        return next(filter(None, known), "")

    def commit_of(self, name: str) -> str:
        """The commit that a user names by a branch, a hash or an expression; empty where none. A tag that is called as
        a branch is never meant. Raises `GitError`.
        """
        if is_branch_name(name) and not HASH.fullmatch(name):
            refs = [f"refs/remotes/{name}", f"refs/heads/{name}"]
            there = git_text(self.folder, "for-each-ref", "--format=%(refname)", *refs).splitlines()
            name = next((ref for ref in refs if ref in there), name)
        return full_commit(self.folder, name)

    @cached_property
    def has_remote(self) -> bool:
        """Whether there is a remote `origin`."""
        return bool(git_text(self.folder, "config", "--get", "remote.origin.url"))

    @cached_property
    def is_alone(self) -> bool:
        """Whether what is checked out is all that there is: no remote, and no branch at another commit."""
        tips = git_text(self.folder, "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/remotes").split()
        return not self.has_remote and set(tips) <= {self.head}

    @cached_property
    def _position(self) -> list[str]:
        refs = [f"{place}/{name}" for name in self._asked for place in (REMOTE, "refs/heads")]
        asked = [f"--glob={ref[:-1]}[{ref[-1]}]" for ref in refs if is_branch_name(ref)]
        head = ("--show-toplevel", "--is-shallow-repository", "HEAD^{commit}")
        # It prints what it knows up to the first thing that is not there, which it repeats: a HEAD without a commit, a
        # default branch of the remote. Refs that are not there are left out of globs, and only globs mean nothing else.
        command = ("rev-parse", *head, "--symbolic", *asked, "--symbolic-full-name", f"{REMOTE}/HEAD")
        try:
            result = _run(self.folder, *command, seconds=_SECONDS)
        except NoAnswerError:
            raise
        except GitError:
            return []
        return result.stdout.decode("utf-8", "surrogateescape").splitlines()

    @cached_property
    def is_repository(self) -> bool:
        """Whether a folder has what git would look for: known also where git cannot be asked."""
        here = self.folder.absolute()
        return any((folder / ".git").exists() for folder in (here, *here.parents))

    @property
    def top(self) -> Path | None:
        """The top folder of the repository; `None` outside of one. Raises `NoAnswerError`."""
        return Path(self._position[0]).resolve() if self._position else None

    @property
    def is_shallow(self) -> bool:
        return self._position[1:2] == ["true"]

    @property
    def head(self) -> str:
        """The commit that is checked out; empty without one."""
        return next((word for word in self._position[2:3] if HASH.fullmatch(word)), "")

    @property
    def default_branch(self) -> str:
        """The default branch of the repository: as the remote `origin` has it, as the CI system says, else the only one
        of the usual names, or the first of several; empty where there is none here.
        """
        named = (self._remote_head, *self._told_defaults)
        return next((name for name in named if self.tip(name)), next(iter(self._usual), ""))

    @property
    def _told_defaults(self) -> list[str]:
        told = [self._environment.get(name, "") for name in DEFAULT_VARIABLES]
        return [name for name in (*told, self._told_by_event("repository", "default_branch")) if name]

    @property
    def _asked(self) -> set[str]:
        """The branches that are looked for in any case."""
        return {self.target, *self._told_defaults, *USUAL_BRANCHES}

    @property
    def baseline_branch(self) -> str:
        """The default branch where a policy names none: of a usual name, or told by the CI system. Any other branch
        could be the change's own, as in a clone of a checkout of it; empty then.
        """
        name = self.default_branch
        return name if name in {*USUAL_BRANCHES, *self._told_defaults} else ""

    @property
    def could_be_default(self) -> list[str]:
        """The branches of the remote of which nobody says which is the default one."""
        is_remote = len(self._usual) > 1 and self.tip(self._usual[0]).startswith(REMOTE)
        return self._usual if is_remote and self.default_branch == self._usual[0] != self._remote_head else []

    @cached_property
    def _usual(self) -> list[str]:
        """The branches of the usual names that the remote has, or else that are here."""
        tips = {name: self.tip(name) for name in USUAL_BRANCHES}
        remote = [name for name, tip in tips.items() if tip.startswith(REMOTE)]
        return remote or [name for name, tip in tips.items() if tip]

    @property
    def _remote_head(self) -> str:
        """The default branch of the remote `origin`; empty where git does not know it."""
        last = self._position[-1] if self.head and len(self._position) > 3 else ""
        return last.removeprefix(f"{REMOTE}/") if last != f"{REMOTE}/HEAD" else ""

    def tip(self, branch: str) -> str:
        """The full name of the branch that has this very name, of the remote `origin` where that has it; empty where
        there is none. As a revision a name could mean any commit, as `main~1` and `main^{/text}` do.
        """
        if not is_branch_name(branch):
            return ""
        refs = [f"{place}/{branch}" for place in (REMOTE, "refs/heads")]
        if branch in {*self._asked, self._remote_head}:
            there = self._position[3:]
        else:
            there = git_text(self.folder, "for-each-ref", "--format=%(refname)", *refs).splitlines()
        return next((ref for ref in refs if ref in there), "")

    def tip_commit(self, branch: str) -> str:
        """The commit at the tip of a branch: of the target as the CI system says, else that of `tip`."""
        if branch not in self._tips:
            tip = self.tip(branch)
            told = self.target_commit if branch == self.target else ""
            self._tips[branch] = told or (full_commit(self.folder, tip) if tip else "")
        return self._tips[branch]

    def merge_base(self, branch: str) -> str:
        """The merge base of HEAD with a branch; empty where there is none."""
        if branch not in self._merge_bases:
            tip = self.tip_commit(branch)
            self._merge_bases[branch] = git_text(self.folder, "merge-base", "HEAD", tip) if tip else ""
        return self._merge_bases[branch]

    @cached_property
    def objects(self) -> Objects:
        """What its commits hold. Raises `GitError`."""
        return Objects(self.folder)

    @cached_property
    def _status(self) -> list[str]:
        try:
            return names_of(git_bytes(self.folder, *_STATUS, seconds=_LONG_SECONDS))
        except NoAnswerError:
            raise
        except GitError:
            return []

    @property
    def revision(self) -> Revision:
        """The commit and branch; empty without a repository, a commit or git. Raises `NoAnswerError`."""
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
        """The files that git neither has nor ignores, relative to the top folder. Raises `GitError`."""
        if not self._status:
            raise GitError("git status gives no answer")
        return [line[2:] for line in self._status if line.startswith("? ")]

    @cached_property
    def index(self) -> Mapping[str, str]:
        """The mode of each file that git has now, by its path from the top folder. Raises `GitError`."""
        if self.top is None:
            return {}
        entries = names_of(git_bytes(self.top, "ls-files", "--stage", "-z", seconds=_LONG_SECONDS))
        return {path: entry[:6] for entry, _, path in (entry.partition("\t") for entry in entries)}

    def is_tracked(self, path: str) -> bool:
        """Whether git has a file or a folder of this path now. Raises `GitError`."""
        return path in self.index or any(known.startswith(f"{path}/") for known in self.index)
