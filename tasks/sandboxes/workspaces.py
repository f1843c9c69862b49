"""Workspaces that eval files describe: template, then repositories, then hooks of the suites' authors."""

import asyncio
import json
import re
import shlex
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.json_values import digest_of
from passgate.tasks.model.task import EvalTask, Hook, Workspace
from passgate.tasks.sandboxes.repositories import Once, Repositories
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
WORKSPACE_VARIABLES: Final = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")
_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


# A copy that trials' workspaces are copied from, and the first task that asked for it.
_Prepared = tuple[Workspace, TrialSandbox, EvalTask]


class Workspaces:
    """The workspaces of one run. Tasks that differ only in `before_each` and `after_each` share a prepared copy."""

    def __init__(self, suites_folder: Path, folder: Path, around: Surroundings) -> None:
        self._suites_folder = suites_folder
        self._folder = folder
        self._around = around
        self._repositories = Repositories(suites_folder, folder / "repositories", around.processes)
        self._prepared = Once[_Prepared]()
        self.warnings: list[str] = []  # what went wrong after trials, and changes nothing of them

    async def template(self, workspace: Workspace, task: EvalTask) -> Path:
        """The prepared copy of a workspace. Raises `MeasurementError` when it cannot be brought about."""
        key = digest_of(workspace.model_dump(mode="json", exclude={"before_each", "after_each"}))
        prepare = partial(self._prepare, workspace, task, self._folder / key[:16])
        _, sandbox, _ = await self._prepared.get(key, prepare)
        return sandbox.workspace

    async def _prepare(self, workspace: Workspace, task: EvalTask, folder: Path) -> _Prepared:
        template = None
        if workspace.template is not None:
            template = (self._suites_folder / workspace.template).resolve()
        if template is not None and not template.is_dir():
            raise MeasurementError(f"the workspace's template {workspace.template} is no folder")
        sandbox = await asyncio.to_thread(new_sandbox, folder, template, self._around, network=True)
        await _refuse_missing(workspace, sandbox)  # first: the clone of a repository may take minutes
        for repository in workspace.repos:
            await self._repositories.check_out(repository, sandbox.workspace)
        await self.run_hook("before_all", workspace, sandbox, task)
        return workspace, sandbox, task

    async def after_all(self) -> None:
        """Run the last hook of every workspace that was prepared; what is still being prepared is given up."""
        for prepared in await self._prepared.give_up():
            if not isinstance(prepared, BaseException):
                await self.run_last_hook("after_all", *prepared)

    async def run_last_hook(
        self, name: str, workspace: Workspace | None, sandbox: TrialSandbox, task: EvalTask
    ) -> None:
        """Run a hook of trials that have been graded: when it fails, that is a warning and no error of a trial."""
        try:
            await self.run_hook(name, workspace, sandbox, task)
        except (MeasurementError, OSError) as error:
            self.warnings.append(f"{task.task_id}: {error}" if name == "after_each" else str(error))

    async def run_hook(self, name: str, workspace: Workspace | None, sandbox: TrialSandbox, task: EvalTask) -> None:
        """Run a hook, if there is one. What it is told may stand in its command too, as `{{ workspace_path }}`. Raises
        `MeasurementError` if it fails or takes too long.
        """
        hook: Hook | None = getattr(workspace, name, None)
        if workspace is None or hook is None:
            return
        told = self._told(name, sandbox.workspace, task)
        texts = {key: value if isinstance(value, str) else _as_json(value) for key, value in told.items()}
        texts |= {key: "" for key, value in told.items() if value is None}
        command = [_PLACEHOLDER.sub(lambda match: texts.get(match[1], match[0]), word) for word in hook.command]
        result = await sandbox.run_for_authors(
            command,
            folder=self._suites_folder / hook.cwd,
            seconds=hook.timeout_seconds,
            stdin=_as_json(told).encode("utf-8", "replace"),
            environment={**workspace.environment, **dict.fromkeys(WORKSPACE_VARIABLES, str(sandbox.workspace))},
        )
        refuse_failure(result, hook.timeout_seconds, f"the hook {name}", shlex.join(command))

    def _told(self, name: str, workspace: Path, task: EvalTask) -> dict[str, Any]:
        """What a hook reads, with AgentV's keys. For hooks of the whole run `task` is the first that asked."""
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
    """Raises `MeasurementError` that names everything which the machine lacks."""
    path = minimal_environment(sandbox.workspace)["PATH"]
    commands = [name for name in workspace.required_commands if shutil.which(name, path=path) is None]
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
