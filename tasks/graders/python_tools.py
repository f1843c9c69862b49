"""How ruff and mypy are started and what their answers mean.

Python starts isolated (`-I`), so a `ruff.py` in the workspace is not taken for ruff, and every flag that keeps
a tool from reading the workspace's configuration files is given: the agent could edit them.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.texts import ending
from passgate.tasks.model.sandbox import ProcessResult

REMEDY: Final = "pip install 'passgate[graders]'"
_FINDINGS: Final = 1
_BLOCKED: Final = 2
_WHAT_BLOCKS_MYPY: Final = (": error:", "There are no .py[i] files in", "is not a valid Python package name")


class PythonTool(NamedTuple):
    """One tool: the command for some paths, and whether a result means that it found nothing."""

    command: Callable[[Path | None, tuple[str, ...]], list[str]]
    """From a configuration file, if any, and the paths."""
    is_clean: Callable[[ProcessResult, Path | None], bool]
    """Raises `MeasurementError` when the result is neither findings nor none."""


def _ruff_command(configuration: Path | None, paths: tuple[str, ...]) -> list[str]:
    chosen = ["--isolated"] if configuration is None else ["--config", str(configuration)]
    # A .gitignore in the workspace could take files out of sight.
    options = ["--no-cache", "--no-respect-gitignore", "--output-format=concise"]
    return [sys.executable, "-I", "-m", "ruff", "check", *chosen, *options, "--", *paths]


def _ruff_is_clean(result: ProcessResult, _configuration: Path | None) -> bool:
    if result.exit_code == 0:
        return "No Python files found" not in result.stderr
    if result.exit_code == _FINDINGS and result.stdout.strip():
        return False
    raise _failure("ruff", result)


def _mypy_command(configuration: Path | None, paths: tuple[str, ...]) -> list[str]:
    # An empty name keeps mypy from looking for a file itself.
    chosen = f"--config-file={configuration or ''}"
    options = ["--no-incremental", "--cache-dir=/dev/null", "--no-color-output"]
    return [sys.executable, "-I", "-m", "mypy", chosen, *options, "--", *paths]


def _mypy_is_clean(result: ProcessResult, configuration: Path | None) -> bool:
    said = result.stdout + result.stderr
    if configuration is not None and str(configuration) in result.stderr:
        # mypy goes on without the settings that it does not understand.
        raise MeasurementError(f"mypy cannot read its configuration: {ending(result.stderr)}")
    if result.exit_code == 0:
        return True
    if "INTERNAL ERROR" in said or result.stderr.startswith("usage:"):
        raise _failure("mypy", result)
    if result.exit_code == _FINDINGS and result.stdout.strip():
        return False
    # Code that mypy cannot take in at all, such as a syntax error, has the exit code of wrong usage.
    if result.exit_code == _BLOCKED and any(text in said for text in _WHAT_BLOCKS_MYPY):
        return False
    raise _failure("mypy", result)


def _failure(tool: str, result: ProcessResult) -> MeasurementError:
    if f"No module named {tool}" in result.stderr:
        return MeasurementError(f"{tool} is not installed: {REMEDY}")
    said = ending(result.stderr) or ending(result.stdout)
    return MeasurementError(f"{tool} did not work (exit code {result.exit_code}): {said}")


PYTHON_TOOLS: Final = {
    "ruff": PythonTool(_ruff_command, _ruff_is_clean),
    "mypy": PythonTool(_mypy_command, _mypy_is_clean),
}
