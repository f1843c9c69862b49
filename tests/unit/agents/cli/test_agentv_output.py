"""What agents made for AgentV answer."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from passgate.tasks.agents.commands import transcript_of_agentv
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Usage


def read(**document: Any):
    return transcript_of_agentv(json.dumps(document))


def says(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


NO_MESSAGES = [
    *("yes", '"yes"', "3", "null", '["yes"]', "{", "NaN", "[" * 100_000),
    *('{"answer": 42}', '{"output": "42"}', '{"output": [1, 2]}', '{"output": []}'),
    *('{"output": [{"name": "no role"}]}', '{"cost_usd": 0.1}', '{"error": "of the answer"}'),
]


@pytest.mark.parametrize("content", NO_MESSAGES, ids=lambda content: content[:40])
def test_everything_else_is_the_answer_itself(content: str) -> None:
    transcript = transcript_of_agentv(f"\n{content}\n")
    assert transcript.output == content
    assert (transcript.complete, transcript.end, transcript.usage) == (False, EndReason.COMPLETED, Usage())


@pytest.mark.parametrize("key", ["output", "output_messages"])
def test_messages_are_a_complete_transcript(key: str) -> None:
    times = {"start_time": "2026-01-31T12:00:00Z", "end_time": "2026-01-31T12:00:01Z", "duration_ms": 12.5}
    call = {"tool": "find", "input": {"q": 1}, "output": ["found"], "id": "c1", "status": "ok", **times}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Say yes."},
        says("I look.", tool_calls=[call], duration_ms=840, name="me", metadata={"a": 1}),
        {"role": "tool", "content": "found", "tool_call_id": "c1"},
        says("yes"),
    ]
    transcript = read(**{key: messages})
    assert transcript.messages == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Say yes."),
        Message(
            role="assistant",
            content="I look.",
            tool_calls=(ToolCall(tool="find", arguments={"q": 1}, result=["found"], duration_ms=12.5),),
            latency_ms=840,
        ),
        Message(role="assistant", content="yes"),
    )
    assert (transcript.output, transcript.complete) == ("yes", True)


@pytest.mark.parametrize(
    ("reported", "call"),
    [
        *(({"status": status}, {}) for status in ("ok", "unknown", None)),
        *(({"status": status}, {"is_error": True}) for status in ("error", "timeout", "cancelled")),
        ({"input": "ls"}, {"arguments": {"unparsed": "ls"}}),
        ({"input": [1]}, {"arguments": {"unparsed": [1]}}),
        ({"input": None}, {}),
    ],
)
def test_the_status_and_the_input_of_a_call(reported: dict[str, Any], call: dict[str, Any]) -> None:
    transcript = read(output=[says("", tool_calls=[{"tool": "find", **reported}])])
    assert transcript.tool_calls == (ToolCall(tool="find", **call),)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("yes", "yes"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"path": "x"}, {"type": "text", "value": "b"}, "c"], "a\nb\nc"),
        ({"answer": 42}, '{"answer": 42}'),
        (42, "42"),
    ],
)
def test_the_content_of_a_message(content: Any, text: str) -> None:
    assert read(output=[says(content)]).messages[0].content == text


@pytest.mark.parametrize(("text", "output"), [("yes", "yes"), ("", ""), ({"a": 1}, '{"a": 1}')])
def test_a_text_alone_says_nothing_of_calls(text: Any, output: str) -> None:
    transcript = read(text=text, output=[], token_usage={"input": 3, "output": 1}, cost_usd=0.1, duration_ms=5)
    assert (transcript.output, transcript.complete) == (output, False)
    assert transcript.usage == Usage(tokens_in=3, tokens_out=1, cost_usd=0.1)


def test_messages_go_before_the_text() -> None:
    assert read(text="no", output=[says("yes")]).output == "yes"
    assert read(text="no", output_messages=[says("yes")]).output == "yes"
    assert read(output=[says("new")], output_messages=[says("old")]).output == "new"


def test_what_is_not_said_is_unknown() -> None:
    assert read(output=[says("yes")]).usage == Usage()
    assert read(output=[says("yes")], cost_usd=-1, duration_ms=-1).usage == Usage()
    assert read(output=[says("yes", duration_ms=-1)]).messages[0].latency_ms is None


def test_an_error_that_the_agent_reports_is_a_crash() -> None:
    transcript = read(text="half", error="no key " + "x" * 5000)
    assert transcript.end is EndReason.CRASHED
    assert transcript.detail.startswith("no key")
    assert len(transcript.detail) == 2000
    assert transcript.output == "half"
    assert read(output=[says("yes")], error=None).end is EndReason.COMPLETED


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"output": [says("yes"), "no"]}, r"messages\.1: "),
        ({"output": [{"role": 3}]}, r"messages\.0\.role: "),
        ({"output": [says("yes", tool_calls=[{"name": "find"}])]}, r"messages\.0\.tool_calls\.0\.tool: "),
        ({"output": [says("yes", tool_calls=[{"tool": "a", "status": "odd"}])]}, r"tool_calls\.0\.status: "),
        ({"text": "yes", "token_usage": {"input": -1, "output": 0}}, r"token_usage\.input: "),
        ({"text": "yes", "token_usage": {"input": 1}}, r"token_usage\.output: "),
        ({"text": "yes", "cost_usd": "cheap"}, r"cost_usd: "),
        ({"text": "yes", "cost_usd": 10**12 + 1}, r"cost_usd: "),
        ({"output": [says("yes", duration_ms=10**13)]}, r"messages\.0\.duration_ms: "),
        ({"output": [says("yes", tool_calls=[{"tool": "a", "duration_ms": 10**13}])]}, r"tool_calls\.0\.duration_ms: "),
    ],
)
def test_what_is_meant_for_agentv_and_wrong_cannot_be_measured(document: dict[str, Any], where: str) -> None:
    with pytest.raises(MeasurementError, match=f"not an output of AgentV: .*{where}"):
        read(**document)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
calls = st.fixed_dictionaries({}, optional=dict.fromkeys(("tool", "input", "output", "status", "duration_ms"), values))
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | values},
    optional={"content": values, "tool_calls": st.lists(calls) | values, "duration_ms": values},
)
keys = ("text", "output_messages", "token_usage", "cost_usd", "error")
documents = st.fixed_dictionaries({"output": st.lists(messages) | values}, optional=dict.fromkeys(keys, values))


@given(documents)
@example({"output": [{"role": "user"}], "cost_usd": 1000000000001.0})
def test_whatever_it_is_it_can_be_recorded_or_not_measured(document: dict[str, Any]) -> None:
    try:
        transcript = transcript_of_agentv(json.dumps(document))
    except MeasurementError:
        return
    assert type(transcript).model_validate_json(transcript.model_dump_json()) == transcript


@given(st.text())
def test_any_text_is_an_answer(content: str) -> None:
    assert transcript_of_agentv(content).complete is False or content.lstrip().startswith("{")
