"""Messages of eval files: what the agent is asked, and what it is expected to say."""

from typing import Any

from passgate.tasks.formats.evals.map.calls import read_calls
from passgate.tasks.formats.evals.map.contents import json_block, read_content
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Key, Node, as_one_of, as_text, take_apart
from passgate.tasks.formats.schema_check import Kind, shown
from passgate.tasks.model.messages import TaskMessage

ROLES = ("system", "user", "assistant", "tool")
MESSAGE_KEYS = {
    "role": Key((Kind.TEXT,), needed=True, says="system, user, assistant or tool"),
    "content": Key(says="A text, a list of blocks, or any value."),
    "name": Key((Kind.TEXT,), says="Of a tool message: the tool."),
    "tool_call_id": Key((Kind.TEXT,), says="Of a tool message: the call that it answers."),
    "tool_calls": Key((Kind.LIST,), items=(Kind.MAPPING,)),
    # What a recorded message has beside that, and a message of a task does not need.
    "metadata": Key(),
    "duration_ms": Key(),
    "start_time": Key(),
    "end_time": Key(),
    "token_usage": Key(),
    "cost_usd": Key(),
}


def is_message(value: Any) -> bool:
    """Whether a value is a message: a mapping with a role. A structured payload has no key of this name."""
    return isinstance(value, dict) and "role" in value


def are_messages(value: Any) -> bool:
    """Whether a value is a list with a message in it: something with a role that says or does something."""
    return isinstance(value, list) and any(
        is_message(item) and ("content" in item or "tool_calls" in item) for item in value
    )


def read_messages(node: Node, sources: Sources) -> tuple[TaskMessage, ...]:
    """A text or a payload as the message of a user, a message, or a list of messages."""
    value = node.value
    if isinstance(value, str):
        return (TaskMessage(role="user", content=value),) if value.strip() else ()
    if is_message(value):
        return _present(_message(node, sources))
    if isinstance(value, dict):
        return (TaskMessage(role="user", content=(json_block(value),)),)
    if isinstance(value, list):
        return tuple(message for item in node.items() for message in _present(_message(item, sources)))
    sources.refuse(node, f"expected a text, a message or messages, not {shown(value)}")
    return ()


def _present(message: TaskMessage | None) -> tuple[TaskMessage, ...]:
    return () if message is None else (message,)


def _message(node: Node, sources: Sources) -> TaskMessage | None:
    """One message; `None` where it is none, and then that is a problem."""
    if not is_message(node.value):
        sources.refuse(node, f"expected a message with `role` and `content`, not {shown(node.value)}")
        return None
    if _is_plain(node.value):
        return TaskMessage(role=node.value["role"], content=node.value["content"])
    parts = take_apart(node, MESSAGE_KEYS, sources.complaints)
    role: Any = as_one_of(parts.get("role"), ROLES, sources.complaints)
    if not parts.sound or role is None:
        return None
    if parts.get("content") is None and parts.get("tool_calls") is None:
        sources.refuse(node, "a message needs `content` or `tool_calls`")
    return TaskMessage(
        role=role,
        content=read_content(parts.get("content"), sources),
        name=as_text(parts.get("name")),
        tool_call_id=as_text(parts.get("tool_call_id")),
        tool_calls=read_calls(parts.get("tool_calls"), sources.complaints),
    )


def _is_plain(value: dict[str, Any]) -> bool:
    """Whether a message is a text and nothing else, as most are."""
    return len(value) == 2 and value["role"] in ROLES and isinstance(value.get("content"), str)
