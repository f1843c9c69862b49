"""Transcripts changed in one way."""

from collections.abc import Sequence
from typing import Final

from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage

ENDLESS_MILLISECONDS: Final = 1e12
ENDLESS_USAGE: Final = Usage(
    tokens_in=10**8, tokens_cached=10**8, tokens_cache_write=10**8, tokens_out=10**8, cost_usd=1e6
)
"""Of a step; the sum over the steps has to be one that a transcript can hold."""


def silent(transcript: Transcript) -> Transcript:
    """The same deeds without a word."""
    messages = tuple(
        message.model_copy(update={"content": ""}) if message.role == "assistant" else message
        for message in transcript.messages
    )
    return transcript.model_copy(update={"messages": messages, "output": ""})


def with_answer(transcript: Transcript, answer: str) -> Transcript:
    """The same with another final answer."""
    last = next(
        (
            place
            for place in reversed(range(len(transcript.messages)))
            if transcript.messages[place].role == "assistant" and transcript.messages[place].content.strip()
        ),
        None,
    )
    messages = list(transcript.messages)
    if last is not None:
        messages[last] = messages[last].model_copy(update={"content": answer})
    return transcript.model_copy(update={"messages": tuple(messages), "output": answer})


def without_calls(transcript: Transcript, places: Sequence[int]) -> Transcript:
    """The same without the calls at these places, counted over all messages, nor the messages that had nothing else."""
    messages, place = [], 0
    for message in transcript.messages:
        kept = tuple(call for position, call in enumerate(message.tool_calls, start=place) if position not in places)
        place += len(message.tool_calls)
        if kept or message.content.strip() or not message.tool_calls:
            messages.append(message.model_copy(update={"tool_calls": kept}))
    return transcript.model_copy(update={"messages": tuple(messages)})


def renamed(transcript: Transcript, places: Sequence[int], tool: str) -> Transcript:
    """The same with another tool in the calls at these places."""
    messages, place = [], 0
    for message in transcript.messages:
        calls = tuple(
            call.model_copy(update={"tool": tool}) if position in places else call
            for position, call in enumerate(message.tool_calls, start=place)
        )
        place += len(message.tool_calls)
        messages.append(message.model_copy(update={"tool_calls": calls}))
    return transcript.model_copy(update={"messages": tuple(messages)})


def endless(transcript: Transcript, tool: str, number: int) -> Transcript:
    """A trial that makes the same failing call so many times, a step each, before it answers; it takes and costs
    immensely.
    """
    first = next(iter(transcript.tool_calls), ToolCall(tool=tool))
    call = first.model_copy(update={"is_error": True, "duration_ms": ENDLESS_MILLISECONDS, "refused": False})
    step = Message(role="assistant", tool_calls=(call,), usage=ENDLESS_USAGE, latency_ms=ENDLESS_MILLISECONDS)
    last = Message(role="assistant", content=transcript.output, usage=ENDLESS_USAGE, latency_ms=ENDLESS_MILLISECONDS)
    asked = tuple(message for message in transcript.messages if message.role != "assistant")
    return transcript.model_copy(
        update={
            "messages": (*asked, *[step] * number, last),
            "usage": Usage(),
            "wall_time_seconds": ENDLESS_MILLISECONDS / 1000,
        }
    )


def saying(prompt: str, answer: str) -> Transcript:
    """A trial of one answer and no call."""
    asked, said = Message(role="user", content=prompt), Message(role="assistant", content=answer)
    return Transcript(messages=(asked, said), output=answer, usage=Usage(tokens_in=0, tokens_out=0, cost_usd=0.0))
