"""Where trials run: a prepared copy of each named sandbox per run, a fresh copy of that per trial."""

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import yaml

from passgate.tasks.errors import MeasurementError, UsageError
from passgate.tasks.model.sandbox import Bridge, ProcessResult, SandboxFile
from passgate.tasks.model.task import EvalTask
from passgate.tasks.sandboxes.isolation import TRIAL_FOLDERS, Isolation, best_isolation
from passgate.tasks.sandboxes.processes import run_process

SANDBOXES = "_shared/sandboxes"
SETUP_SECONDS = 300
RESET_SECONDS = 60


@dataclass(frozen=True)
class TrialSandbox:
    """One trial's own place."""

    workspace: Path
    scratch: Path
    network: bool
    _folder: Path
    _isolation: Isolation
    _processes: AbstractAsyncContextManager[None] = field(repr=False)
    _bridge: Bridge | None = None
    _is_agents: bool = False

    @property
    def isolation(self) -> str:
        return self._isolation.name

    @property
    def for_the_agent(self) -> Self:
        """The same place with a way to the models, and beside the limit on local processes: agents mostly wait."""
        return replace(self, _processes=nullcontext(), _is_agents=True)

    async def run(
        self,
        command: Sequence[str],
        *,
        seconds: float,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        network: bool = False,
    ) -> ProcessResult:
        """See `passgate.tasks.model.sandbox.Sandbox.run`."""
        ends_by_itself = self._isolation.contains_processes and not self._is_agents
        async with self._processes:
            return await run_process(
                self._isolation.wrap(
                    command,
                    trial_folder=self._folder,
                    workspace=self.workspace,
                    network=network,
                    bridge=self._bridge if self._is_agents else None,
                ),
                working_folder=self.workspace,
                environment={**minimal_environment(self._folder), **(environment or {})},
                mark=None if ends_by_itself else secrets.token_hex(16),
                seconds=seconds,
                stdin=stdin,
            )


class Workbench:
    """The sandboxes of one run. Use it as a context manager: at its end every folder of it is gone.

    `bridge` is what agents can reach from a sandbox without network; graders' commands and set-ups cannot. Its socket
    lies in a folder of its own. Raises `MeasurementError` when it does not work.
    """

    def __init__(
        self, suites_folder: Path, *, processes: int, hidden: Sequence[Path] = (), bridge: Bridge | None = None
    ) -> None:
        self._suites_folder = suites_folder.absolute()
        self._folder = Path(tempfile.mkdtemp(prefix="passgate-")).resolve()
        secret = [self._suites_folder, *_git_folders(self._suites_folder), *hidden]
        if bridge is not None:
            secret.append(bridge.socket.parent)
        try:
            self._isolation = best_isolation(secret, run_folder=self._folder, bridge=bridge)
        except MeasurementError:
            _remove(self._folder)
            raise
        self._bridge = bridge
        self._processes = asyncio.Semaphore(processes)
        self._prepared: dict[str, asyncio.Future[tuple[Path, SandboxFile]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _remove(self._folder)

    @asynccontextmanager
    async def sandbox(self, task: EvalTask) -> AsyncIterator[TrialSandbox]:
        """A fresh sandbox for one trial of a task. Raises `MeasurementError` when it cannot be brought about."""
        folder = self._folder / "trials" / secrets.token_hex(8)
        sandbox = await self._fresh(task, folder)
        try:
            await _run_all(sandbox, task.reset, RESET_SECONDS, "the task's reset")
            yield sandbox
        finally:
            await asyncio.shield(asyncio.to_thread(_remove, folder))

    async def _fresh(self, task: EvalTask, folder: Path) -> TrialSandbox:
        if task.sandbox is None:
            return await asyncio.to_thread(self._place, folder, None, network=task.network)
        template, described = await self._template(task.sandbox)
        sandbox = await asyncio.to_thread(self._place, folder, template, network=task.network or described.network)
        await _run_all(sandbox, described.reset, RESET_SECONDS, f"the reset of sandbox {task.sandbox}")
        return sandbox

    def _place(self, folder: Path, template: Path | None, *, network: bool) -> TrialSandbox:
        for name in TRIAL_FOLDERS:
            (folder / name).mkdir(parents=True)
        workspace = folder / "workspace"
        if template is not None:
            shutil.copytree(template, workspace, symlinks=True, dirs_exist_ok=True)
        return TrialSandbox(
            workspace, folder / "scratch", network, folder, self._isolation, self._processes, self._bridge
        )

    async def _template(self, name: str) -> tuple[Path, SandboxFile]:
        """The prepared copy of a named sandbox; its set-up runs once, whoever asks first."""
        if name not in self._prepared:
            self._prepared[name] = asyncio.ensure_future(self._prepare(name))
        return await asyncio.shield(self._prepared[name])

    async def _prepare(self, name: str) -> tuple[Path, SandboxFile]:
        source = self._suites_folder / SANDBOXES / name
        described = read_sandbox_file(source)
        files = source / "files"
        place = await asyncio.to_thread(
            self._place,
            self._folder / "templates" / name,
            files if files.is_dir() else None,
            network=described.network,
        )
        await _run_all(place, described.setup, SETUP_SECONDS, f"the set-up of sandbox {name}")
        return place.workspace, described


def _git_folders(folder: Path) -> list[Path]:
    """The repositories that a folder lies in: their history holds the hidden tests and the solutions too."""
    return [parent / ".git" for parent in folder.parents if (parent / ".git").is_dir()]


def read_sandbox_file(folder: Path) -> SandboxFile:
    """The description of a named sandbox; a folder without one needs no set-up. Raises `UsageError`."""
    file = folder / "sandbox.yaml"
    if not file.is_file():
        return SandboxFile()
    try:
        return SandboxFile.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise UsageError(f"{file}: not a sandbox description: {error}") from error


def minimal_environment(folder: Path) -> dict[str, str]:
    """What every command gets: no secret of ours, and Python and its tools as passgate itself runs them."""
    tools = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join([tools, os.environ.get("PATH", os.defpath)]),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _remove(folder: Path) -> None:
    """Remove a folder with all that is in it, folders without write permission too."""
    for parent, names, _ in os.walk(folder):
        for name in names:
            inner = Path(parent, name)
            if not inner.is_symlink():
                with suppress(OSError):
                    inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


async def _run_all(sandbox: TrialSandbox, commands: Sequence[str], seconds: float, what: str) -> None:
    for command in commands:
        result = await sandbox.run(["sh", "-c", command], seconds=seconds, network=sandbox.network)
        if result.timed_out:
            raise MeasurementError(f"{what} took longer than {seconds:g} s: {command}")
        if result.exit_code != 0:
            tail = result.stderr.strip()[-500:]
            raise MeasurementError(f"{what} exited {result.exit_code}: {command}: {tail}")
