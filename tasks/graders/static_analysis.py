"""Static analysis of the agent's work.

Python starts isolated (`-I`), so a `ruff.py` in the workspace is not taken for ruff, and every flag that keeps
a tool from reading the workspace's configuration files is given: the agent could edit them.
"""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from passgate.tasks.errors import MeasurementError, Raw
from passgate.tasks.files.temporary import new_folder
from passgate.tasks.graders.checks import checks_grade, gather_checks
from passgate.tasks.graders.evidence import Evidence
from passgate.tasks.graders.workspace import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    UnusableFileError,
    read_bytes,
    regular_file,
    resolve,
    run_shell,
)
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.graders import StaticAnalysis
from passgate.tasks.model.quotes import quote, quote_end, raw
from passgate.tasks.model.sandbox import ProcessResult

REMEDY: Final = "pip install 'passgate[graders]'"
_FINDINGS: Final = 1
_BLOCKED: Final = 2
_WHAT_BLOCKS_MYPY: Final = (": error:", "There are no .py[i] files in", "is not a valid Python package name")
_SOURCES: Final = (".py", ".pyi", ".ipynb")
# Comments that switch a tool off for a whole file, or set it otherwise: an agent that writes one grades itself. In a
# notebook a line begins with a quote.
_SWITCHES: Final = {
    "ruff": re.compile(
        r"""[ \t"]*#[ \t]*(?:ruff[ \t]*:[ \t]*(?!isort)\w|flake8[ \t]*[:=][ \t]*noqa).*""", re.IGNORECASE
    ),
    "mypy": re.compile(r"""#[ \t]*mypy[ \t]*:.*"""),
}
_IGNORES_ALL: Final = re.compile(r"#[ \t]*type:[ \t]*ignore\b.*")  # for mypy, before the first statement of a file


def _ruff_arguments(configuration: Path | None) -> list[str]:
    chosen = ["--isolated"] if configuration is None else ["--config", str(configuration)]
    # A .gitignore in the workspace could take files out of sight.
    return ["check", *chosen, "--no-cache", "--no-respect-gitignore", "--output-format=concise"]


def _ruff_is_clean(result: ProcessResult, _configuration: Path | None) -> bool:
    if result.exit_code == 0:
        # The sources that `_require_sources` has found were not analysed.
        return "No Python files found" not in result.stderr
    if result.exit_code == _FINDINGS and result.stdout.strip():
        return False
    raise _failure("ruff", result)


def _mypy_arguments(configuration: Path | None) -> list[str]:
    # An empty name keeps mypy from looking for a file itself.
    chosen = f"--config-file={configuration or ''}"
    return [chosen, "--no-incremental", "--cache-dir=/dev/null", "--no-color-output"]


def _mypy_is_clean(result: ProcessResult, configuration: Path | None) -> bool:
    if configuration is not None and str(configuration) in result.stderr:
        # mypy goes on without the settings that it does not understand.
        raise MeasurementError(raw("mypy cannot read its configuration: ", quote_end(result.stderr)))
    if result.exit_code == 0:
        return True
    said = result.stdout + result.stderr
    if "INTERNAL ERROR" in said or result.stderr.startswith("usage:"):
        raise _failure("mypy", result)
    # Code that mypy cannot take in at all, such as a syntax error, has the exit code of wrong usage.
    is_blocked = result.exit_code == _BLOCKED and any(text in said for text in _WHAT_BLOCKS_MYPY)
    if is_blocked or (result.exit_code == _FINDINGS and result.stdout.strip()):
        return False
    raise _failure("mypy", result)


def _failure(tool: str, result: ProcessResult) -> MeasurementError:
    if f"No module named {tool}" in result.stderr:
        return MeasurementError(f"{tool} is not installed: {REMEDY}")
    said = quote_end(result.stderr) or quote_end(result.stdout)
    return MeasurementError(raw(f"{tool} did not work (exit code {result.exit_code}): ", said))


PYTHON_TOOLS: Final = {"ruff": (_ruff_arguments, _ruff_is_clean), "mypy": (_mypy_arguments, _mypy_is_clean)}
"""By name: the arguments for a configuration file, if any, and whether a result means that the tool found nothing. The
latter raises `MeasurementError` for a result that is neither findings nor none.
"""


async def grade_static_analysis(options: StaticAnalysis, evidence: Evidence) -> RawGrade:
    """Run every tool over the workspace; none may find anything. The score is the share that found nothing.

    Code that a tool cannot parse is a finding. Raises `MeasurementError` when a tool is not installed, does
    not work or does not end in time.
    """
    return checks_grade(options, await gather_checks(_run_tool(tool, options, evidence) for tool in options.tools))


async def _run_tool(tool: str, options: StaticAnalysis, evidence: Evidence) -> RawCheck:
    sandbox, seconds = evidence.sandbox, options.timeout_seconds
    if tool not in PYTHON_TOOLS:
        result = _ended(tool, await run_shell(sandbox, tool, seconds=seconds), options)
        if result.exit_code in {NOT_EXECUTABLE, NOT_FOUND}:
            raise MeasurementError(raw(f"`{tool}` cannot be run: ", quote_end(result.stderr)))
        is_clean = result.exit_code == 0
    else:
        try:
            sources = await asyncio.to_thread(_require_sources, sandbox.workspace, options.paths)
            switch = await asyncio.to_thread(_switch, tool, sources, evidence)
        except UnusableFileError as error:
            return RawCheck(passed=False, message=f"{tool} cannot analyse the work: {error}")
        if switch:
            return RawCheck(passed=False, message=switch)
        arguments_for, finds_nothing = PYTHON_TOOLS[tool]
        async with new_folder(sandbox.scratch) as folder:
            configuration = await asyncio.to_thread(_copy_configuration, tool, options, evidence, folder)
            command = [sys.executable, "-I", "-m", tool, *arguments_for(configuration), "--", *options.paths]
            result = _ended(tool, await sandbox.run(command, seconds=seconds), options)
        is_clean = finds_nothing(result, configuration)
    if is_clean:
        return RawCheck(passed=True, message=f"{tool} found no problems")
    return RawCheck(passed=False, message=raw(f"{tool} found: ", quote((result.stdout + result.stderr).strip())))


def _ended(tool: str, result: ProcessResult, options: StaticAnalysis) -> ProcessResult:
    if result.timed_out:
        seconds = f"{options.timeout_seconds:g} seconds"
        raise MeasurementError(f"{tool} did not end within {seconds}: increase `timeout_seconds` of {options.label}")
    return result


def _copy_configuration(tool: str, options: StaticAnalysis, evidence: Evidence, folder: Path) -> Path | None:
    relative = next((path for name, path in options.configuration.items() if name == tool), None)
    if relative is None:
        return None
    try:
        # Copied, because a sandbox need not show the suites folder to what runs in it.
        return Path(shutil.copy(evidence.suites_folder / relative, folder))
    except OSError as error:
        raise MeasurementError(f"the configuration of {tool} cannot be read: {error}") from error


def _require_sources(workspace: Path, paths: tuple[str, ...]) -> list[str]:
    """Return the files to analyse. Refuses paths that hold none, and anything named like source code that is not a
    file.

    Both tools find nothing where there is nothing, and wait for ever when they meet a FIFO.
    """
    root = Path(os.path.realpath(workspace))
    every: list[str] = []
    for relative in paths:
        path = resolve(workspace, relative)
        sources = [relative]
        if path.is_dir():
            files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
            sources = [str(file.relative_to(root)) for file in files if file.name.endswith(_SOURCES)]
        if not sources:
            raise UnusableFileError(f"there is no Python file in {relative}")
        for source in sources:
            regular_file(workspace, source)
        every += sources
    return every


def _switch(tool: str, sources: Sequence[str], evidence: Evidence) -> Raw:
    """Where the agent has switched a tool off for a whole file; empty where it has not. What was there before it began
    is the author's.
    """
    changes = evidence.transcript.file_changes
    known = changes is not None and not changes.remark
    changed = {change.path: change for change in changes.files} if changes is not None else {}
    for source in sources:
        change = changed.get(os.path.normpath(source))
        if change is None and known:
            continue
        lines = read_bytes(evidence.sandbox.workspace, source).decode("utf-8", "replace").splitlines()
        leading = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines)
        found = [line for line in lines if _SWITCHES[tool].match(line)]
        found += [line for line in leading if tool == "mypy" and _IGNORES_ALL.match(line.strip())]
        if change is not None and change.diff is not None:
            added = {line[1:] for line in change.diff.splitlines() if line.startswith("+")}
            found = [line for line in found if line in added]
        if found:
            return raw(f"{source} switches {tool} off by a comment: ", quote(found[0].strip(), 200))
    return ""
