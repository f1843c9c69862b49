"""JSON that somebody else wrote, and transcripts as agents hand them over."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.transcripts import (
    LONGEST_DETAIL,
    MAX_TRANSCRIPT_BYTES,
    as_text,
    excerpt,
    missing_key,
    read_json,
    read_transcript,
    read_transcript_file,
)
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import Message, ToolCall, Transcript


def test_a_text_is_an_answer() -> None:
    assert read_transcript("a\ud800b") == Transcript(
        messages=(Message(role="assistant", content="a?b"),), output="a?b", complete=False
    )


def test_a_transcript_is_one() -> None:
    given = Transcript(output="yes")
    assert read_transcript(given) == given


def test_the_last_words_are_the_answer_unless_it_is_given() -> None:
    messages = [
        {"role": "assistant", "content": "first"},
        {"role": "assistant", "content": "last"},
        {"role": "assistant", "tool_calls": [{"tool": "a"}]},
        {"role": "user", "content": "thanks"},
    ]
    assert read_transcript({"messages": messages}).output == "last"
    assert read_transcript(Transcript.model_validate({"messages": messages})).output == "last"
    assert read_transcript({"messages": messages, "output": "given"}).output == "given"
    assert read_transcript({"messages": []}).output == ""


ASKED = {"role": "user", "content": "What is the state of order 17?"}
FUNCTION = {"name": "get_order", "arguments": '{"order": 17}'}
TOOL_USE = {"type": "tool_use", "id": "c1", "name": "get_order", "input": {"order": 17}}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "shipped"}]}
OF_APIS = {
    "openai": [
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        ASKED,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}]},
        {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
        {"role": "assistant", "content": "It has been shipped.", "refusal": None, "annotations": []},
    ],
    "functions": [
        {"role": "system", "content": "Be kind."},
        ASKED,
        {"role": "assistant", "content": None, "function_call": FUNCTION},
        {"role": "function", "name": "get_order", "content": "shipped"},
        {"role": "assistant", "content": "It has been shipped."},
    ],
    "anthropic": [
        {"role": "system", "content": "Be kind."},
        ASKED,
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "get_order", "input": {"order": 17}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "shipped"}]}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "It has been shipped."}]},
    ],
}


@pytest.mark.parametrize("api", OF_APIS)
@pytest.mark.parametrize("is_list", [False, True])
def test_messages_of_an_api_are_a_transcript(api: str, is_list: bool) -> None:
    transcript = read_transcript(OF_APIS[api] if is_list else {"messages": OF_APIS[api]})
    assert [message.role for message in transcript.messages] == ["system", "user", "assistant", "assistant"]
    (call,) = transcript.tool_calls
    assert (call.tool, call.arguments, call.result) == ("get_order", {"order": 17}, "shipped")
    assert (transcript.output, transcript.complete) == ("It has been shipped.", True)


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
ODD = Transcript(messages=(Message(role="assistant", tool_calls=(ToolCall(tool="a", result=object()),)),))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        *((value, f"the agent returned {type(value).__name__}") for value in (None, 3, 2.5, b"yes", ["yes"], object())),
        ({"messages": [{"role": "user"}, {"role": "robot"}]}, r"not a transcript: messages\.1\.role: "),
        ([{"role": "tool", "tool_call_id": "c9", "content": "x"}], "a tool answers 'c9', which is the id of no call"),
        ([ASKED, {"role": "assistant", "tool_calls": [{"id": "c", "function": 3}]}], "a tool call names no tool"),
        ({"messages": [ASKED, {"type": "function_call", "name": "a"}]}, r"messages\.1"),
        (ODD, "cannot be recorded"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"tool": "a", "result": CIRCLE}]}]}, "transcript"),
    ],
)
def test_anything_else_is_none(value: Any, what: str) -> None:
    with pytest.raises(MeasurementError, match=what):
        read_transcript(value)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.write_text('{"messages": [{"role": "assistant", "content": "Done."}]}\r\n', encoding="utf-8-sig")
    found = read_transcript_file(file)
    assert found is not None
    assert found.output == "Done."


def test_there_may_be_no_file(tmp_path: Path) -> None:
    assert read_transcript_file(tmp_path / "gone.json") is None
    (tmp_path / "folder.json").mkdir()
    assert read_transcript_file(tmp_path / "folder.json") is None


def test_a_file_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    file.touch()
    os.truncate(file, MAX_TRANSCRIPT_BYTES + 1)
    with pytest.raises(MeasurementError, match=r"transcript\.json cannot be read: larger than 32 MiB"):
        read_transcript_file(file)


def step(**fields: str) -> str:
    """A transcript of one step with these JSON texts as its fields."""
    said = "".join(f', "{name}": {value}' for name, value in fields.items())
    return f'{{"messages": [{{"role": "assistant"{said}}}]}}'


TOO_MANY = "it has more than 500000 lists and objects"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "transcript"),
        ("not JSON", "transcript"),
        ("3", "transcript"),
        ('["yes"]', "transcript"),
        ('{"messages": 3}', "transcript"),
        ('{"messages": [{"role": "robot"}]}', "transcript"),
        ('{"unknown": 1}', "transcript"),
        (step(usage='{"cost_usd": NaN}'), "transcript"),
        (step(usage='{"cost_usd": -1}'), "transcript"),
        (step(usage='{"tokens_in": -1}'), "transcript"),
        (step(usage='{"tokens_in": 1%s}' % ("0" * 40)), "transcript"),
        (step(latency_ms="Infinity"), "transcript"),
        ('{"output": "\\ud800"}', "transcript"),
        (step(tool_calls=r'[{"tool": "a", "result": "\ud800"}]'), "transcript"),
        (step(tool_calls='[{"tool": "a", "result": %s}]' % ("[" * 195 + "]" * 195)), "transcript"),
        ("[" * 100_000, "transcript"),
        ('{"output": "\udcff"}', "transcript"),
        (f'{{"messages": [{",".join(["[]"] * 500_000)}]}}', TOO_MANY),
        (f'{{"messages": [{",".join(["{}"] * 500_000)}]}}', TOO_MANY),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_file_that_is_no_transcript_that_can_be_recorded(tmp_path: Path, content: str, what: str) -> None:
    file = tmp_path / "transcript.json"
    file.write_bytes(os.fsencode(content))
    with pytest.raises(MeasurementError, match=what):
        read_transcript_file(file)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(documents.filter(lambda value: "\\ud" not in json.dumps(value)))
def test_json_is_read(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


NO_JSON = ["", "nothing", "NaN", "[-Infinity]", "1e999", '"\\ud800"', b'"\xff"', "1" * 5000]


@pytest.mark.parametrize("content", [*NO_JSON, "[" * 1000 + "]" * 1000, "[" * 10**6], ids=lambda content: content[:20])
def test_what_could_not_be_written_down_again_is_a_value_error(content: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_json(content)


@given(st.text() | st.binary())
def test_an_excerpt_is_short_and_can_be_written_down(content: str | bytes) -> None:
    assert len(excerpt(content).encode()) <= 301 * 4


def test_a_text_is_itself_and_an_excerpt_is_bounded() -> None:
    assert (as_text("a\n"), as_text({"ö": [1]})) == ("a\n", '{"ö": [1]}')
    assert excerpt(b"a" * 100_000) == "a" * (LONGEST_DETAIL - 1) + "…"
    assert excerpt(" whole\n") == "whole"


@pytest.mark.parametrize(
    ("detail", "name"),
    [
        ("Traceback (most recent call last):\n  ...\nKeyError: 'GEMINI_API_KEY'", "GEMINI_API_KEY"),
        ("agent.sh: line 3: GEMINI_API_KEY: unbound variable", "GEMINI_API_KEY"),
        ("Error: please set the environment variable HF_TOKEN", "HF_TOKEN"),
        ("the api_key client option must be set by setting the EMPTY_API_KEY environment variable", "EMPTY_API_KEY"),
        ("OPENAI_API_KEY is required, and so is\nGEMINI_API_KEY is missing", "GEMINI_API_KEY"),
        *((other, "") for other in ("KeyError: 'name'", "OPENAI_API_KEY is not set", "GEMINI_API_KEY=x works", "")),
    ],
)
def test_a_key_that_a_program_lacks_is_named_in_one_line(detail: str, name: str) -> None:
    environment = {"OPENAI_API_KEY": "passgate", "EMPTY_API_KEY": ""}
    assert missing_key(detail, environment) == (f"{name} is not set" if name else "")
