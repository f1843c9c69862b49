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
from passgate.tasks.graders.evidence import Evidence, checks_grade, gather_checks
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
_HIDING: Final = re.compile(r"\.pyi$|/__init__\.py$")
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


async def grade_static_analysis(options: StaticAnalysis, evidence: Evidence) -> RawGrade:
    """Run every tool over the workspace; none may find anything. The score is the share that found nothing.

    Code that a tool cannot parse is a finding. Raises `MeasurementError` when a tool is not installed, does
    not work or does not end in time.
    """
    return checks_grade(options, await gather_checks(_run_tool(tool, options, evidence) for tool in options.tools))


async def _run_tool(tool: str, options: StaticAnalysis, evidence: Evidence) -> RawCheck:
    sandbox, seconds = evidence.sandbox, options.timeout_seconds
    if tool not in _SWITCHES:
        result = await run_shell(sandbox, tool, seconds=seconds)
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
        async with new_folder(sandbox.scratch) as folder:
            configuration = await asyncio.to_thread(_copy_configuration, tool, options, evidence, folder)
            command = [sys.executable, "-I", "-m", tool, *_arguments(tool, configuration), "--"]
            result = await sandbox.run([*command, *options.paths], seconds=seconds)
            is_clean = not result.timed_out and _is_clean(tool, result, configuration)
            if is_clean and tool == "mypy" and (hidden := _hidden_from_mypy(sources)):
                result = await sandbox.run([*command, *hidden], seconds=seconds)
                is_clean = not result.timed_out and _is_clean(tool, result, configuration)
    if result.timed_out:
        remedy = f"increase `timeout_seconds` of {options.label}"
        raise MeasurementError(f"{tool} did not end within {seconds:g} seconds: {remedy}")
    if is_clean:
        return RawCheck(passed=True, message=f"{tool} found no problems")
    return RawCheck(passed=False, message=raw(f"{tool} found: ", quote((result.stdout + result.stderr).strip())))


def _copy_configuration(tool: str, options: StaticAnalysis, evidence: Evidence, folder: Path) -> Path | None:
    relative = next((path for name, path in options.configuration.items() if name == tool), None)
    if relative is None:
        return None
    try:
        # Copied, because a sandbox need not show the suites folder to what runs in it.
        return Path(shutil.copy(evidence.suites_folder / relative, folder))
    except OSError as error:
        raise MeasurementError(f"the configuration of {tool} cannot be read: {error}") from error


def _arguments(tool: str, configuration: Path | None) -> list[str]:
    if tool == "ruff":
        chosen = ["--isolated"] if configuration is None else ["--config", str(configuration)]
        # A .gitignore in the workspace could take files out of sight.
        return ["check", *chosen, "--no-cache", "--no-respect-gitignore", "--output-format=concise"]
    # An empty name keeps mypy from looking for a file itself.
    own = f"--config-file={configuration or ''}"
    return [own, "--no-incremental", "--cache-dir=/dev/null", "--no-color-output"]


def _is_clean(tool: str, result: ProcessResult, configuration: Path | None) -> bool:
    """Return whether a tool found nothing. Raises `MeasurementError` for a result that does not say."""
    said = result.stdout + result.stderr
    if tool == "mypy" and configuration is not None and str(configuration) in result.stderr:
        # mypy goes on without the settings that it does not understand.
        raise MeasurementError(raw("mypy cannot read its configuration: ", quote_end(result.stderr)))
    if result.exit_code == 0:
        # Else ruff did not analyse the sources that `_require_sources` has found.
        return tool != "ruff" or "No Python files found" not in result.stderr
    is_broken = tool == "mypy" and ("INTERNAL ERROR" in said or result.stderr.startswith("usage:"))
    # Code that mypy cannot take in at all, such as a syntax error, has the exit code of wrong usage.
    is_blocked = tool == "mypy" and result.exit_code == _BLOCKED and any(text in said for text in _WHAT_BLOCKS_MYPY)
    if not is_broken and (is_blocked or (result.exit_code == _FINDINGS and result.stdout.strip())):
        return False
    if f"No module named {tool}" in result.stderr:
        raise MeasurementError(f"{tool} is not installed: {REMEDY}")
    why = quote_end(result.stderr) or quote_end(result.stdout)
    raise MeasurementError(raw(f"{tool} did not work (exit code {result.exit_code}): ", why))


def _require_sources(workspace: Path, paths: tuple[str, ...]) -> list[str]:
    """Return the files to analyse. Both tools find nothing where there is nothing, and wait for ever for a FIFO. Raises
    `UnusableFileError` for a path that holds no source, and for anything named like one that is not a file.
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


def _hidden_from_mypy(sources: Sequence[str]) -> list[str]:
    """Return the modules in place of which mypy reads a stub, or a package of the same name: an agent can add one."""
    read = {re.sub(r"(/__init__)?\.pyi?$", "", source) for source in sources if _HIDING.search(source)}
    return [source for source in sources if source.endswith(".py") and source.removesuffix(".py") in read]


def _switch(tool: str, sources: Sequence[str], evidence: Evidence) -> Raw:
    """Return where the agent itself has switched a tool off for a whole file; empty where it has not."""
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
