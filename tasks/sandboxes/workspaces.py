"""Workspaces that eval files describe: template, then repositories, then hooks of the suites' authors."""

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from passgate.tasks.errors import MeasurementError, Raw
from passgate.tasks.files.environment import bound_to_no_repository
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.quotes import quote_end, raw
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import EvalTask, Extension, Hook, Hooks, Repository, Workspace
from passgate.tasks.sandboxes.extensions import BUN, ExtensionState, run_extension
from passgate.tasks.sandboxes.processes import run_process
from passgate.tasks.sandboxes.trial_sandbox import (
    Once,
    Surroundings,
    TrialSandbox,
    make_sandbox,
    minimal_environment,
    refuse_failure,
)

GIT_SECONDS: Final = 600  # of every single command of git
_OF_GITHUB: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
_REMOTE: Final = re.compile(r"[a-z+]+://|[^/\s]+@[^/\s]+:")
_CREDENTIALS: Final = re.compile(r"(://)[^/@\s]*@")
# A question for a password would wait for an answer until the time is up.
_ASKS_NOBODY: Final = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never",
    "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C.UTF-8",
}  # fmt: skip
# No program of the user's own or of a template runs when a repository is made or checked out.
_SETTINGS: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
_LOOK_SECONDS: Final = 60
_FIND_MODULES: Final = """\
import importlib.util, sys
for name in sys.argv[1:]:
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        found = False
    if not found:
        print(name)
"""
WORKSPACE_VARIABLES: Final = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")
_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_EXTENSION_HOOKS: Final = {
    "before_all": "beforeAll", "before_each": "beforeEach", "after_each": "afterEach", "after_all": "afterAll",
}  # fmt: skip


class Prepared(NamedTuple):
    """A copy that trials' workspaces are copied from, and the first task that asked for it."""

    workspace: Workspace
    sandbox: TrialSandbox
    task: EvalTask
    state: ExtensionState


class Repositories:
    """The git repositories of one run, each fetched once. A checkout has the history before its commit and nothing of
    what came after: no other branch, no tag and no remote. So an agent that is asked to repair something does not find
    the repair, and no address with a password in it.
    """

    def __init__(self, suites_folder: Path, folder: Path, processes: AbstractAsyncContextManager[None]) -> None:
        self._suites_folder = suites_folder
        self._folder = folder
        self._processes = processes
        self._mirrors = Once[Path]()

    async def check_out(self, repository: Repository, workspace: Path) -> None:
        """Check a repository out into a workspace at the commit that it names. Raise `MeasurementError`."""
        place = _free_place(workspace, repository.path)
        address = git_address(repository.repo, self._suites_folder)
        mirror = await self._mirrors.get(address, partial(self._clone, address))
        name = hide_credentials(repository.repo)
        commit = await self._commit(repository, mirror, name)
        branch = await self._branch(repository, mirror)
        await asyncio.to_thread(place.mkdir, parents=True, exist_ok=True)
        await self._git(["init", "--quiet", "--template="], place, name)
        await self._git(["fetch", "--quiet", "--no-tags", "--update-shallow", str(mirror), commit], place, name)
        if repository.sparse:
            folders = "\n".join(str(PurePosixPath(folder)) for folder in repository.sparse)
            await self._git(["sparse-checkout", "set", "--cone", "--stdin"], place, name, stdin=folders.encode())
        target = ["-B", branch, commit] if branch else ["--detach", commit]
        await self._git(["checkout", "--quiet", "--force", *target], place, name)
        (place / ".git/FETCH_HEAD").unlink(missing_ok=True)  # it says where the mirror is

    async def _clone(self, address: str) -> Path:
        mirror = self._folder / json_digest(address)[:16]
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
        clone = ["clone", "--quiet", "--bare", "--template=", "--", address, str(mirror)]
        await self._git(clone, self._folder, hide_credentials(address))
        # Checkouts fetch commits by their hashes, and those before them have no branch.
        await self._git(["config", "uploadpack.allowAnySHA1InWant", "true"], mirror, hide_credentials(address))
        return mirror

    async def _commit(self, repository: Repository, mirror: Path, name: str) -> str:
        """Return the hash of the commit; one that no branch and no tag has is fetched by itself."""
        wanted = repository.commit or "HEAD"
        if wanted.startswith("-"):  # git would take it for an option
            raise MeasurementError(f"the repository {name} has no commit {wanted}")
        if await self._hash(wanted, mirror) is None:
            known = f"refs/passgate/{json_digest(wanted)[:16]}"
            await self._git(["fetch", "--quiet", "--no-tags", "origin", f"+{wanted}:{known}"], mirror, name)
            wanted = known
        found = await self._hash(f"{wanted}^{{commit}}~{repository.ancestor}", mirror)
        if found is None:
            start = repository.commit or "its last one"
            raise MeasurementError(f"the repository {name} has no commit {repository.ancestor} before {start}")
        return found

    async def _hash(self, revision: str, mirror: Path) -> str | None:
        result = await self._run(["rev-parse", "--verify", "--quiet", "--end-of-options", revision], mirror)
        return result.stdout.strip() if result.exit_code == 0 else None

    async def _branch(self, repository: Repository, mirror: Path) -> str | None:
        """Return the branch of the checkout: the default one, or the one that is named instead of a commit."""
        if repository.commit is None:
            result = await self._run(["symbolic-ref", "--quiet", "--short", "HEAD"], mirror)
            return result.stdout.strip() or None
        result = await self._run(["show-ref", "--verify", "--quiet", "--", f"refs/heads/{repository.commit}"], mirror)
        return repository.commit if result.exit_code == 0 else None

    async def _git(self, arguments: Sequence[str], folder: Path, name: str, *, stdin: bytes = b"") -> None:
        result = await self._run(arguments, folder, stdin=stdin)
        if result.timed_out:
            raise MeasurementError(f"the repository {name}: git {arguments[0]} took longer than {GIT_SECONDS:g} s")
        if result.exit_code != 0:
            what = f"the repository {name}: git {arguments[0]} exited {result.exit_code}: "
            raise MeasurementError(raw(what, quote_end(_CREDENTIALS.sub(r"\1", result.stderr), 500)))

    async def _run(self, arguments: Sequence[str], folder: Path, *, stdin: bytes = b"") -> ProcessResult:
        environment = {**bound_to_no_repository(os.environ), **_ASKS_NOBODY}
        run = partial(run_process, working_folder=folder, environment=environment, mark=secrets.token_hex(16))
        async with self._processes:
            return await run(["git", *_SETTINGS, *arguments], seconds=GIT_SECONDS, stdin=stdin)


def git_address(repo: str, suites_folder: Path) -> str:
    """Return the address for git: a URL as it is, the path of a folder, `owner/name` of GitHub. Raise
    `MeasurementError`.
    """
    if _REMOTE.match(repo):
        return repo
    folder = (suites_folder / repo).resolve()
    if folder.is_dir():
        return str(folder)
    if _OF_GITHUB.fullmatch(repo):
        return f"https://github.com/{repo.removesuffix('.git')}.git"
    raise MeasurementError(f"the repository {repo!r} is neither a URL nor a folder nor an OWNER/NAME of GitHub")


def hide_credentials(address: str) -> str:
    """Return an address without the name and the password that it may hold."""
    return _CREDENTIALS.sub(r"\1", address)


def _free_place(workspace: Path, path: str) -> Path:
    place = (workspace / path).resolve()
    if not place.is_relative_to(workspace.resolve()):
        raise MeasurementError(f"the repository's path {path!r} is outside the workspace")
    if (place / ".git").exists():
        raise MeasurementError(f"there is already a repository at {path!r} of the workspace")
    return place


class Workspaces:
    """The workspaces of one run. Tasks that differ only in `before_each` and `after_each` share a prepared copy.
    `agent` is the name of the agent that is run.
    """

    def __init__(self, suites_folder: Path, folder: Path, around: Surroundings, agent: str) -> None:
        self._suites_folder = suites_folder
        self._folder = folder
        self._around = around
        self._agent = agent
        self._repositories = Repositories(suites_folder, folder / "repositories", around.processes)
        self._prepared = Once[Prepared]()
        self.warnings: list[Raw] = []  # what went wrong after trials, and changes nothing of them

    async def prepare(self, workspace: Workspace, task: EvalTask) -> Prepared:
        """Return the prepared copy of a workspace. Raise `MeasurementError` if it cannot be prepared."""
        key = json_digest(workspace.model_dump(mode="json", exclude={"before_each", "after_each"}))
        prepare = partial(self._prepare, workspace, task, self._folder / key[:16])
        return await self._prepared.get(key, prepare)

    async def _prepare(self, workspace: Workspace, task: EvalTask, folder: Path) -> Prepared:
        template = (self._suites_folder / workspace.template).resolve() if workspace.template is not None else None
        if template is not None and not template.is_dir():
            raise MeasurementError(f"the workspace's template {workspace.template} is not a folder")
        sandbox = await asyncio.to_thread(make_sandbox, folder, template, self._around, network=True)
        await _refuse_missing(workspace, sandbox)  # first: the clone of a repository may take minutes
        for repository in workspace.repos:
            await self._repositories.check_out(repository, sandbox.workspace)
        prepared = Prepared(workspace, sandbox, task, ExtensionState())
        return prepared._replace(state=await self._run_hooks("before_all", prepared))

    async def before_each(self, sandbox: TrialSandbox, task: EvalTask) -> ExtensionState:
        """Run what comes before a trial, in its workspace. Raise `MeasurementError` if it fails or takes too long."""
        if task.workspace is None:
            return ExtensionState()
        prepared = await self.prepare(task.workspace, task)
        state = prepared.state.relocate(prepared.sandbox.workspace, sandbox.workspace)
        return await self._run_hooks("before_each", Prepared(task.workspace, sandbox, task, state))

    async def after_each(self, sandbox: TrialSandbox, task: EvalTask, state: ExtensionState) -> None:
        """Run what comes after a trial that has been graded: when it fails, that is a warning and no error."""
        if task.workspace is not None:
            await self._run_last_hooks("after_each", Prepared(task.workspace, sandbox, task, state))

    async def after_all(self) -> None:
        """Run the last hook of every prepared workspace; cancel what is still being prepared."""
        for prepared in await self._prepared.cancel_unfinished():
            if not isinstance(prepared, BaseException):
                await self._run_last_hooks("after_all", prepared)

    async def _run_last_hooks(self, name: str, place: Prepared) -> None:
        for step in self._steps(name, place.workspace):
            try:
                place = place._replace(state=await self._run_step(step, name, place))
            except (MeasurementError, OSError) as error:
                what = error.message if isinstance(error, MeasurementError) else str(error)
                self.warnings.append(raw(f"{place.task.task_id}: ", what) if name == "after_each" else what)

    async def _run_hooks(self, name: str, place: Prepared) -> ExtensionState:
        for step in self._steps(name, place.workspace):
            place = place._replace(state=await self._run_step(step, name, place))
        return place.state

    def _steps(self, name: str, workspace: Workspace) -> list[Extension | Hook]:
        """Return what runs under the name of a hook: extensions, the workspace's hook, the agent's; after a trial the
        agent's goes first.
        """
        extensions = [each for each in workspace.extensions if each.hook == _EXTENSION_HOOKS[name]]
        named = [hooks for hooks in workspace.target_hooks if hooks.target == self._agent]
        own: Hook | None = getattr(workspace, name)
        agents: Hook | None = getattr((*named, *workspace.target_hooks, Hooks())[0], name)
        steps = (agents, *extensions, own) if name.startswith("after") else (*extensions, own, agents)
        return [step for step in steps if step is not None]

    async def _run_step(self, step: Extension | Hook, name: str, place: Prepared) -> ExtensionState:
        """Run a hook or an extension. Raise `MeasurementError` if it fails or takes too long."""
        workspace, sandbox, task, state = place
        given = self._hook_input(name, sandbox.workspace, task)
        variables = {**workspace.environment, **dict.fromkeys(WORKSPACE_VARIABLES, str(sandbox.workspace))}
        if isinstance(step, Extension):
            context = {**{key: value for key, value in given.items() if value is not None}, **state.context}
            return state.add(await run_extension(step, workspace, sandbox, self._suites_folder, context, variables))
        # What the command reads may stand in its words too, as `{{ workspace_path }}`.
        texts = {key: value if isinstance(value, str) else _as_json(value) for key, value in given.items()}
        texts |= {key: "" for key, value in given.items() if value is None}
        command = [_PLACEHOLDER.sub(lambda match: texts.get(match[1], match[0]), word) for word in step.command]
        result = await sandbox.run_for_authors(
            command,
            folder=self._suites_folder / step.cwd,
            seconds=step.timeout_seconds,
            stdin=_as_json(given).encode("utf-8", "replace"),
            environment=variables,
        )
        refuse_failure(result, step.timeout_seconds, f"the hook {name}", shlex.join(command))
        return state

    def _hook_input(self, name: str, workspace: Path, task: EvalTask) -> dict[str, Any]:
        """Return what a hook reads, with AgentV's keys. For hooks of the whole run `task` is the first that asked."""
        each = name.endswith("_each")
        return {
            "workspace_path": str(workspace),
            "test_id": task.own_id if each else f"__{name}__",
            "task_id": task.task_id if each else None,
            "eval_run_id": self._folder.parent.name,
            "eval_dir": str(Path(task.file).absolute().parent),
            "case_input": task.prompt if each else None,
            "case_metadata": task.metadata if each else None,
        }


async def _refuse_missing(workspace: Workspace, sandbox: TrialSandbox) -> None:
    """Raise `MeasurementError` that names everything the machine lacks."""
    path = minimal_environment(sandbox.workspace)["PATH"]
    needed = dict.fromkeys([*workspace.required_commands, *(BUN for each in workspace.extensions if each.module)])
    commands = [name for name in needed if shutil.which(name, path=path) is None]
    python = shutil.which("python3", path=path) or sys.executable
    modules: list[str] = []
    if workspace.required_python_modules:
        look = [python, "-c", _FIND_MODULES, *workspace.required_python_modules]
        result = await sandbox.run(look, seconds=_LOOK_SECONDS)
        refuse_failure(result, _LOOK_SECONDS, "the look for Python modules", python)
        modules = result.stdout.split()
    lacking = {"commands": commands, "Python modules": modules}
    missing = [f"{what} {', '.join(names)}" for what, names in lacking.items() if names]
    if missing:
        raise MeasurementError(f"the workspace needs what this machine does not have: {'; '.join(missing)}")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
