"""Tools used, their order, their arguments, the number of steps."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from passgate.tasks.graders import grade
from passgate.tasks.model.grade import Grade
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.transcript import Message, ToolCall, Transcript
from tests.unit.graders.trials import CALLS, MakeEvidence, called

Graded = Callable[..., Any]


@pytest.fixture
def graded(make_evidence: MakeEvidence) -> Graded:
    async def ask(transcript: Transcript, **fields: Any) -> Grade:
        options: Grader = TypeAdapter(Grader).validate_python(fields)
        return await grade(options, make_evidence(transcript=transcript))

    return ask


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        ({"tools": ["search"]}, True),
        ({"tools": ["search", "missing"]}, False),
        ({"tools": ["search"], "min": 2, "max": 2}, True),
        ({"tools": ["search"], "min": 3}, False),
        ({"tools": ["search"], "max": 1}, False),
        ({"tools": ["sea*"]}, True),
        ({"tools": ["s?arch"]}, True),
        ({"tools": ["SEARCH"]}, True),
        ({"tools": ["[s]earch"]}, False),
        ({"tools": ["read"], "min": 0, "max": 0}, False),
        ({"tools": ["shell"]}, True),
        ({"tools": ["Bash", "exec_command"]}, True),
    ],
)
async def test_tools_used(fields: dict[str, Any], passed: bool, graded: Graded) -> None:
    found = await graded(called(*CALLS), type="tool_used", **fields)
    assert (found.passed, found.score) == (passed, float(passed))


@pytest.mark.parametrize("tool", ["read", "shell", "exec_command", "Bash", "*"])
async def test_a_forbidden_tool_that_was_used_fails_shells_too(tool: str, graded: Graded) -> None:
    found = await graded(called(*CALLS), type="tool_used", tools=[tool], negate=True)
    assert (found.passed, found.score) == (False, 0)
    assert [check.passed for check in found.checks] == [False]


async def test_none_of_several_forbidden_tools_may_be_used(graded: Graded) -> None:
    forbidden = {"type": "tool_used", "tools": ["read", "delete_file"], "negate": True}
    assert not (await graded(called("read"), **forbidden)).passed
    assert (await graded(called("search"), **forbidden)).passed


async def test_a_refused_call_of_a_forbidden_tool_counts(graded: Graded) -> None:
    refused = Transcript(messages=(Message(role="assistant", tool_calls=(ToolCall(tool="rm", refused=True),)),))
    assert not (await graded(refused, type="tool_used", tools=["rm"], negate=True)).passed
    assert not (await graded(refused, type="tool_used", tools=["rm"])).passed


@pytest.mark.parametrize(
    ("steps", "mode", "passed"),
    [
        (["search", "read", "search"], "in_order", True),
        (["read", "read"], "in_order", False),
        (["search", "SHELL", "bash"], "in_order", True),
        (["*", "read"], "in_order", True),
        (["search", "read", "Bash", "search"], "exact", False),
        (["search", "read", "shell", "exec_*", "Bash", "search"], "exact", True),
    ],
)
async def test_the_order_of_tools(steps: list[str], mode: str, passed: bool, graded: Graded) -> None:
    fields = {"type": "tool_sequence", "steps": steps, "mode": mode}
    assert (await graded(called(*CALLS), **fields)).passed is passed
    assert (await graded(called(*CALLS), **fields, negate=True)).passed is not passed


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        ({"args": {"q": "b"}}, True),
        ({"args": {"q": "c"}}, False),
        ({"args": {"q": "b"}, "mode": "exact"}, False),
        ({"args": {"q": "b"}, "mode": "exact", "ignore": ["limit"]}, True),
        ({"args": {"q": "b"}, "mode": "exact", "ignore": ["lim*"]}, True),
        ({"args": {"q": "b"}, "mode": "exact", "defaults": {"limit": 5}}, True),
        ({"args": {"q": "b"}, "mode": "exact", "defaults": {"limit": 6}}, False),
        ({"args": {"q": "b", "page": 1}, "defaults": {"page": 1}}, True),
        ({"args": {"q": "b", "page": 1}, "defaults": {"page": 1}, "mode": "exact", "ignore": ["limit"]}, True),
        ({"args": {"q": "b", "limit": True}}, False),
    ],
)
async def test_the_arguments_of_a_tool(fields: dict[str, Any], passed: bool, graded: Graded) -> None:
    assert (await graded(called(*CALLS), type="tool_arguments", tool="Sear*", **fields)).passed is passed


@pytest.mark.parametrize(
    ("args", "passed"),
    [
        ({"to": {"city": "Rome"}}, True),
        ({"to": {"city": "Oslo"}}, False),
        ({"items": [{"id": 1}, {}]}, True),
        ({"items": [{"id": 1}]}, False),
        ({"items": "all"}, False),
        ({"to": [{"city": "Rome"}]}, False),
    ],
)
async def test_partial_goes_down_into_objects_and_lists(args: dict[str, Any], passed: bool, graded: Graded) -> None:
    call = ("order", {"to": {"city": "Rome", "zip": "1"}, "items": [{"id": 1, "n": 2}, {"id": 3}]})
    found = await graded(called(call), type="tool_arguments", tool="order", args=args)
    assert (found.passed, found.score) == (passed, float(passed))


async def test_an_argument_that_must_not_be_given(graded: Graded) -> None:
    fields = {"type": "tool_arguments", "tool": "*", "args": {"command": "rm -rf /"}, "negate": True}
    assert not (await graded(called(*CALLS), **fields)).passed
    assert (await graded(called("search"), **fields)).passed


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        ({"kind": "tool", "max": 6}, True),
        ({"kind": "tool", "max": 5}, False),
        ({"kind": "command", "min": 3, "max": 3}, True),
        ({"kind": "command", "pattern": "rm*", "max": 0}, False),
        ({"kind": "command", "pattern": "curl", "min": 1}, True),
        ({"kind": "tool", "pattern": "search", "min": 2, "max": 2}, True),
        ({"kind": "message", "min": 1, "max": 1}, True),
        ({"kind": "message", "pattern": "*done*", "min": 1}, True),
        ({"min": 7, "max": 7}, True),
        ({"min": 8}, False),
    ],
)
async def test_the_number_of_steps(fields: dict[str, Any], passed: bool, graded: Graded) -> None:
    transcript = called(*CALLS)
    messages = (
        Message(role="user", content="Go."),
        *transcript.messages,
        Message(role="assistant", content="All done."),
    )
    found = await graded(Transcript(messages=messages), type="step_count", **fields)
    assert (found.passed, found.score) == (passed, float(passed))


async def test_a_command_may_be_a_list_of_words_or_of_commands(graded: Graded) -> None:
    transcript = called(("shell", {"command": ["git", "push"]}), ("shell", {"commands": ["cd x", "ls"]}))
    for pattern in ("git push", "git", "cd x; ls"):
        assert (await graded(transcript, type="step_count", kind="command", pattern=pattern, min=1, max=1)).passed


async def test_a_step_count_without_limits_is_an_error(graded: Graded) -> None:
    assert "nothing to check" in ((await graded(called("a"), type="step_count")).error or "")


GRADERS: list[dict[str, Any]] = [
    {"type": "tool_used", "tools": ["a"]},
    {"type": "tool_sequence", "steps": ["a"]},
    {"type": "tool_arguments", "tool": "a", "args": {}},
    {"type": "step_count", "min": 1},
]


@pytest.mark.parametrize("fields", GRADERS)
async def test_a_transcript_that_does_not_hold_every_call_is_an_error(fields: dict[str, Any], graded: Graded) -> None:
    for transcript in (called(complete=False), called("a", complete=False)):
        assert "PASSGATE_TRANSCRIPT" in ((await graded(transcript, **fields)).error or "")


async def test_a_limit_that_further_calls_may_break_is_not_certain(graded: Graded) -> None:
    used = {"type": "tool_used", "tools": ["a"], "max": 1}
    sequence = {"type": "tool_sequence", "steps": ["a"], "mode": "exact"}
    for fields in (used, sequence):
        assert (await graded(called("a", complete=False), **fields, negate=True)).error is not None
        assert (await graded(called("a"), **fields, negate=True)).score == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "tool_used", "tools": ["a"], "negate": True},
        {"type": "tool_used", "tools": ["a"], "min": 0, "max": 0},
        {"type": "tool_sequence", "steps": ["a"], "negate": True},
        {"type": "tool_sequence", "steps": ["a"], "mode": "exact"},
        {"type": "tool_arguments", "tool": "a", "args": {}, "negate": True},
        {"type": "step_count", "kind": "tool", "max": 1},
    ],
)
async def test_a_fail_is_certain_when_the_known_calls_are_too_many(fields: dict[str, Any], graded: Graded) -> None:
    found = await graded(called("a", "a", complete=False), **fields)
    assert (found.passed, found.score, found.error) == (False, 0, None)


async def test_messages_say_what_was_found(graded: Graded) -> None:
    used = await graded(called("a", "a"), type="tool_used", tools=["a", "b"])
    assert used.checks[0].message == "calls: a 2, b 0; expected at least 1 call of each tool"
    order = await graded(called("a", "b"), type="tool_sequence", steps=["b", "a"])
    assert order.checks[0].message == "calls: a, b; expected in order: b, a"
    arguments = await graded(called(("a", {"x": 1})), type="tool_arguments", tool="a", args={"x": 2})
    assert arguments.checks[0].message == 'a was called with {"x": 1}; expected a call with {"x": 2} (partial)'
    count = await graded(called("a"), type="step_count", kind="tool", min=2, max=3)
    assert count.checks[0].message == "1 tool steps, expected at least 2 and at most 3"


async def test_no_part_of_a_key_is_given_away_where_arguments_are_cut(graded: Graded) -> None:
    arguments = {"pad": "x" * 470, "key": "sk-ant-" + "a1B2" * 24}
    found = await graded(called(("a", arguments)), type="tool_arguments", tool="a", args={**arguments, "x": 1})
    assert "sk-a****" in found.model_dump_json()
    assert "sk-ant" not in found.model_dump_json()
