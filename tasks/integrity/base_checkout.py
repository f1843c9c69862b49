"""Check out the base of a change, and load the plan and the agent that its files define.

Files are written exactly as they were committed: `git archive` and `git checkout` obey attributes, which can leave out
and convert files, and which a change can edit.
"""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from passgate.tasks.errors import InputError, StorageError, UsageError
from passgate.tasks.formats.digests import relocate_task
from passgate.tasks.formats.folder import folder_files
from passgate.tasks.formats.project_files import ENV_FILE, EnvFileError, read_env_file
from passgate.tasks.history.storage import STATE_FOLDER
from passgate.tasks.integrity import git
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.git import LINK, SUBMODULE, GitError, Objects, full_commit, git_bytes, split_names
from passgate.tasks.integrity.judging_places import JudgingPlaces, find_edits
from passgate.tasks.model.agent import AgentChange, AgentKind, AgentSpec, agent_change, looks_like_a_form
from passgate.tasks.model.run import Base, Edit, Plan
from passgate.tasks.planning.named_agents import named_agents
from passgate.tasks.planning.plan import PlanFiles, make_plan, plan_agent_digest

MOST_FILES = 100_000
MOST_BYTES = 512 * 1024 * 1024
_PROGRAM = "100755"
_NEVER_COPIED = frozenset({".git", STATE_FOLDER.name, "__pycache__"})
# How a commit's placeholder of a file begins that a git filter (LFS, git-crypt) stores elsewhere or encrypts.
_PLACEHOLDERS = (b"version https://git-lfs.github.com/spec/", b"\0GITCRYPT\0")


class CommitTooLargeError(UsageError):
    """A commit has more or larger files than passgate writes out."""


@dataclass(frozen=True)
class CommittedFile:
    """A file of a commit, or a submodule."""

    path: str  # Relative to the repository
    mode: str
    hash: str  # Of the content; the commit of a submodule
    size: int

    @property
    def is_link(self) -> bool:
        return self.mode == LINK

    @property
    def is_submodule(self) -> bool:
        return self.mode == SUBMODULE


@dataclass(frozen=True)
class ChangeComparison:
    """A change and its base."""

    own: Plan  # Of the change's own files
    base: Base
    checkout: Checkout
    root: Path  # The top folder of the repository
    places: JudgingPlaces

    def find_edits(self, places: JudgingPlaces) -> "ChangeComparison":
        """Return the comparison with other places and the edits of them. Raise `UsageError` if git fails."""
        edits = find_edits(self.checkout, self.base.judging, places.what)
        return replace(self, places=places, base=self.base.model_copy(update={"edits": edits}))


def check_out(compared: ChangeComparison, folder: Path) -> PlanFiles:
    """Write the judging files of the base into a folder that contains at most others of them, and return where they
    are.

    If they may use files elsewhere in the repository, as eval files do, write these too. Raise `UsageError` if git
    cannot read the files, `StorageError` if they cannot be written.
    """
    root, commit, objects = compared.root, compared.base.judging, compared.checkout.objects
    names, suites = list(compared.places.what), folder / compared.places.suites
    try:
        files = committed_files(root, commit, names)
        new = _not_in(folder, files)
        write_files(objects, new, folder)
        _write_submodules(root, new, compared.base.edits, folder)
        # Paths of eval files may lead anywhere in the repository, and nowhere else.
        (folder / ".git").mkdir(exist_ok=True)
        # A repository may be large, so write the whole tree only for tasks that may need it.
        uses_more = any(file.is_link for file in files)
        if uses_more or (suites.is_dir() and folder_files(suites, os.environ).evals):
            # Without these files, only tasks that name one of them fail to load.
            with suppress(CommitTooLargeError):
                write_files(objects, _not_in(folder, committed_files(root, commit)), folder)
        add_uncommitted(root, files, [edit.path for edit in compared.base.edits], names, folder)
    except OSError as error:
        raise StorageError(f"cannot write the files of {commit[:12]} to {folder}: {error}") from error
    working_folder = folder / Path.cwd().resolve().relative_to(root)
    return PlanFiles(suites, folder / compared.places.gates, working_folder, _environment(compared, folder))


def committed_files(root: Path, commit: str, paths: Sequence[str] = ()) -> list[CommittedFile]:
    """List the files and submodules of a commit at and below `paths`, or all of them without paths.

    Raise `UsageError` if git fails, `CommitTooLargeError` for too many or too large files.
    """
    names = [] if "." in paths else paths
    try:
        printed = git_bytes(
            root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", *names, seconds=git.LONG_SECONDS
        )
    except GitError as error:
        raise UsageError(f"git cannot list the files of {commit[:12]}: {error}") from error
    files = []
    for line in split_names(printed):
        fields, _, path = line.partition("\t")
        mode, _, hash_, length = fields.split()
        files.append(CommittedFile(path, mode, hash_, 0 if length == "-" else int(length)))
    size = sum(file.size for file in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise CommitTooLargeError(
            f"{len(files)} files with {size / 1e6:.0f} MB at {commit[:12]} are more than the {MOST_FILES} files and "
            f"{MOST_BYTES / 1e6:.0f} MB that can be taken out"
        )
    return files


def write_files(objects: Objects, files: Sequence[CommittedFile], folder: Path) -> None:
    """Write files of a commit, but not its submodules, into a folder that contains at most others of the same commit.

    Raise `UsageError` if git cannot read them, `OSError` if they cannot be written.
    """
    # Links last, so that nothing is written through one.
    for file in sorted((file for file in files if not file.is_submodule), key=lambda file: file.is_link):
        if not {"..", ".git", ""}.isdisjoint(file.path.split("/")):
            raise UsageError(f"git has a file {file.path!r}, a path that cannot be written")
        try:
            found = objects.read(file.hash)
        except GitError as error:
            raise UsageError(f"git cannot read the files of the merge base: {error}") from error
        if found is None:
            raise UsageError(f"git does not have {file.path} of the merge base: fetch the history")
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.is_link:
            place.symlink_to(os.fsdecode(found[1]))
        else:
            place.write_bytes(found[1])
            place.chmod(0o755 if file.mode == _PROGRAM else 0o644)


def add_uncommitted(
    root: Path, files: Sequence[CommittedFile], edited: Iterable[str], paths: Sequence[str], folder: Path
) -> None:
    """Copy from the working tree what a commit does not contain: ignored files below `paths`, and the contents of files
    that a git filter stores elsewhere, unless they are `edited`. Raise `OSError`, `GitError`.
    """
    unedited = {file.path for file in files if not (file.is_link or file.is_submodule)} - {*edited}
    placeholders = [path for path in unedited if _is_placeholder(folder / path) and not _is_placeholder(root / path)]
    for path in placeholders:
        shutil.copyfile(root / path, folder / path)
    ignored = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", *paths)
    for path in split_names(git_bytes(root, *ignored, seconds=git.LONG_SECONDS)):
        place = folder / path
        # git prints another repository as a name that ends with a slash.
        if path.endswith("/") or not _NEVER_COPIED.isdisjoint(PurePosixPath(path).parts):
            continue
        if not place.exists() and not place.is_symlink() and place.parent.resolve().is_relative_to(folder.resolve()):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / path, place, follow_symlinks=False)


def _is_placeholder(file: Path) -> bool:
    if not file.is_file():
        return True
    with file.open("rb") as content:
        return content.read(64).startswith(_PLACEHOLDERS)


def _not_in(folder: Path, files: Sequence[CommittedFile]) -> list[CommittedFile]:
    return [file for file in files if not os.path.lexists(folder / file.path)]


def _write_submodules(root: Path, files: Sequence[CommittedFile], edits: Sequence[Edit], folder: Path) -> None:
    """Write the files of submodules, except of one that is neither checked out nor edited.

    Raise `UsageError` for an edited submodule whose commit is missing.
    """
    for module in (file for file in files if file.is_submodule):
        place = root / module.path
        if (place / ".git").exists() and full_commit(place, module.hash):
            inner = committed_files(place, module.hash)
            try:
                with Objects(place) as objects:
                    write_files(objects, inner, folder / module.path)
            except GitError as error:
                raise UsageError(f"git cannot read the files of the merge base: {error}") from error
            _write_submodules(root, [replace(one, path=f"{module.path}/{one.path}") for one in inner], edits, folder)
        elif _edits_in(edits, module.path):
            raise UsageError(f"the submodule {module.path} is not available at the commit of the merge base")


def _edits_in(edits: Sequence[Edit], path: str) -> bool:
    """Return whether a file or folder, or anything in it, is edited."""
    return any(f"{edit.path}/".startswith(f"{path}/") for edit in edits)


def plan_of_checkout(compared: ChangeComparison, files: PlanFiles, agent: AgentSpec) -> Plan:
    """Load the plan of the same run with this agent from the base's `files`. Take from the change's own plan the
    folders that the agent works on outside of the suites, and the prices of models that those files do not price.

    Mask the secrets of both plans. Raise `InputError` or `UsageError`.
    """
    own = compared.own
    plan = make_plan(own.gate, own.request, agent, revision=own.revision, files=files)
    original = Path(own.suites_folder)
    secrets = tuple(dict.fromkeys((*plan.policy.secrets, *own.policy.secrets)))
    model = agent.fixed_model
    added = model and plan.prices.price(model) is None and own.prices.price(model) is not None
    unpriced = f"the merge base has no price for the model {model!r}: passgate uses the one that this change adds"
    changed = {
        "run_id": own.run_id,
        "created_at": own.created_at,
        "tasks": tuple(relocate_task(task, files.suites, original) for task in plan.tasks),
        "policy": plan.policy.into(compared.checkout.baseline_branch).model_copy(update={"secrets": secrets}),
        "prices": plan.prices.over(own.prices),
        "warnings": (*plan.warnings, *([unpriced] if added else [])),
    }
    plan = plan.model_copy(update=changed)
    try:
        digest = plan_agent_digest(plan)
    except UsageError:
        # The change moved the agent's files, so no other run had this agent.
        digest = f"unknown in {plan.run_id}"
    return plan.model_copy(update={"agent_digest": digest})


def first_problem(error: InputError | UsageError, files: PlanFiles) -> str:
    """Return the first problem of a checkout's files in one line, with paths as in the repository."""
    problems = str(error).splitlines()
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    first = problems[0]
    for prefix in (files.working_folder, Path(os.path.relpath(files.working_folder))):
        first = first.replace(f"{prefix}{os.sep}", "")
    return first + more


def _environment(compared: ChangeComparison, folder: Path) -> Mapping[str, str]:
    """Return the variables of this process and of the untracked `.env` files around the suites folder."""
    root, variables = compared.root, dict[str, str]()
    suites = root / compared.places.suites
    places = [place for place in (suites, *suites.parents) if place.is_relative_to(root)]
    for place in reversed(places):
        file = (place / ENV_FILE).resolve()
        # A link of the change may lead to a file of the change.
        name = file.relative_to(root) if file.is_relative_to(root) else None
        if name and not (folder / name).exists() and not compared.checkout.is_tracked(str(name)):
            try:
                variables |= read_env_file(file)
            except EnvFileError as error:
                raise UsageError(f"{file}: {error}") from error
    return {**variables, **os.environ}


@dataclass(frozen=True)
class JudgedAgent:
    """The agent that the run uses."""

    spec: AgentSpec
    change: AgentChange | None = None  # The difference between the change's definition and the merge base's
    note: str = ""  # Why the merge base does not define it


def judged_agent(compared: ChangeComparison, files: PlanFiles, folder: Path) -> JudgedAgent:
    """Return the agent of a change, or the merge base's, whose `files` are in a folder, if the change edits a judging
    part of it.
    """
    own, root = compared.own, compared.root
    name, before, why = own.request.agent, None, "this change brings it"
    try:
        if looks_like_a_form(name):
            before = own.agent  # The command line defines it
        else:
            named = named_agents(files.gates, files.suites, files.working_folder)
            # With their paths in the repository instead of the checkout.
            places = [file.folder.resolve().relative_to(folder.resolve()) for file in named.targets]
            moved = [replace(file, folder=root / place) for file, place in zip(named.targets, places, strict=True)]
            before = replace(named, targets=tuple(moved)).find(name)
    except InputError as error:
        why = first_problem(error, files)
    if before is None:
        return JudgedAgent(own.agent, note=f"the merge base does not define the agent {name!r}: {why}")
    recordings = recordings_folder(before, root)
    if recordings is not None and (folder / recordings).is_dir() and _edits_in(compared.base.edits, recordings):
        # Use the recordings of the checkout, under the agent's name in the history.
        before = before.model_copy(update={"target": str(folder / recordings), "name": str(before)})
    change = agent_change(name, before, own.agent)
    return JudgedAgent(before if change is not None and change.by_base else own.agent, change)


def recordings_folder(agent: AgentSpec, root: Path) -> str | None:
    """Return the folder of a replay agent's recordings in the repository, or `None` for another agent."""
    if agent.kind is not AgentKind.REPLAY or not agent.target:
        return None
    folder = Path(agent.target).resolve()
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else None
