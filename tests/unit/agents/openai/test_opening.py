"""What a turn of passgate's own tool loop begins with."""

from typing import Any

import pytest
from tests.builders import a_task
from tests.unit.agents.conftest import an_attempt

from passgate.tasks.agents.openai import Opening, opening_of
from passgate.tasks.model.transcript import Message

GIVEN = [
    {"role": "system", "content": "The desk is open."},
    {"role": "system", "content": "It is Monday."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "tool": "look", "result": "seen"}]},
    {"role": "assistant", "content": "Hi."},
    {"role": "system", "content": "Now be brief."},
    {"role": "user", "content": [{"type": "text", "value": "Say yes."}]},
]


def opening(
    messages: list[dict[str, Any]], *, system: str | None = None, history: tuple[Message, ...] = (), inputs: Any = ()
) -> Opening:
    task = a_task(inputs=dict(inputs), messages=messages)
    prompt = "And now?" if history else task.prompt
    return opening_of(system, an_attempt(task, prompt=prompt, history=history, messages=task.messages))


def said(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in messages]


@pytest.mark.parametrize(
    ("system", "inputs", "joined"),
    [
        (None, {}, "The desk is open.\n\nIt is Monday."),
        ("Be kind.", {"system": "It rains."}, "Be kind.\n\nIt rains.\n\nThe desk is open.\n\nIt is Monday."),
    ],
)
def test_the_task_asks_in_messages(system: str | None, inputs: dict[str, str], joined: str) -> None:
    begun = opening(GIVEN, system=system, inputs=inputs)
    roles = [message["role"] for message in begun.context]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "system", "user"]
    assert begun.context[0]["content"] == joined
    assert begun.context[2]["tool_calls"][0]["id"] == begun.context[3]["tool_call_id"] == "a"
    assert begun.context[-1]["content"] == [{"type": "text", "text": "Say yes."}]


def test_what_an_assistant_said_before_is_no_step() -> None:
    assert said(opening(GIVEN).said) == [
        ("system", "The desk is open.\n\nIt is Monday."),
        ("user", "Hello."),
        ("system", "Now be brief."),
        ("user", "Say yes."),
    ]


def test_later_turns_go_on_after_the_messages() -> None:
    answers = (Message(role="assistant", content="yes"), Message(role="user", content="Sure?"))
    history = (*opening(GIVEN).said, *answers, Message(role="assistant", content="sure"))
    later = opening(GIVEN, system="Be kind.", history=history)
    assert said(later.said) == [("user", "And now?")]
    assert later.context[:-4] == opening(GIVEN, system="Be kind.").context
    assert [message["content"] for message in later.context[-4:]] == ["yes", "Sure?", "sure", "And now?"]


def test_without_a_system_message_there_is_none() -> None:
    begun = opening([{"role": "user", "content": "Hello."}])
    assert begun.context == ({"role": "user", "content": "Hello."},)
    assert said(begun.said) == [("user", "Hello.")]
