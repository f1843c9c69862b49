"""Where trials run: a prepared copy of each named sandbox or workspace per run, a fresh copy of that per trial."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import yaml

from passgate.tasks.errors import MeasurementError, Raw, UsageError
from passgate.tasks.files.removal import remove_tree
from passgate.tasks.files.temporary import TemporaryFolder
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.sandbox import SANDBOXES, Bridge, SandboxFile
from passgate.tasks.model.task import EvalTask
from passgate.tasks.sandboxes.changed_files import NO_FILES, list_files
from passgate.tasks.sandboxes.isolation import best_isolation, refuse_unisolated
from passgate.tasks.sandboxes.trial_sandbox import (
    INPUTS_FOLDER,
    Once,
    Surroundings,
    TrialSandbox,
    make_sandbox,
    run_all,
)

if TYPE_CHECKING:
    from passgate.tasks.sandboxes.workspaces import Workspaces

SETUP_SECONDS = 300
RESET_SECONDS = 60
_MOST_BORROWED = 20  # Repositories whose objects one borrows, directly or through another one


class Workbench(AbstractContextManager["Workbench"], AbstractAsyncContextManager["Workbench"]):
    """The sandboxes of one run. Use it as a context manager, which removes every folder of it at the end. As an
    asynchronous one it first gives up unfinished set-ups and runs the `after_all` hooks of workspaces. `bridge` is what
    agents, but not graders and set-ups, can reach from a sandbox without network; its socket lies in a folder of its
    own. `label` begins the name of the workbench's folder; `agent` is the name of the agent that is run. Raise
    `MeasurementError` if the bridge does not work, `UsageError` if there is no place for temporary folders, or no
    isolation where it is required.
    """

    def __init__(
        self,
        suites_folder: Path,
        *,
        processes: int,
        hidden: Sequence[Path] = (),
        bridge: Bridge | None = None,
        label: str = "trials",
        is_isolation_required: bool = False,
        agent: str = "",
    ) -> None:
        self._suites_folder = suites_folder.absolute()
        self._held = TemporaryFolder(label)
        self._folder = self._held.path
        above = self._suites_folder.parents
        # The history of the repository holds the hidden tests and the solutions too.
        copies = [other / self._suites_folder.relative_to(top) for top in above for other in other_worktrees(top)]
        of_authors = [self._suites_folder, *copies, *(folder for parent in above for folder in git_folders(parent))]
        repository = [folder for folder in (self._suites_folder, *above) if (folder / ".git").exists()][:1]
        secret = [*of_authors, *hidden, *([bridge.socket.parent] if bridge else [])]
        try:
            isolation = best_isolation(secret, run_folder=self._folder, bridge=bridge)
            if is_isolation_required:
                refuse_unisolated(isolation)
        except (MeasurementError, UsageError):
            self._held.remove()
            raise
        self.isolation = isolation
        shown, limit = isolation.reveal([*repository, *of_authors]), asyncio.Semaphore(processes)
        self._around = Surroundings(isolation=isolation, of_authors=shown, processes=limit, bridge=bridge)
        self._prepared = Once[tuple[Path, SandboxFile]]()
        self._remains: list[str] = []
        self._agent = agent

    @cached_property
    def _workspaces(self) -> "Workspaces":
        # Few tasks have a workspace.
        from passgate.tasks.sandboxes.workspaces import Workspaces

        return Workspaces(self._suites_folder, self._folder / "workspaces", self._around, self._agent)

    def __exit__(self, *_: object) -> None:
        remains = self._held.remove()
        if remains is not None:
            self._remains.append(str(remains))

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._prepared.cancel_unfinished()
            if "_workspaces" in self.__dict__:
                await self._workspaces.after_all()
        finally:
            await asyncio.shield(asyncio.to_thread(self.__exit__))

    @property
    def warnings(self) -> Sequence[Raw]:
        """What went wrong after trials, in hooks that tidy up and in the removal of folders. It changes no verdict."""
        of_hooks = self._workspaces.warnings if "_workspaces" in self.__dict__ else ()
        return (*of_hooks, *self._remains)

    @asynccontextmanager
    async def sandbox(self, task: EvalTask) -> AsyncIterator[TrialSandbox]:
        """Open a fresh sandbox for one trial of a task. Raise `MeasurementError` if that fails."""
        folder = self._folder / "trials" / secrets.token_hex(8)
        try:
            sandbox = await self._fresh(task, folder)
            state = await self._workspaces.before_each(sandbox, task) if task.workspace else None
            try:
                await run_all(sandbox, task.reset, RESET_SECONDS, "the task's reset")
                before = await asyncio.to_thread(list_files, sandbox.workspace) if sandbox.is_used else NO_FILES
                yield replace(sandbox, before=before)
            finally:
                if state is not None:
                    await self._workspaces.after_each(sandbox, task, state)
        finally:
            if folder.exists():
                # What is left is tried again, and told, when the workbench closes.
                await asyncio.shield(asyncio.to_thread(remove_tree, folder))

    async def _fresh(self, task: EvalTask, folder: Path) -> TrialSandbox:
        template, described = None, SandboxFile()
        if task.workspace is not None:
            template = (await self._workspaces.prepare(task.workspace, task)).sandbox.workspace
        elif task.sandbox is not None:
            template, described = await self._prepared.get(task.sandbox, partial(self._prepare, task.sandbox))
        sandbox = await self._place(folder, template, network=task.network or described.network)
        await run_all(sandbox, described.reset, RESET_SECONDS, f"the reset of sandbox {task.sandbox}")
        # The last step: no reset of a sandbox may change them.
        files: Mapping[str, Path] = {}
        if not all(isinstance(message.content, str) for message in task.messages):
            inputs = folder / INPUTS_FOLDER
            files = await asyncio.to_thread(copy_inputs, task.messages, self._suites_folder, inputs)
        return replace(sandbox, files=files, variables=task.workspace.environment if task.workspace else {})

    async def _place(self, folder: Path, template: Path | None, *, network: bool) -> TrialSandbox:
        if template is None:
            return make_sandbox(folder, None, self._around, network=network)
        copying = asyncio.ensure_future(
            asyncio.to_thread(make_sandbox, folder, template, self._around, network=network)
        )
        try:
            return await asyncio.shield(copying)
        except asyncio.CancelledError:
            # A thread cannot be cancelled, and would bring back the folder that is about to be removed.
            await asyncio.gather(copying, return_exceptions=True)
            raise

    async def _prepare(self, name: str) -> tuple[Path, SandboxFile]:
        source = self._suites_folder / SANDBOXES / name
        described = read_sandbox_file(source)
        template = source / "files" if (source / "files").is_dir() else None
        place = await self._place(self._folder / "templates" / name, template, network=described.network)
        await run_all(place, described.setup, SETUP_SECONDS, f"the set-up of sandbox {name}")
        return place.workspace, described


def other_worktrees(checkout: Path) -> list[Path]:
    """Return the resolved folders of the other checkouts that the repository of a checkout has."""
    own = _own_folder(checkout)
    if own is None:
        return []
    shared = (_shared_folder(own) or own).resolve()
    entries = [shared, *(_linked_folder(file) for file in shared.glob("worktrees/*/gitdir"))]
    folders = dict.fromkeys(entry.parent.resolve() for entry in entries if entry is not None and entry.name == ".git")
    return [folder for folder in folders if folder.is_dir() and folder != checkout.resolve()]


def git_folders(checkout: Path) -> list[Path]:
    """Return the resolved folders that hold what the `.git` of a checkout leads to; none if it has none."""
    own = _own_folder(checkout)
    if own is None:
        return []
    shared = _shared_folder(own)
    folders = [own, *([shared] if shared else [])]
    for git in folders.copy():
        waiting, seen = [git / "objects"], set[Path]()
        while waiting and len(seen) < _MOST_BORROWED:
            objects = waiting.pop()
            if objects not in seen:
                seen.add(objects)
                folders.append(objects)
                with suppress(OSError, UnicodeDecodeError):
                    lines = (objects / "info" / "alternates").read_text(encoding="utf-8").splitlines()
                    waiting += [objects / line for line in lines if line and not line.startswith("#")]
    return list(dict.fromkeys(folder.resolve() for folder in folders if folder.is_dir()))


def _own_folder(checkout: Path) -> Path | None:
    entry = checkout / ".git"
    return entry if entry.is_dir() else _linked_folder(entry, "gitdir: ")


def _shared_folder(own: Path) -> Path | None:
    """Return the folder that a linked worktree shares with the others, which its own one names."""
    return _linked_folder(own / "commondir")


def _linked_folder(file: Path, begin: str = "") -> Path | None:
    """Return the folder that a file of git names, relative to the folder that the file is in."""
    with suppress(OSError, UnicodeDecodeError):
        text = file.read_text(encoding="utf-8").strip()
        if text.startswith(begin):
            return file.parent / text.removeprefix(begin)
    return None


def read_sandbox_file(folder: Path) -> SandboxFile:
    """Return the description of a named sandbox; a folder without one needs no set-up. Raise `UsageError`."""
    file = folder / "sandbox.yaml"
    if not file.is_file():
        return SandboxFile()
    try:
        return SandboxFile.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise UsageError(f"{file}: not a sandbox description: {error}") from error


def copy_inputs(messages: Sequence[TaskMessage], suites_folder: Path, folder: Path) -> dict[str, Path]:
    """Copy the files and images that messages name into a folder. Return where each lies. Raise `MeasurementError`."""
    placed: dict[str, Path] = {}
    blocks = [block for message in messages if not isinstance(message.content, str) for block in message.content]
    named = [str(block.value) for block in blocks if block.type in {"file", "image"}]
    for name in dict.fromkeys(named):
        if name.startswith(("data:", "http://", "https://")):
            continue  # an image that is not a file
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            path = PurePosixPath(f"elsewhere-{len(placed)}", path.name)
        placed[name] = folder / path
        placed[name].parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(suites_folder / name, placed[name])
        except OSError as error:
            raise MeasurementError(f"the file {name} of the task's messages cannot be read: {error}") from error
    return placed
