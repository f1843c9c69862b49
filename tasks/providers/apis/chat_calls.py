"""The tool calls of chat completions, whole or put together from pieces."""

from collections.abc import Collection, Iterator
from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.texts import arguments_of, clean
from passgate.tasks.providers.exchange import AskedCall

_GIVEN_AS = {"function": "arguments", "custom": "input"}
_OF_CALLS = frozenset({"tool_calls", "function_call"})
"""Keys of a message, and the reasons to finish that go with them."""


def calls_of(message: dict[str, Any]) -> Iterator[AskedCall]:
    """The calls of a whole message. Raises `ApiFormatError`."""
    entries = values.sequence_or_empty(message.get("tool_calls"), "tool_calls")
    for position, entry in enumerate(entries):
        yield _asked(entry, position)
    if message.get("function_call") is not None:
        yield _asked_the_old_way(message["function_call"])


def without(message: dict[str, Any], call_ids: Collection[str]) -> dict[str, Any]:
    """A whole message without these calls."""
    changed = dict(message)
    entries = changed.pop("tool_calls", None) or []
    kept = [entry for position, entry in enumerate(entries) if _asked(entry, position).call_id not in call_ids]
    if kept:
        changed["tool_calls"] = kept
    legacy = changed.get("function_call")
    if legacy is not None and _asked_the_old_way(legacy).call_id in call_ids:
        del changed["function_call"]
    if changed.get("content") is None and not has_calls(changed):
        changed["content"] = ""
    return changed


def has_calls(message: dict[str, Any]) -> bool:
    """Whether a message has a call."""
    return any(message.get(key) for key in _OF_CALLS)


def reason_without_calls(reason: Any) -> Any:
    """The reason to finish of a reply whose calls are all taken out."""
    return "stop" if isinstance(reason, str) and reason in _OF_CALLS else reason


def kind_of(entry: dict[str, Any]) -> str:
    """Whether an entry calls a `function`, with its arguments as JSON, or a `custom` tool, with a text."""
    return "custom" if entry.get("custom") is not None else "function"


def given_of(called: dict[str, Any], kind: str) -> Any:
    """What the tool is given, in a whole entry or a piece of one."""
    return called.get(_GIVEN_AS[kind])


def asked_call(identity: str, position: int, kind: str, name: str, given: Any) -> AskedCall:
    """A call from what its entry says; one without an id goes by its position."""
    arguments = {"input": clean(given)} if kind == "custom" and isinstance(given, str) else arguments_of(given)
    return AskedCall(identity or f"tool_calls[{position}]", clean(name), arguments)


def _asked(entry: Any, position: int) -> AskedCall:
    place = f"tool_calls[{position}]"
    fields = values.mapping(entry, place)
    kind = kind_of(fields)
    called = values.mapping(fields.get(kind), f"{place}.{kind}")
    name = values.text(called.get("name"), f"{place}.{kind}.name")
    identity = values.text_or_empty(fields.get("id"), f"{place}.id")
    return asked_call(identity, position, kind, name, given_of(called, kind))


def _asked_the_old_way(function_call: Any) -> AskedCall:
    """`function_call` has no id: its answer names the function."""
    called = values.mapping(function_call, "function_call")
    name = values.text(called.get("name"), "function_call.name")
    return asked_call(name, 0, "function", name, called.get("arguments"))
