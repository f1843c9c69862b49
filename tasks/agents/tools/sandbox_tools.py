"""A task's tools, run in the sandbox of the trial: commands, and Python functions of the suites folder."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from passgate.tasks.agents.foreign import excerpt, read_json
from passgate.tasks.agents.interface import AgentSandbox
from passgate.tasks.agents.tools.function_runner import RUNNER
from passgate.tasks.agents.tools.outcome import ToolOutcome
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import Tool

AT_ONCE: Final = 8
"""Calls of one trial that are run at the same time."""
ARGUMENTS_VARIABLE: Final = "PASSGATE_TOOL_ARGUMENTS"
MAX_VARIABLE_BYTES: Final = 64 * 1024
"""Longer arguments are on standard input only: the system takes no longer variables."""
MAX_RESULT_CHARACTERS: Final = 500_000
"""No model reads more."""
_MOST_PROBLEMS: Final = 5
_TAIL: Final = 2000


class SandboxTools:
    """The tools that a task declares."""

    mismatch = ""
    missing = ""

    def __init__(self, tools: Sequence[Tool], sandbox: AgentSandbox, suites_folder: Path) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._sandbox = sandbox
        self._suites_folder = suites_folder
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """See `Toolbox.call`."""
        known = self._tools.get(tool)
        if known is None:
            return ToolOutcome(
                f"there is no tool {tool!r}; there are: {', '.join(self._tools) or 'none'}", is_error=True
            )
        if problems := _problems(known, arguments):
            return ToolOutcome(f"the arguments do not fit: {'; '.join(problems)}", is_error=True)
        async with self._turns:
            result = await (self._command(known, arguments) if known.command else self._function(known, arguments))
        return _outcome(known, result)

    async def _command(self, tool: Tool, arguments: Mapping[str, Any]) -> ProcessResult:
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        small = len(text.encode()) <= MAX_VARIABLE_BYTES
        return await self._sandbox.run(
            ["sh", "-c", tool.command or ""],
            seconds=tool.timeout_seconds,
            stdin=text.encode(),
            environment={ARGUMENTS_VARIABLE: text} if small else {},
            network=self._sandbox.network,
        )

    async def _function(self, tool: Tool, arguments: Mapping[str, Any]) -> ProcessResult:
        file, _, name = (tool.function or "").rpartition(":")
        try:
            source = (self._suites_folder / file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise MeasurementError(f"the file of the tool {tool.name} cannot be read: {error}") from error
        # The source goes with the call and not into the sandbox, where an agent could change it.
        call = {"file": file, "source": source, "name": name, "arguments": arguments}
        return await self._sandbox.run(
            [sys.executable, "-I", "-c", RUNNER],
            seconds=tool.timeout_seconds,
            stdin=json.dumps(call).encode(),
            network=self._sandbox.network,
        )


def _problems(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    if _is_unparsed(arguments) and not _is_unparsed(tool.parameters.get("properties", {})):
        return [f"they are not a JSON object: {excerpt(str(arguments['unparsed']))}"]
    # With a registry of its own the validator fetches nothing from the network.
    validator = Draft202012Validator(tool.parameters, registry=Registry())
    try:
        errors = islice(validator.iter_errors(dict(arguments)), _MOST_PROBLEMS)
        return [excerpt(f"{error.json_path}: {error.message}") for error in errors]
    except Unresolvable as error:
        raise MeasurementError(f"the parameters of the tool {tool.name} refer to what is not there: {error}") from error
    except RecursionError:
        return ["they are nested too deep"]


def _is_unparsed(arguments: Mapping[str, Any]) -> bool:
    """Whether they are what `AskedCall` has in place of arguments that are no JSON object."""
    return set(arguments) == {"unparsed"}


def _outcome(tool: Tool, result: ProcessResult) -> ToolOutcome:
    tail = (result.stderr.strip() or result.stdout.strip())[-_TAIL:]
    if result.timed_out:
        return ToolOutcome(f"stopped after {tool.timeout_seconds:g} s. {tail}".strip(), is_error=True)
    if result.output_limit_hit:
        return ToolOutcome("stopped because it printed too much", is_error=True)
    if result.exit_code != 0:
        return ToolOutcome(f"exit code {result.exit_code}. {tail}".strip(), is_error=True)
    if len(result.stdout) > MAX_RESULT_CHARACTERS:
        return ToolOutcome(f"the result has more than {MAX_RESULT_CHARACTERS} characters", is_error=True)
    return ToolOutcome(_value(result.stdout))


def _value(printed: str) -> Any:
    try:
        return read_json(printed)
    except ValueError:
        return printed
