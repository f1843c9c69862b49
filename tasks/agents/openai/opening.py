"""What a turn of a conversation begins with."""

from dataclasses import dataclass
from itertools import takewhile

from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.openai.asked import asked_messages
from passgate.tasks.agents.openai.chat import ChatMessage, chat_messages
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.transcript import Message


@dataclass(frozen=True)
class Opening:
    """What is said before the model says anything."""

    said: tuple[Message, ...]
    """What is new in this turn, for the transcript. Of a task's messages what the system and the users say: the rest
    are no steps of this trial.
    """
    context: tuple[ChatMessage, ...]
    """What the model is sent: everything that was said, as chat messages."""


def opening_of(system: str | None, attempt: Attempt) -> Opening:
    """The system message, once and first, and what the user says; `system` is what the agent itself wants to be said.

    Raises `MeasurementError` for an image that cannot be sent.
    """
    user = Message(role="user", content=attempt.prompt)
    first = tuple(takewhile(lambda message: message.role == "system", attempt.messages))
    systems = _systems(system, attempt, first)
    if not attempt.messages:
        said = (user,) if attempt.history else (*systems, user)
        return Opening(said, tuple(chat_messages([*attempt.history, *said])))
    rest = attempt.messages[len(first) :]
    asked = (*chat_messages(systems), *asked_messages(rest, attempt.files))
    if attempt.history:
        return Opening((user,), (*asked, *chat_messages([*attempt.history_since_messages, user])))
    return Opening((*systems, *_said(rest)), asked)


def _systems(system: str | None, attempt: Attempt, first: tuple[TaskMessage, ...]) -> tuple[Message, ...]:
    texts = [system, attempt.inputs.get("system"), *(message.text for message in first)]
    joined = "\n\n".join(str(text) for text in texts if text)
    return (Message(role="system", content=joined),) if joined else ()


def _said(messages: tuple[TaskMessage, ...]) -> tuple[Message, ...]:
    return tuple(
        Message(role=message.role, content=message.text) for message in messages if message.role in {"system", "user"}
    )
