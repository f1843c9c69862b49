"""The turns of a conversation, and the one transcript that they make."""

from collections.abc import Sequence
from dataclasses import dataclass

from passgate.tasks.agents.processes.printed import PRINTED_BYTES
from passgate.tasks.model.transcript import Message, Transcript, Usage, total_usage


@dataclass(frozen=True)
class Turn:
    """What the user said and what the agent did upon it."""

    said: Message
    transcript: Transcript


def messages_of(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Both sides' messages in order, each once, whether or not the agent reports what it was told."""
    messages: tuple[Message, ...] = ()
    for turn in turns:
        messages += _of_turn(turn, messages)
    return messages


def merged(turns: Sequence[Turn]) -> Transcript:
    """The transcript of the whole conversation: its output and end are those of the last turn."""
    transcripts = [turn.transcript for turn in turns]
    return transcripts[-1].model_copy(
        update={
            "messages": messages_of(turns),
            "usage": _usage(transcripts),
            "complete": all(transcript.complete for transcript in transcripts),
            "printed": "".join(transcript.printed for transcript in transcripts)[-PRINTED_BYTES:],
        }
    )


def _of_turn(turn: Turn, before: tuple[Message, ...]) -> tuple[Message, ...]:
    messages = _without(before, turn.transcript.messages)
    opening = next((n for n, message in enumerate(messages) if message.role != "system"), len(messages))
    if any(message.role == "user" for message in messages[: opening + 1]):
        return messages
    return (*messages[:opening], turn.said, *messages[opening:])


def _without(before: tuple[Message, ...], messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages of a turn of an agent that reports the whole conversation every time."""
    rest = messages[len(before) :]
    repeats = [_words(message) for message in messages[: len(before)]] == [_words(message) for message in before]
    return rest if repeats and any(message.role == "user" for message in rest) else messages


def _words(message: Message) -> tuple[str, str]:
    return message.role, message.content


def _usage(transcripts: Sequence[Transcript]) -> Usage:
    """What all turns used, where any of them says so for itself: else the messages say it."""
    if all(transcript.usage == Usage() for transcript in transcripts):
        return Usage()
    return total_usage([transcript.whole_usage for transcript in transcripts])
