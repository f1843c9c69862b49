"""Commands of the suites' authors at the beginning and the end of a workspace's life."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from passgate.tasks.model.task import EvalTask, Hook
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox, refuse_failure

WORKSPACE_VARIABLES: Final = ("WORKSPACE_PATH", "AGENTV_WORKSPACE_PATH")
_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, kw_only=True)
class Occasion:
    """When and for whom a hook is run."""

    name: str
    """The hook's: `before_all`, `before_each`, `after_each` or `after_all`."""
    task: EvalTask
    """The trial's; for hooks of the whole run the first one that asked for the workspace."""
    run_id: str

    def told(self, workspace: Path) -> dict[str, Any]:
        """What the hook reads on standard input, with AgentV's keys."""
        each = self.name.endswith("_each")
        return {
            "workspace_path": str(workspace),
            "test_id": self.task.own_id if each else f"__{self.name}__",
            "task_id": self.task.task_id if each else None,
            "eval_run_id": self.run_id,
            "eval_dir": str(Path(self.task.file).absolute().parent),
            "case_input": self.task.prompt if each else None,
            "case_metadata": self.task.metadata if each else None,
        }


async def run_hook(
    hook: Hook | None,
    occasion: Occasion,
    sandbox: TrialSandbox,
    *,
    suites_folder: Path,
    environment: Mapping[str, str],
) -> None:
    """Run a hook, where there is one. Raises `MeasurementError` when it fails or takes too long.

    `{{ workspace_path }}` and the other keys of what it is told may stand in its command.
    """
    if hook is None:
        return
    told = occasion.told(sandbox.workspace)
    command = [_PLACEHOLDER.sub(lambda match: _filled(match, told), word) for word in hook.command]
    result = await sandbox.run_for_authors(
        command,
        folder=suites_folder / hook.cwd,
        seconds=hook.timeout_seconds,
        stdin=json.dumps(told, ensure_ascii=False, default=str).encode("utf-8", "replace"),
        environment={**environment, **dict.fromkeys(WORKSPACE_VARIABLES, str(sandbox.workspace))},
    )
    refuse_failure(result, hook.timeout_seconds, f"the hook {occasion.name}", shlex.join(command))


def _filled(match: re.Match[str], told: Mapping[str, Any]) -> str:
    if match[1] not in told:
        return match[0]
    value = told[match[1]]
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
