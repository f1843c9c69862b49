"""A conversation taken apart into its turns: a message of the user and what the agent did upon it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from passgate.tasks.graders.interface import Evidence
from passgate.tasks.metering.usage import trial_metrics
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.transcript import Message, Transcript


class Turn(NamedTuple):
    """What was said up to a message of the user, and what the agent did then."""

    before: tuple[Message, ...]
    """The message of the user is the last of them."""
    answer: tuple[Message, ...]
    output: str

    @property
    def is_answered(self) -> bool:
        return bool(self.output.strip()) or _is_reported(self.answer)


def turns_of(task: EvalTask, transcript: Transcript) -> list[Turn]:
    """The turns of a conversation in order. The first one is the answer to what the task asks, in however many messages
    it does.
    """
    messages = transcript.messages
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    starts = asked[_opening(task, [messages[place].content for place in asked]) :] or [-1]
    ends = [*starts[1:], len(messages)]
    turns = [
        Turn(messages[: start + 1], answer := messages[start + 1 : end], _last_words(answer))
        for start, end in zip(starts, ends, strict=True)
    ]
    if _is_reported(turns[-1].answer) or not _is_reported(messages):
        return [*turns[:-1], turns[-1]._replace(output=transcript.output)]
    return turns


def _is_reported(messages: Sequence[Message]) -> bool:
    """Whether the agent has a part in these messages; one that does not report any has its answer alone."""
    return any(message.role == "assistant" for message in messages)


def _opening(task: EvalTask, said: Sequence[str]) -> int:
    """How many messages of the user stand before the one that the first turn answers: those of the task's own."""
    asked = [message.text for message in task.messages if message.role == "user"]
    return len(asked) - 1 if asked and list(said[: len(asked)]) == asked else 0


def _last_words(answer: Sequence[Message]) -> str:
    return next((m.content for m in reversed(answer) if m.role == "assistant" and m.content.strip()), "")


def evidence_of_turn(evidence: Evidence, turn: Turn, expected_output: Any) -> Evidence:
    """One turn as if it were a trial: what was said before it is what the task asks, and only what the agent did in it
    is in the transcript and the metrics. How long the turn took is not known.
    """
    did = Transcript(messages=turn.answer, complete=evidence.transcript.complete)
    metrics = trial_metrics(did).model_copy(update={"wall_time_seconds": None})
    update: dict[str, Any] = {"expected_output": expected_output, "expected_messages": ()}
    if turn.before:
        inputs = {name: value for name, value in evidence.task.inputs.items() if name != "prompt"}
        said = tuple(TaskMessage(role=message.role, content=message.content) for message in turn.before)
        update |= {"inputs": inputs, "messages": said}
    transcript = evidence.transcript.model_copy(
        update={"messages": turn.answer, "output": turn.output, "usage": did.whole_usage, "wall_time_seconds": 0.0}
    )
    return replace(evidence, task=evidence.task.model_copy(update=update), transcript=transcript, metrics=metrics)


def evidence_of_conversation(evidence: Evidence) -> Evidence:
    """The trial with the whole conversation as its answer: a paragraph per message, headed by its role."""
    said = [f"{message.role}: {message.content}" for message in evidence.transcript.messages if message.content.strip()]
    return replace(evidence, transcript=evidence.transcript.model_copy(update={"output": "\n\n".join(said)}))
