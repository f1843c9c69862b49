"""What a schema cannot say of the tools, the recording and the user of a task."""

import ast
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import Finding, check_json_schema, check_path
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model.task import Environment, Replay, TaskFile, Tool
from passgate.tasks.model.transcript import Transcript

_MAX_BYTES = 32 * 1024 * 1024
_TOOLS: DocumentPath = ("environment", "tools")
_REPLAY: DocumentPath = ("environment", "replay")
_USER: DocumentPath = ("environment", "user")


def agent_findings(task: TaskFile, root: Path) -> Iterator[Finding]:
    """Everything wrong with what a task gives to agents that let passgate run their tools, and with its user."""
    yield from _tools(task.environment, root)
    if task.environment.replay is not None:
        yield from _replay(task.environment, task.environment.replay, root)
    yield from _user(task)
    schema = task.inputs.get("output_schema")
    if schema is not None:
        path: DocumentPath = ("inputs", "output_schema")
        yield from check_json_schema(path, schema) if isinstance(schema, dict) else [(path, "not a JSON Schema")]


def _tools(environment: Environment, root: Path) -> Iterator[Finding]:
    names: set[str] = set()
    for index, tool in enumerate(environment.tools):
        path: DocumentPath = (*_TOOLS, index)
        if tool.name in names:
            yield (*path, "name"), f"there is a tool {tool.name!r} already: give this one another name"
        names.add(tool.name)
        yield from _parameters((*path, "parameters"), tool)
        if tool.function is not None:
            yield from _function((*path, "function"), tool.function, root)


def _parameters(path: DocumentPath, tool: Tool) -> Iterator[Finding]:
    problems = list(check_json_schema(path, tool.parameters))
    yield from problems
    if not problems and tool.parameters.get("type") != "object":
        yield path, "arguments go by name: write `type: object` and describe them under `properties`"


def _function(path: DocumentPath, function: str, root: Path) -> Iterator[Finding]:
    file, _, name = function.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        yield path, f"{function!r} is not of the form FILE.py:NAME"
        return
    problems = list(check_path(path, file, root))
    yield from problems
    if problems:
        return
    try:
        known = _functions((root / file).read_bytes())
    except (OSError, ValueError, SyntaxError) as error:
        yield path, f"{file} is not a Python file that can be read: {error}"
        return
    if name not in known:
        yield path, f"{file} defines no function {name!r}{nearest(name, known)}"


def _functions(source: bytes) -> list[str]:
    body = ast.parse(source).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _replay(environment: Environment, replay: Replay, root: Path) -> Iterator[Finding]:
    path: DocumentPath = (*_REPLAY, "transcript")
    if not environment.tools:
        yield _REPLAY, "a recording answers the calls of tools: declare them under `environment.tools`"
    if environment.user is not None and environment.user.persona is not None:
        yield (*_USER, "persona"), "a recording only fits what was said then: write what the user says under `says`"
    problems = list(check_path(path, replay.transcript, root))
    yield from problems
    if not problems:
        yield from _recording(path, root / replay.transcript, environment.tools)


def _recording(path: DocumentPath, file: Path, tools: tuple[Tool, ...]) -> Iterator[Finding]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES // 1024 // 1024} MiB")
        recording = Transcript.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        yield path, f"not a recorded transcript: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        return
    except (OSError, ValueError) as error:
        yield path, f"not a recorded transcript: {error}"
        return
    names = [tool.name for tool in tools]
    for tool in dict.fromkeys(call.tool for call in recording.tool_calls if not call.refused):
        if names and tool not in names:
            yield path, f"it calls {tool!r}, which `environment.tools` does not declare{nearest(tool, names)}"


def _user(task: TaskFile) -> Iterator[Finding]:
    asks = str(task.inputs.get("prompt") or "").strip() or task.inputs.get("messages")
    if task.environment.user is not None and not asks:
        yield _USER, "a conversation begins with `inputs.prompt`: write what the user says first"
