"""Mappings of eval files taken apart: every spelling of a key is one key, and no key is overlooked."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from passgate.tasks.formats.evals.json_kinds import Kind, wrong_kind
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model.json_values import strictly_equal

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NEAR = 0.8
"""From which likeness on an unknown key is taken for a misspelt one where further keys are allowed."""


@dataclass(frozen=True)
class Key:
    """A key of a mapping."""

    kinds: tuple[Kind, ...] = ()
    """What its value may be; anything when empty."""
    items: tuple[Kind, ...] = ()
    """What the items of a list may be; anything when empty."""
    values: tuple[Kind, ...] = ()
    """What the values of a mapping may be; anything when empty."""
    spellings: tuple[str, ...] = ()
    """Its other names. camelCase and kebab-case of a name need not be said."""
    needed: bool = False
    null: bool = False
    """Whether `null` is a value; elsewhere it is as if the key were not there."""
    says: str = ""
    """What it means, where no model says it."""
    instead: str = ""
    """Of a key that is refused: what to write in its place."""


Keys = Mapping[str, Key]


@dataclass(frozen=True)
class Parts:
    """The values of a mapping by the names that passgate has for its keys."""

    node: Node
    """The whole mapping."""
    values: dict[str, Node]
    further: dict[str, Node]
    """Keys that are not in the table, as they are written."""
    sound: bool
    """Whether nothing was wrong."""

    def get(self, key: str) -> Node | None:
        return self.values.get(key)

    def value(self, key: str, otherwise: Any = None) -> Any:
        part = self.values.get(key)
        return otherwise if part is None else part.value

    def only(self, *keys: str) -> dict[str, Node]:
        """Those of the values that are there, in the order asked for."""
        return {key: self.values[key] for key in keys if key in self.values}


def snake_case(name: str) -> str:
    """`maxToolCalls` and `max-tool-calls` as `max_tool_calls`."""
    return _HUMP.sub("_", name).replace("-", "_").lower()


def take_apart(node: Node, keys: Keys, complaints: Complaints, *, further: bool = False) -> Parts:
    """The parts of a mapping. What is wrong with its keys goes to the complaints.

    Two spellings of a key must say the same. With `further`, keys that the table does not know are allowed, unless they
    are like one that it knows. A `config` that the table does not know holds keys as if they stood beside it.
    """
    names = {spelling: name for name, key in keys.items() for spelling in (name, *key.spellings)}
    before = len(complaints.problems)
    values: dict[str, Node] = {}
    others: dict[str, Node] = {}
    for raw, part in _pairs(node, names):
        name = names.get(raw) or names.get(snake_case(raw))
        if name is None:
            if _allowed(raw, names, further):
                others[raw] = part
            else:
                known = [spelling for spelling, name in names.items() if not keys[name].instead]
                complaints.problems.append(part.problem(f"unknown key{nearest(raw, known)}", at_key=True))
        elif keys[name].instead:
            complaints.problems.append(part.problem(keys[name].instead, at_key=True))
        elif part.value is not None or keys[name].null:
            _take(name, part, keys[name], values, complaints)
    missing = [name for name, key in keys.items() if key.needed and name not in values]
    if len(complaints.problems) == before:
        complaints.problems += [node.problem(f"the key {name!r} is missing") for name in missing]
    return Parts(node, values, others, sound=len(complaints.problems) == before)


def _pairs(node: Node, names: Mapping[str, str]) -> Iterator[tuple[str, Node]]:
    for raw in node.value:
        part = node.child(raw)
        if raw == "config" and "config" not in names and isinstance(part.value, Mapping):
            yield from ((inner, part.child(inner)) for inner in part.value)
        else:
            yield str(raw), part


def _allowed(raw: str, names: Mapping[str, str], further: bool) -> bool:
    return further and not get_close_matches(snake_case(raw), list(names), n=1, cutoff=_NEAR)


def _take(name: str, part: Node, key: Key, values: dict[str, Node], complaints: Complaints) -> None:
    earlier = values.setdefault(name, part)
    if earlier is not part:
        if not strictly_equal(earlier.value, part.value):
            message = f"{earlier.path[-1]!r} and {part.path[-1]!r} mean the same and differ; keep one of them"
            complaints.problems.append(part.problem(message, at_key=True))
        return
    for item, message in _wrong(part, key):
        complaints.problems.append(item.problem(message))


def _wrong(part: Node, key: Key) -> Iterator[tuple[Node, str]]:
    if part.value is None and key.null:
        return
    message = wrong_kind(part.value, key.kinds)
    if message is not None:
        yield part, message
        return
    if isinstance(part.value, list):
        members, kinds = part.items(), key.items
    elif isinstance(part.value, Mapping):
        members, kinds = (part.child(name) for name in part.value), key.values
    else:
        return
    for member in members:
        message = wrong_kind(member.value, kinds)
        if message is not None:
            yield member, message
