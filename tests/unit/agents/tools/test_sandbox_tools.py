"""A task's tools, run in real sandboxes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.conftest import Marked, call_off
from tests.upstream import ScriptedUpstream

from passgate.tasks.agents.interface import AgentSandbox
from passgate.tasks.agents.tools import (
    AT_ONCE,
    MAX_RESULT_CHARACTERS,
    MAX_VARIABLE_BYTES,
    SandboxTools,
    ToolOutcome,
    make_toolbox,
)
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.sandbox import ProcessResult
from passgate.tasks.model.task import Tool

ADD = """
import asyncio, json
from dataclasses import make_dataclass
from pathlib import Path

Sum = make_dataclass("Sum", ["value"])

def add(a, b=1):
    print("adding", a, b)
    return {"sum": Sum(a + b).value, "text": "ö"}

async def later(seconds):
    await asyncio.sleep(seconds)

def fails():
    raise ValueError("no such order")

def where():
    return [__file__, Path.cwd().name, Path("/dev/stdin").exists()]

def odd():
    return Path("a")

def leaves():
    raise SystemExit(3)

def long():
    return "x" * 2_000_000
"""


def command(text: str, **changes: Any) -> Tool:
    return Tool(name="tool", description="A tool.", command=text, **{"timeout_seconds": 240, **changes})


def function(name: str, **changes: Any) -> Tool:
    return Tool(name="tool", description="A tool.", function=f"tools.py:{name}", **{"timeout_seconds": 240, **changes})


@pytest.fixture(autouse=True)
def tools_file(suites: Path) -> Path:
    file = suites / "tools.py"
    file.write_text(ADD)
    return file


@pytest.fixture
def call(sandbox_of, suites: Path):
    """One call of a tool in a sandbox of its own."""

    async def _call(tool: Tool, arguments: dict[str, Any], *more: dict[str, Any]) -> Any:
        async with sandbox_of() as sandbox:
            tools = SandboxTools([tool], sandbox, suites)
            outcomes = [await tools.call(tool.name, given) for given in (arguments, *more)]
            return outcomes if more else outcomes[0]

    return _call


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        (command("cat"), {"a": "Größe", "b": [1, None]}, {"a": "Größe", "b": [1, None]}),
        (command('printf %s "$PASSGATE_TOOL_ARGUMENTS"'), {"a": "b c"}, {"a": "b c"}),
        (command("echo hello"), {}, "hello\n"),
        (command("echo '[1, 2]'"), {}, [1, 2]),
        (command("echo 3; echo 4 >&2"), {}, 3),
        (command("true"), {}, ""),
        (command("echo NaN"), {}, "NaN\n"),
        (command("printf '\"\\\\ud800\"'"), {}, '"\\ud800"'),
        (command("printf '\\377'"), {}, "\ufffd"),
        (function("add"), {"a": 2}, {"sum": 3, "text": "ö"}),
        (function("add"), {"a": 2, "b": 3}, {"sum": 5, "text": "ö"}),
        (function("later"), {"seconds": 0}, None),
        (function("where"), {}, ["tools.py", "workspace", True]),
        (function("odd"), {}, "a"),
    ],
    ids=lambda value: (value.command or value.function) if isinstance(value, Tool) else "",
)
async def test_what_comes_of_a_call(call, tool: Tool, arguments: dict[str, Any], result: Any) -> None:
    assert await call(tool, arguments) == ToolOutcome(result)


async def test_long_arguments_are_on_standard_input_only(call) -> None:
    arguments = {"a": "x" * MAX_VARIABLE_BYTES}
    counted = command('wc -c; printf "%s" "${PASSGATE_TOOL_ARGUMENTS-none}"')
    assert (await call(counted, arguments)).result.split() == [str(len(json.dumps(arguments))), "none"]


async def test_commands_work_in_the_workspace(call) -> None:
    first, second = await call(command("cat notes 2>/dev/null; echo line >> notes; basename $PWD"), {}, {})
    assert (first.result, second.result) == ("workspace\n", "line\nworkspace\n")


TOO_LONG = f"the result has more than {MAX_RESULT_CHARACTERS} characters"


@pytest.mark.parametrize(
    ("tool", "arguments", "begin", "end"),
    [
        (command("echo out; yes | head -c 5000 >&2; echo why >&2; exit 4"), {}, "exit code 4. ", "why"),
        (command("echo begun >&2; sleep 600", timeout_seconds=0.2), {}, "stopped after 0.2 s.", ""),
        (function("later", timeout_seconds=0.2), {"seconds": 600}, "stopped after 0.2 s.", ""),
        (command("yes x | head -c 600000"), {}, TOO_LONG, TOO_LONG),
        (function("long"), {}, TOO_LONG, TOO_LONG),
        (command("yes"), {}, "stopped because it printed too much", "stopped because it printed too much"),
        (function("fails"), {}, "exit code 1. ", "ValueError: no such order"),
        (function("leaves"), {}, "exit code 3.", ""),
        (function("add"), {"c": 1}, "exit code 1. ", "unexpected keyword argument 'c'"),
    ],
    ids=lambda value: (value.command or value.function) if isinstance(value, Tool) else "",
)
async def test_what_goes_wrong_is_an_error(call, tool: Tool, arguments: dict[str, Any], begin: str, end: str) -> None:
    outcome = await call(tool, arguments)
    assert outcome.is_error is True
    assert outcome.result.startswith(begin)
    assert outcome.result.endswith(end)
    assert len(outcome.result) < 2100


async def test_the_source_of_a_function_is_not_in_the_agents_reach_nor_what_it_imports(sandbox_of, suites) -> None:
    async with sandbox_of() as sandbox:
        left = [sandbox.workspace / "json.py", sandbox.workspace / "dataclasses.py"]
        for file in left:
            file.write_text("raise RuntimeError('taken over')")
        outcome = await SandboxTools([function("add")], sandbox, suites).call("tool", {"a": 1})
        assert outcome.is_error is False
        assert sorted([*sandbox.workspace.iterdir(), *sandbox.scratch.iterdir()]) == sorted(left)


async def test_a_file_that_is_gone_cannot_be_measured(call, tools_file: Path) -> None:
    tools_file.unlink()
    with pytest.raises(MeasurementError, match="the file of the tool tool cannot be read"):
        await call(function("add"), {})


PROPERTIES = {"n": {"type": "integer", "maximum": 9}, "text": {"type": "string"}}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["n"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'n' is a required property"),
        ({"n": "1"}, "$.n: '1' is not of type 'integer'"),
        ({"n": 10, "m": 1}, "$.n: 10 is greater than the maximum of 9"),
        ({"n": 10, "m": 1}, "'m' was unexpected"),
        ({"n": "x" * 5000}, "is not of type 'integer'"),
        ({"unparsed": "{broken"}, "they are not a JSON object: {broken"),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_tool(call, arguments: dict[str, Any], said: str) -> None:
    first, second = await call(command("cat notes; touch notes", parameters=PARAMETERS), arguments, {"n": 1})
    assert first.is_error is True
    assert said in first.result.replace("…", "is not of type 'integer'")
    assert len(first.result) < 2000
    assert second.result == "", "the tool was not run before"


async def test_arguments_that_are_nested_too_deep_never_reach_the_tool(call) -> None:
    parameters = {"$defs": {"node": {"properties": {"a": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"}
    arguments: dict[str, Any] = {}
    for _ in range(5000):
        arguments = {"a": arguments}
    outcome = await call(command("touch notes", parameters=parameters), arguments)
    assert outcome.is_error is True
    assert "they are nested too deep" in outcome.result


async def test_arguments_are_held_against_the_draft_that_the_parameters_name(call) -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"n": ["m"]}}
    answer = await call(command("cat", parameters={"type": "object", **draft}), {"n": 1})
    assert "'m' is a dependency of 'n'" in answer.result


async def test_parameters_that_refer_to_what_is_not_there_cannot_be_measured(call, upstream: ScriptedUpstream) -> None:
    parameters = {"type": "object", "properties": {"a": {"$ref": f"{upstream.url}/v1/models"}}}
    with pytest.raises(MeasurementError, match="the parameters of the tool tool"):
        await call(command("cat", parameters=parameters), {"a": 1})
    assert upstream.requests == [], "nothing is fetched"


async def test_arguments_on_which_a_pattern_takes_forever_cannot_be_measured(call) -> None:
    parameters = {"type": "object", "properties": {"text": {"pattern": "^(a+)+$"}}}
    tool = command("true", parameters=parameters)
    assert not (await call(tool, {"text": "aaa"})).is_error
    searching = command("true", parameters={"type": "object", "examples": [{"pattern": "("}]})
    assert not (await call(searching, {"pattern": "("})).is_error
    with pytest.raises(MeasurementError, match="tool tool takes more than 2 s"):
        await call(tool, {"text": "a" * 50 + "!"})


async def test_an_unknown_tool_is_an_error(sandbox_of, suites: Path) -> None:
    async with sandbox_of() as sandbox:
        outcome = await SandboxTools([command("cat")], sandbox, suites).call("tol", {})
        assert outcome == ToolOutcome("there is no tool 'tol'; there are: tool", is_error=True)
        assert (await SandboxTools([], sandbox, suites).call("a", {})).result.endswith("there are: none")


class Counting:
    """A sandbox that counts how many commands run in it at once."""

    def __init__(self, sandbox: AgentSandbox) -> None:
        self._sandbox = sandbox
        self.network = sandbox.network
        self.running = self.most = 0

    async def run(self, *command: Any, **options: Any) -> ProcessResult:
        self.running += 1
        self.most = max(self.most, self.running)
        result = await self._sandbox.run(*command, **options)
        self.running -= 1
        return result


async def test_calls_run_side_by_side_but_not_without_limit(sandbox_of, suites: Path) -> None:
    """Each waits until so many have begun."""
    waits = f'mktemp begun.XXXXXX; while [ "$(ls begun.* | wc -l)" -lt {AT_ONCE} ]; do sleep 0.02; done'
    async with sandbox_of() as sandbox:
        counting = Counting(sandbox.for_the_agent)
        tools = SandboxTools([command(waits)], counting, suites)  # type: ignore[arg-type]
        outcomes = await asyncio.gather(*(tools.call("tool", {}) for _ in range(AT_ONCE + 2)))
    assert not any(outcome.is_error for outcome in outcomes)
    assert counting.most == AT_ONCE


async def test_a_call_that_is_called_off_ends_the_tool(sandbox_of, suites: Path, marked: Marked) -> None:
    async with sandbox_of() as sandbox:
        tools = SandboxTools([command(f"touch begun; sleep 600; : {marked.word}")], sandbox, suites)
        await call_off(tools.call("tool", {}), (sandbox.workspace / "begun").exists)
        await marked.are_gone()


@pytest.mark.parametrize("network", [False, True])
async def test_tools_have_the_network_of_the_sandbox(needs_bubblewrap, sandbox_of, suites, port, network: bool) -> None:
    reach = f"python -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 240)'"
    async with sandbox_of(a_task(network=network)) as sandbox:
        outcome = await SandboxTools([command(reach)], sandbox, suites).call("tool", {})
    assert outcome.is_error is not network


TOOLS = [{"name": "look", "description": "Looks.", "command": "echo seen"}]
REPLAYED = a_task(tools=TOOLS, replay={"transcript": "recorded.json"})


async def test_a_task_without_a_recording_runs_its_tools(sandbox_of, suites: Path) -> None:
    async with sandbox_of() as sandbox:
        toolbox = make_toolbox(a_task(tools=TOOLS), sandbox, suites)
        assert await toolbox.call("look", {}) == ToolOutcome("seen\n")
    assert (toolbox.mismatch, toolbox.missing) == ("", "")


async def test_a_task_with_a_recording_runs_nothing(sandbox_of, suites: Path) -> None:
    calls = [{"tool": "look", "result": 1}]
    (suites / "recorded.json").write_text(json.dumps({"messages": [{"role": "assistant", "tool_calls": calls}]}))
    async with sandbox_of() as sandbox:
        toolbox = make_toolbox(REPLAYED, sandbox, suites)
        assert await toolbox.call("look", {}) == ToolOutcome(1)
    assert (toolbox.mismatch, toolbox.missing) == ("", "")


@pytest.mark.parametrize(("content", "what"), [(None, "no recorded"), ("", "recorded.json"), ("[]", "not a t")])
async def test_a_recording_that_cannot_be_read_cannot_be_measured(sandbox_of, suites: Path, content, what: str) -> None:
    if content is not None:
        (suites / "recorded.json").write_text(content)
    async with sandbox_of() as sandbox:
        with pytest.raises(MeasurementError, match=what):
            make_toolbox(REPLAYED, sandbox, suites)
