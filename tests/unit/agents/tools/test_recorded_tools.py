"""Tool results from a recording, and expected and actual calls beside each other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.tools import RecordedTools, ToolOutcome, side_by_side
from passgate.tasks.model.transcript import Message, ToolCall, Transcript


def recorded(*calls: ToolCall) -> Transcript:
    """A recording with one step per call."""
    return Transcript(messages=tuple(Message(role="assistant", tool_calls=(call,)) for call in calls))


LOOK = ToolCall(tool="look", arguments={"at": "a"}, result={"found": 1})
LOOK_AGAIN = ToolCall(tool="look", arguments={"at": "a"}, result={"found": 2})
TAKE = ToolCall(tool="take", arguments={"n": 1}, result="not there", is_error=True)


async def results(tools: RecordedTools, *calls: ToolCall) -> list[ToolOutcome]:
    return [await tools.call(call.tool, call.arguments) for call in calls]


OUTCOMES = [ToolOutcome({"found": 1}), ToolOutcome({"found": 2}), ToolOutcome("not there", is_error=True)]
BOTH = pytest.mark.parametrize("match", ["strict", "any_order"])


async def test_recorded_calls_have_their_results_in_order() -> None:
    tools = RecordedTools(recorded(LOOK, LOOK_AGAIN, TAKE), "strict")
    assert tools.missing.startswith("3 recorded calls did not come (strict)")
    assert await results(tools, LOOK, LOOK, TAKE) == OUTCOMES
    assert (tools.mismatch, tools.missing) == ("", "")


async def test_in_any_order_each_call_takes_the_first_that_is_left() -> None:
    tools = RecordedTools(recorded(LOOK, LOOK_AGAIN, TAKE), "any_order")
    assert await results(tools, TAKE, LOOK, LOOK) == [OUTCOMES[2], *OUTCOMES[:2]]
    assert (tools.mismatch, tools.missing) == ("", "")


@BOTH
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Look", {"at": "a"}),
        ("look", {"at": "b"}),
        ("look", {}),
        ("look", {"at": "a", "on": None}),
        ("look", {"unparsed": '{"at": "a"'}),
    ],
)
async def test_a_call_that_was_not_recorded_is_a_mismatch(match: Any, tool: str, arguments: dict[str, Any]) -> None:
    tools = RecordedTools(recorded(LOOK), match)
    outcome = await tools.call(tool, arguments)
    assert outcome == ToolOutcome("the recording has no such call at this place", is_error=True)
    assert tools.mismatch


@pytest.mark.parametrize(("argument", "agrees"), [(1.0, True), (True, False), ("1", False)])
async def test_arguments_are_compared_as_json(argument: Any, agrees: bool) -> None:
    tools = RecordedTools(recorded(TAKE), "strict")
    await tools.call("take", {"n": argument})
    assert (not tools.mismatch) is agrees


@BOTH
async def test_one_call_too_many_is_a_mismatch(match: Any) -> None:
    tools = RecordedTools(recorded(LOOK), match)
    await results(tools, LOOK, LOOK)
    assert "(none)" in tools.mismatch


async def test_calls_that_did_not_come_are_shown_beside_those_that_did() -> None:
    tools = RecordedTools(recorded(LOOK, TAKE), "strict")
    await results(tools, LOOK)
    assert tools.mismatch == ""
    assert tools.missing.splitlines() == [
        "one recorded call did not come (strict):",
        "        expected          actual",
        '     1  look {"at": "a"}  look {"at": "a"}',
        '!    2  take {"n": 1}     (none)',
    ]


async def test_what_was_called_is_shown_beside_what_was_to_be_called() -> None:
    tools = RecordedTools(recorded(LOOK, TAKE), "any_order")
    await results(tools, ToolCall(tool="take", arguments={"n": 2}))
    assert tools.mismatch.splitlines() == [
        "call 1 differs (any_order):",
        "        expected          actual",
        '!    1  take {"n": 1}     take {"n": 2}',
        '!    2  look {"at": "a"}  (none)',
    ]


async def test_refused_calls_count_on_neither_side() -> None:
    refused = ToolCall(tool="delete", refused=True)
    tools = RecordedTools(recorded(refused, LOOK), "strict", [refused, LOOK])
    assert (tools.mismatch, tools.missing) == ("", "")


letters = st.lists(st.sampled_from("abc"), max_size=6)


@given(letters, letters)
def test_strict_means_the_same_list_and_any_order_the_call_fitss(expected: list[str], actual: list[str]) -> None:
    def agrees(match: Any) -> bool:
        calls = [[ToolCall(tool=name) for name in names] for names in (expected, actual)]
        tools = RecordedTools(recorded(*calls[0]), match, calls[1])
        return not tools.mismatch and not tools.missing

    assert agrees("strict") == (expected == actual)
    assert agrees("any_order") == (sorted(expected) == sorted(actual))


def call(tool: str = "look", **arguments: Any) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments)


def test_rows_are_aligned_numbered_and_marked() -> None:
    rows = [(call(), call(), True), (call(at=1), call("take", b=2, a=1), False), (None, call(), False)]
    assert side_by_side(rows).splitlines() == [
        "        expected        actual",
        "     1  look {}         look {}",
        '!    2  look {"at": 1}  take {"a": 1, "b": 2}',
        "!    3  (none)          look {}",
    ]


def test_long_calls_are_shown_around_the_first_difference() -> None:
    text = side_by_side([(call(text="x" * 500 + "A"), call(text="x" * 500 + "B"), False)])
    assert 'xA"}' in text
    assert 'xB"}' in text
    assert max(map(len, text.splitlines())) < 150


def test_of_many_rows_those_around_the_first_difference_are_shown() -> None:
    rows = [(call(n=n), call(n=n), True) for n in range(100)]
    rows[50:] = [(call(n=n), None, False) for n in range(50, 100)]
    lines = side_by_side(rows).splitlines()
    assert lines[1].split()[0] == "46"
    assert lines[6].startswith("!   51")
    assert lines[-2:] == ["       (45 more before)", "       (25 more after)"]
    assert len(lines) == 33


def test_what_would_spoil_the_lines_is_escaped() -> None:
    text = side_by_side([(call("a\nb\x1b[31m", c="\r\n", d="ö\u2028\x9b\u202e"), None, False)])
    assert len(text.splitlines()) == 2
    assert all(line.isprintable() for line in text.splitlines())
    assert "a\\nb\\x1b[31m" in text
    assert "ö\\u2028\\x9b\\u202e" in text


texts = st.text(max_size=200)
tool_calls = st.builds(ToolCall, tool=texts, arguments=st.dictionaries(texts, texts, max_size=3))


@given(st.lists(st.tuples(tool_calls, tool_calls, st.booleans()), max_size=40))
def test_the_text_is_bounded(rows: list[tuple[ToolCall, ToolCall, bool]]) -> None:
    lines = side_by_side(rows).splitlines()
    assert len(lines) <= 33
    assert max(map(len, lines)) < 150


@BOTH
@pytest.mark.parametrize(
    ("name", "is_same"),
    [("find", True), ("mcp__crm__find", True), ("mcp__crm-of-production__find", True), ("mcp__shop__find", False)],
)
async def test_a_call_at_a_server_is_none_of_another_server_of_the_task(match: Any, name: str, is_same: bool) -> None:
    tools = RecordedTools(recorded(ToolCall(tool=name)), match, servers=["shop", "crm"])
    await tools.call("mcp__crm__find", {})
    assert (tools.mismatch == "") is is_same
