"""A conversation as text for a judge: the same transcript always gives the same text."""

from collections.abc import Iterator
from textwrap import indent
from typing import Any

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.judges.asking import sendable
from passgate.tasks.graders.texts import as_json, shorten
from passgate.tasks.model.transcript import Message, ToolCall, Transcript

LONGEST_PART = 50_000
"""Characters of one message, one call's arguments or one result."""
LONGEST_CONVERSATION = 1_000_000
"""Characters: more does not fit any judge."""


def render(prompt: str, transcript: Transcript) -> str:
    """The conversation without times and usage: who said what, tool calls with arguments and results.

    What was said is indented, so that nobody can write a line that looks like another's. `prompt` stands in
    for the user's message where the transcript has none. Raises `MeasurementError` when it is too long.
    """
    return bounded("\n".join(_lines(prompt, transcript)), "the conversation")


def bounded(text: str, what: str) -> str:
    """A text that can be sent to a judge. Raises `MeasurementError` when it is too long."""
    if len(text) > LONGEST_CONVERSATION:
        raise MeasurementError(
            f"{what} is too long for a judge: {len(text)} characters, at most {LONGEST_CONVERSATION}"
        )
    return sendable(text)


def apart(text: str) -> str:
    """A text that has no line in it which looks like a heading."""
    return indent(shorten(text, LONGEST_PART), "    ", lambda _line: True)


def _lines(prompt: str, transcript: Transcript) -> Iterator[str]:
    if prompt and not any(message.role == "user" for message in transcript.messages):
        yield _part("user", prompt)
    for message in transcript.messages:
        yield from _message(message)
    last = next((step.content for step in reversed(transcript.steps)), "")
    if transcript.output.strip() and transcript.output.strip() != last.strip():
        yield _part("final answer", transcript.output)


def _message(message: Message) -> Iterator[str]:
    if message.content or not message.tool_calls:
        yield _part(message.role, message.content)
    for call in message.tool_calls:
        yield from _call(call)


def _call(call: ToolCall) -> Iterator[str]:
    yield _part("tool call", f"{call.tool} {as_json(call.arguments, LONGEST_PART)}")
    yield _part("tool error" if call.is_error else "tool result", _text(call.result))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value, LONGEST_PART)


def _part(title: str, text: str) -> str:
    return f"{title}:\n{apart(text)}"
