"""Shell commands of task authors, run in a trial's workspace."""

import re
from collections.abc import Mapping
from typing import Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.sandbox import ProcessResult, Sandbox

NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
# What `sh -c` itself says; a script that it starts says its own name first.
_MISSING_PROGRAM: Final = re.compile(r"^sh: (?:(?:line )?[0-9]+: )?([^\s/:]+): (?:command )?not found$", re.MULTILINE)


async def run_shell(
    sandbox: Sandbox, command: str, *, seconds: float, environment: Mapping[str, str] | None = None
) -> ProcessResult:
    """Run a command with `sh -c` in the workspace and say how it ended.

    Raises `MeasurementError` when the command names a program that this machine does not have. A program
    named by a path is the agent's matter: it may have been asked to write it.
    """
    result = await sandbox.run(["sh", "-c", command], seconds=seconds, environment=environment)
    missing = _MISSING_PROGRAM.search(result.stderr) if result.exit_code == NOT_FOUND else None
    if missing and not await _is_installed(sandbox, missing[1]):
        raise MeasurementError(f"`{command}` cannot be run: {missing[1]} is not installed")
    return result


async def _is_installed(sandbox: Sandbox, program: str) -> bool:
    # The message may come from the agent's code, which would like an error better than a fail.
    result = await sandbox.run(["sh", "-c", 'command -v "$1"', "sh", program], seconds=10)
    return result.exit_code == 0
