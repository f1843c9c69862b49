"""Transcripts as agents hand them over."""

import os
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.agents.transcripts import MAX_TRANSCRIPT_BYTES, read_transcript_file, transcript_of
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import Message, ToolCall, Transcript


def test_a_text_is_an_answer() -> None:
    transcript = transcript_of("yes")
    assert (transcript.output, transcript.complete) == ("yes", False)
    assert transcript.messages == (Message(role="assistant", content="yes"),)


def test_half_characters_in_an_answer_are_replaced() -> None:
    assert transcript_of("a\ud800b").output == "a?b"


def test_a_transcript_is_one() -> None:
    given = Transcript(output="yes")
    assert transcript_of(given) is given


def test_the_last_words_are_the_answer_unless_it_is_given() -> None:
    messages = [
        {"role": "assistant", "content": "first"},
        {"role": "assistant", "content": "last"},
        {"role": "assistant", "tool_calls": [{"tool": "a"}]},
        {"role": "user", "content": "thanks"},
    ]
    assert transcript_of({"messages": messages}).output == "last"
    assert transcript_of({"messages": messages, "output": "given"}).output == "given"
    assert transcript_of({"messages": []}).output == ""


@pytest.mark.parametrize("value", [None, 3, 2.5, b"yes", ["yes"], object()])
def test_anything_else_is_none(value: Any) -> None:
    with pytest.raises(MeasurementError, match=f"the agent gave {type(value).__name__}"):
        transcript_of(value)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(MeasurementError, match=r"not a transcript: messages\.1\.role: "):
        transcript_of({"messages": [{"role": "user"}, {"role": "robot"}]})


def test_an_object_of_the_agents_own_cannot_be_recorded() -> None:
    transcript = Transcript(messages=(Message(role="assistant", tool_calls=(ToolCall(tool="a", result=object()),)),))
    with pytest.raises(MeasurementError, match="cannot be recorded"):
        transcript_of(transcript)


def test_a_circle_cannot_be_recorded() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(MeasurementError, match="transcript"):
        transcript_of({"messages": [{"role": "assistant", "tool_calls": [{"tool": "a", "result": circle}]}]})


def test_there_may_be_no_file(tmp_path: Path) -> None:
    assert read_transcript_file(tmp_path / "gone.json") is None
    (tmp_path / "folder.json").mkdir()
    assert read_transcript_file(tmp_path / "folder.json") is None


def test_a_file_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "transcript.json"
    with file.open("wb") as opened:
        os.truncate(opened.fileno(), MAX_TRANSCRIPT_BYTES + 1)
    with pytest.raises(MeasurementError, match=r"transcript\.json cannot be read: larger than 32 MiB"):
        read_transcript_file(file)


@pytest.mark.parametrize("parts", ["[]", "{}"])
def test_a_file_of_too_many_parts_is_not_read(tmp_path: Path, parts: str) -> None:
    file = tmp_path / "transcript.json"
    file.write_text(f'{{"messages": [{",".join([parts] * 500_000)}]}}')
    with pytest.raises(MeasurementError, match="it has more than 500000 lists and objects"):
        read_transcript_file(file)


def step(**fields: str) -> str:
    """A transcript of one step with these JSON texts as its fields."""
    said = "".join(f', "{name}": {value}' for name, value in fields.items())
    return f'{{"messages": [{{"role": "assistant"{said}}}]}}'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not JSON",
        "3",
        '["yes"]',
        '{"messages": 3}',
        '{"messages": [{"role": "robot"}]}',
        '{"unknown": 1}',
        step(usage='{"cost_usd": NaN}'),
        step(usage='{"cost_usd": -1}'),
        step(usage='{"tokens_in": -1}'),
        step(usage='{"tokens_in": 1%s}' % ("0" * 40)),
        step(latency_ms="Infinity"),
        '{"output": "\\ud800"}',
        step(tool_calls=r'[{"tool": "a", "result": "\ud800"}]'),
        step(tool_calls='[{"tool": "a", "result": %s}]' % ("[" * 195 + "]" * 195)),
        "[" * 100_000,
        b'{"output": "\xff"}',
    ],
)
def test_a_file_that_is_no_transcript_that_can_be_recorded(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "transcript.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(MeasurementError, match="transcript"):
        read_transcript_file(file)
