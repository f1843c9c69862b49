"""What an eval file expects the agent to say: a text, a JSON value, or messages."""

from typing import Any

from passgate.tasks.formats.evals.map.messages import ROLES, are_messages, is_message, read_messages
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Node
from passgate.tasks.formats.schema_check import shown
from passgate.tasks.model.messages import TaskMessage

Expected = tuple[Any, tuple[TaskMessage, ...]]
"""As a value or as messages; at most one of them says something."""


def read_expected(short: Node | None, long: Node | None, sources: Sources) -> Expected:
    """`expected_output` and `expected_messages` of a test; both have to say the same."""
    if long is None:
        return (None, ()) if short is None else _expected(short, sources)
    if not isinstance(long.value, list) and not is_message(long.value):
        what = f"expected messages with `role` and `content`, not {shown(long.value)}"
        sources.refuse(long, f"{what}: write a text or a value as `expected_output`")
        return None, ()
    messages = read_messages(long, sources)
    if short is not None and _answer(_expected(short, sources)) != _answer((None, messages)):
        sources.refuse(long, "says something else than expected_output; keep one of them", at_key=True)
    return None, messages


def _expected(node: Node, sources: Sources) -> Expected:
    one = is_message(node.value) and node.value["role"] in ROLES
    if one or are_messages(node.value):
        return None, read_messages(node, sources)
    return node.value, ()


def _answer(expected: Expected) -> str:
    value, messages = expected
    return messages[-1].text if messages else str(value)
