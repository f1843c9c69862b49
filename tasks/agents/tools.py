"""What runs a task's tools for an agent: its sandbox, where the task declares tools, or a recording."""

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Final, Literal

from referencing import Registry
from referencing.exceptions import Unresolvable

from passgate.tasks.agents.interface import AgentSandbox
from passgate.tasks.agents.transcripts import read_json, read_transcript_file
from passgate.tasks.errors import MeasurementError
from passgate.tasks.files.bounded_search import search_python
from passgate.tasks.metering.trial_tools import ToolOutcome
from passgate.tasks.model.json_values import leaves, schema_patterns, schema_validator, strictly_equal
from passgate.tasks.model.quotes import beginning, end
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import EvalTask, Replay, Tool
from passgate.tasks.model.transcript import ToolCall, Transcript, is_same_tool

AT_ONCE: Final = 8  # Calls of one trial that are run at the same time
ARGUMENTS_VARIABLE: Final = "PASSGATE_TOOL_ARGUMENTS"
MAX_VARIABLE_BYTES: Final = 64 * 1024
"""Longer arguments are on standard input only: the system takes no longer variables."""
MAX_RESULT_CHARACTERS: Final = 500_000  # No model reads more
_MOST_PROBLEMS: Final = 5
_TAIL: Final = 2000
_EXCERPT: Final = 300
RUNNER: Final = """\
import asyncio, inspect, json, linecache, os, sys, types

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what the function prints is not its result
call = json.load(sys.stdin)
file, source = call["file"], call["source"]
linecache.cache[file] = len(source), None, source.splitlines(True), file
module = sys.modules["tool"] = types.ModuleType("tool")
module.__file__ = file
exec(compile(source, file, "exec"), module.__dict__)
result = getattr(module, call["name"])(**call["arguments"])


async def finished(waiting):
    return await waiting


if inspect.isawaitable(result):
    result = asyncio.run(finished(result))
json.dump(result, answers, default=str)
answers.close()
"""
"""For `python -c`. Standard input holds `file`, its `source`, the `name` of the function and its `arguments` as JSON;
standard output gets what the function returns as JSON.
"""
Match = Literal["strict", "any_order"]
_UNEXPECTED: Final = "the recording has no such call at this place"
Row = tuple[ToolCall | None, ToolCall | None, bool]  # The expected call, the actual one, and whether they agree
_WIDTH: Final = 64
_BEFORE_DIFFERENCE: Final = 20
_MOST_ROWS: Final = 30
_ROWS_BEFORE_DIFFERENCE: Final = 5


class SandboxTools:
    """The tools that a task declares."""

    answers_all = False
    mismatch = ""
    missing = ""
    """Nothing in particular has to be called."""

    def __init__(self, tools: Sequence[Tool], sandbox: AgentSandbox, suites_folder: Path) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._sandbox = sandbox
        self._suites_folder = suites_folder
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Return what comes of a call, errors included. Raises `MeasurementError` if the sandbox is broken."""
        known = self._tools.get(tool)
        if known is None:
            return ToolOutcome(
                f"there is no tool {tool!r}; there are: {', '.join(self._tools) or 'none'}", is_error=True
            )
        if problems := await _problems(known, arguments):
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


async def _problems(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    # `AskedCall` has this key in place of arguments that are not a JSON object.
    if set(arguments) == {"unparsed"} != set(tool.parameters.get("properties", {})):
        return [f"they are not a JSON object: {beginning(str(arguments['unparsed']), _EXCERPT)}"]
    texts = [one for one in leaves(dict(arguments)) if isinstance(one, str)]
    for pattern in dict.fromkeys(schema_patterns(tool.parameters)):
        # The validator searches the same texts, and without a limit.
        searched = await search_python(pattern, texts)
        if isinstance(searched, str):
            raise MeasurementError(f"the expression {pattern!r} in the parameters of the tool {tool.name} {searched}")
    # With a registry of its own the validator fetches nothing from the network.
    validator = schema_validator(tool.parameters)(tool.parameters, registry=Registry())
    try:
        errors = islice(validator.iter_errors(dict(arguments)), _MOST_PROBLEMS)
        return [beginning(f"{error.json_path}: {error.message}", _EXCERPT) for error in errors]
    except Unresolvable as error:
        raise MeasurementError(f"the parameters of the tool {tool.name} refer to what is not there: {error}") from error
    except RecursionError:
        return ["they are nested too deep"]


def _outcome(tool: Tool, result: ProcessResult) -> ToolOutcome:
    tail = end(result.stderr.strip() or result.stdout.strip(), _TAIL)
    if result.timed_out:
        return ToolOutcome(f"stopped after {tool.timeout_seconds:g} s. {tail}".strip(), is_error=True)
    if result.output_limit_hit:
        return ToolOutcome("stopped because it printed too much", is_error=True)
    if result.exit_code != 0:
        return ToolOutcome(f"exit code {result.exit_code}. {tail}".strip(), is_error=True)
    if len(result.stdout) > MAX_RESULT_CHARACTERS:
        return ToolOutcome(f"the result has more than {MAX_RESULT_CHARACTERS} characters", is_error=True)
    try:
        return ToolOutcome(read_json(result.stdout))
    except ValueError:
        return ToolOutcome(result.stdout)


def read_recording(replay: Replay, suites_folder: Path) -> Transcript:
    """Return the recording that a task names. Raises `MeasurementError` if it cannot be read."""
    recording = read_transcript_file(suites_folder / replay.transcript)
    if recording is None:
        raise MeasurementError(f"no recorded transcript {replay.transcript} in the suites folder")
    return recording


class RecordedTools:
    """The calls of a recording: in their order (`strict`), or each once whatever the order (`any_order`).

    A call agrees with a recorded one of the same tool with the same arguments.
    """

    answers_all = True

    def __init__(
        self, recording: Transcript, match: Match, made: Iterable[ToolCall] = (), servers: Iterable[str] = ()
    ) -> None:
        """`made` are calls that have their results already; `servers` are the MCP servers of the task by name."""
        self._left = [call for call in recording.tool_calls if not call.refused]
        self._match = match
        self._prefixes = [f"mcp__{server}__" for server in servers]
        self._rows: list[Row] = []
        for call in made:
            if not call.refused:
                self.take(call.tool, call.arguments)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """After an unexpected call no other one is answered."""
        recorded = self.take(tool, arguments)
        if recorded is None:
            return ToolOutcome(_UNEXPECTED, is_error=True)
        return ToolOutcome(recorded.result, bool(recorded.is_error))

    def take(self, tool: str, arguments: Mapping[str, Any]) -> ToolCall | None:
        """Use up and return the recorded call that agrees with this one; `None` for an unexpected call."""
        actual = ToolCall(tool=tool, arguments=dict(arguments))
        candidates = [] if self._differs else self._left[: 1 if self._match == "strict" else None]
        for number, recorded in enumerate(candidates):
            if self._are_same(tool, recorded.tool) and strictly_equal(recorded.arguments, actual.arguments):
                self._rows.append((recorded, actual, True))
                return self._left.pop(number)
        # An unexpected call is shown beside the next recorded one, or beside one of the same tool.
        fits = [self._match == "strict" or self._are_same(tool, recorded.tool) for recorded in self._left]
        beside = fits.index(True) if True in fits else None
        self._rows.append((None if beside is None else self._left.pop(beside), actual, False))
        return None

    def _are_same(self, tool: str, recorded: str) -> bool:
        """Return whether a recorded name means a tool; the recording may come from a server of another name."""
        own = next((prefix for prefix in self._prefixes if tool.startswith(prefix)), "")
        others = tuple(prefix for prefix in self._prefixes if prefix != own)
        return is_same_tool(tool.removeprefix(own), recorded) and not recorded.startswith(others)

    @property
    def _differs(self) -> bool:
        return any(not agree for _, _, agree in self._rows)

    @property
    def mismatch(self) -> str:
        """How a call differs from what had to be called; empty as long as none does."""
        first = next((number for number, (_, _, agree) in enumerate(self._rows, start=1) if not agree), None)
        return "" if first is None else f"call {first} differs ({self._match}):\n{side_by_side(self._all)}"

    @property
    def missing(self) -> str:
        """What had to be called and was not; empty when there is no such thing."""
        if not self._left or self._differs:
            return ""
        count = "one recorded call" if len(self._left) == 1 else f"{len(self._left)} recorded calls"
        return f"{count} did not come ({self._match}):\n{side_by_side(self._all)}"

    @property
    def _all(self) -> Sequence[Row]:
        return [*self._rows, *((recorded, None, False) for recorded in self._left)]


Toolbox = SandboxTools | RecordedTools


def make_toolbox(task: EvalTask, sandbox: AgentSandbox, suites_folder: Path) -> Toolbox:
    """Return the recording of the task; without one its own tools. Raises `MeasurementError` for a recording that
    cannot be read.
    """
    if task.replay is None:
        return SandboxTools(task.tools, sandbox, suites_folder)
    recording = read_recording(task.replay, suites_folder)
    return RecordedTools(recording, task.replay.match, servers=task.mcp_servers)


def side_by_side(rows: Sequence[Row]) -> str:
    """Return a line per row, numbered from 1, with a `!` where expected and actual differ.

    Long calls are cut, around the first difference if they differ; of many rows those around the first difference are
    shown.
    """
    first = next((index for index, (_, _, agree) in enumerate(rows) if not agree), 0)
    start = max(0, first - _ROWS_BEFORE_DIFFERENCE)
    shown = rows[start : start + _MOST_ROWS]
    cells = [("expected", "actual", True), *(_cells(row) for row in shown)]
    width = max(len(expected) for expected, _, _ in cells)
    lines = [
        f"{' ' if agree else '!'} {number:>4}  {expected:<{width}}  {actual}".rstrip()
        for number, (expected, actual, agree) in zip_longest(["", *range(start + 1, start + 1 + len(shown))], cells)
    ]
    after = len(rows) - start - len(shown)
    notes = [f"       ({count} more {where})" for count, where in ((start, "before"), (after, "after")) if count]
    return "\n".join([*lines, *notes])


def _cells(row: Row) -> tuple[str, str, bool]:
    expected, actual, agree = row
    left, right = _shown(expected), _shown(actual)
    start = 0
    if not agree and expected is not None and actual is not None:
        start = next((i for i, (a, b) in enumerate(zip_longest(left, right)) if a != b), 0)
    return _cut(left, start), _cut(right, start), agree


def _shown(call: ToolCall | None) -> str:
    if call is None:
        return "(none)"
    text = f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False, sort_keys=True, default=str)}"
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _cut(text: str, difference: int) -> str:
    start = 0 if difference < _WIDTH else difference - _BEFORE_DIFFERENCE
    before, after = "…" if start else "", "…" if len(text) > start + _WIDTH else ""
    return f"{before}{text[start : start + _WIDTH]}{after}"
