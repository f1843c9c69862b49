"""Workspaces that eval files describe: template, then repositories, then hooks."""

import asyncio
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.json_values import digest_of
from passgate.tasks.model.task import EvalTask, Workspace
from passgate.tasks.sandboxes.hooks import Occasion, run_hook
from passgate.tasks.sandboxes.repositories import Repositories
from passgate.tasks.sandboxes.trial_sandbox import (
    Surroundings,
    TrialSandbox,
    minimal_environment,
    new_sandbox,
    refuse_failure,
)

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


@dataclass(frozen=True)
class _Prepared:
    """A copy that trials' workspaces are copied from."""

    workspace: Workspace
    sandbox: TrialSandbox
    task: EvalTask
    """The first that asked for it."""


class Workspaces:
    """The workspaces of one run. Each is prepared once; tasks that differ only in `before_each` and `after_each` share
    the prepared copy.
    """

    def __init__(self, suites_folder: Path, folder: Path, around: Surroundings) -> None:
        self._suites_folder = suites_folder
        self._folder = folder
        self._around = around
        self._repositories = Repositories(suites_folder, folder / "repositories", around.processes)
        self._prepared: dict[str, asyncio.Future[_Prepared]] = {}
        self.warnings: list[str] = []
        """What went wrong after trials, and changes nothing of them."""

    async def template(self, workspace: Workspace, task: EvalTask) -> Path:
        """The prepared copy of a workspace. Raises `MeasurementError` when it cannot be brought about."""
        key = digest_of(workspace.model_dump(mode="json", exclude={"before_each", "after_each"}))
        if key not in self._prepared:
            self._prepared[key] = asyncio.ensure_future(self._prepare(workspace, task, self._folder / key[:16]))
        return (await asyncio.shield(self._prepared[key])).sandbox.workspace

    async def _prepare(self, workspace: Workspace, task: EvalTask, folder: Path) -> _Prepared:
        template = self._template_folder(workspace)
        sandbox = await asyncio.to_thread(new_sandbox, folder, template, self._around, network=True)
        await _refuse_missing(workspace, sandbox)
        for repository in workspace.repos:
            await self._repositories.check_out(repository, sandbox.workspace)
        await self._hook("before_all", workspace, sandbox, task)
        return _Prepared(workspace, sandbox, task)

    def _template_folder(self, workspace: Workspace) -> Path | None:
        if workspace.template is None:
            return None
        template = (self._suites_folder / workspace.template).resolve()
        if not template.is_dir():
            raise MeasurementError(f"the workspace's template {workspace.template} is no folder")
        return template

    async def before_each(self, workspace: Workspace, sandbox: TrialSandbox, task: EvalTask) -> None:
        """Run the hook of a trial that begins. Raises `MeasurementError` when it fails."""
        await self._hook("before_each", workspace, sandbox, task)

    async def after_each(self, workspace: Workspace, sandbox: TrialSandbox, task: EvalTask) -> None:
        """Run the hook of a trial that has been graded: when it fails, that is a trouble and no error of the trial."""
        await self._after("after_each", workspace, sandbox, task)

    async def after_all(self) -> None:
        """Run the last hook of every workspace that was prepared; what is still being prepared is given up."""
        for waiting in self._prepared.values():
            waiting.cancel()
        done = await asyncio.gather(*self._prepared.values(), return_exceptions=True)
        for prepared in done:
            if isinstance(prepared, _Prepared):
                await self._after("after_all", prepared.workspace, prepared.sandbox, prepared.task)

    async def _after(self, name: str, workspace: Workspace, sandbox: TrialSandbox, task: EvalTask) -> None:
        try:
            await self._hook(name, workspace, sandbox, task)
        except (MeasurementError, OSError) as error:
            self.warnings.append(f"{task.task_id}: {error}" if name == "after_each" else str(error))

    async def _hook(self, name: str, workspace: Workspace, sandbox: TrialSandbox, task: EvalTask) -> None:
        await run_hook(
            getattr(workspace, name),
            Occasion(name=name, task=task, run_id=self._folder.parent.name),
            sandbox,
            suites_folder=self._suites_folder,
            environment=workspace.environment,
        )


async def _refuse_missing(workspace: Workspace, sandbox: TrialSandbox) -> None:
    """Raises `MeasurementError` that names everything which the machine lacks."""
    path = minimal_environment(sandbox.workspace)["PATH"]
    commands = [name for name in workspace.required_commands if shutil.which(name, path=path) is None]
    python = shutil.which("python3", path=path) or sys.executable
    modules = await _missing_modules(workspace.required_python_modules, python, sandbox)
    missing = [
        f"{what} {', '.join(names)}" for what, names in (("commands", commands), ("Python modules", modules)) if names
    ]
    if missing:
        raise MeasurementError(f"the workspace needs what this machine does not have: {'; '.join(missing)}")


async def _missing_modules(names: Sequence[str], python: str, sandbox: TrialSandbox) -> list[str]:
    if not names:
        return []
    result = await sandbox.run([python, "-c", _FIND_MODULES, *names], seconds=_LOOK_SECONDS)
    refuse_failure(result, _LOOK_SECONDS, "the look for Python modules", python)
    return result.stdout.split()
