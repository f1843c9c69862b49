"""Values of eval files with where they stand, taken apart: every spelling of a key is one key, no key is overlooked."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath, format_path
from passgate.tasks.formats.schema_check import Kind, is_kind, nearest, shown, wrong_kind
from passgate.tasks.model.json_values import strictly_equal

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NEAR = 0.8  # from which likeness on an unknown key is taken for a misspelt one where further keys are allowed


class ValuePlaces(Protocol):
    """Where the parts of one file stand."""

    @property
    def file(self) -> str:
        """The file as users know it."""

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """A problem at a path of the file."""


class Node(NamedTuple):
    """A value and where it stands. The value may differ from what the file says: variables are filled in."""

    value: Any
    places: ValuePlaces
    folder: Path  # the folder of the file: what its relative paths are relative to
    path: DocumentPath = ()

    def problem(self, message: str, *, at_key: bool = False) -> Problem:
        """A problem at this value, or at its key."""
        return self.places.problem(self.path, message, at_key=at_key)

    def child(self, key: str | int) -> "Node":
        """The value at a key or an index, which must be there."""
        return Node(self.value[key], self.places, self.folder, (*self.path, key))

    def get(self, key: str) -> "Node | None":
        """The value at a key of a mapping; `None` without it and where it is null."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return None if value is None else Node(value, self.places, self.folder, (*self.path, key))

    def items(self) -> Iterator["Node"]:
        """The items of a list."""
        return (self.child(index) for index in range(len(self.value)))

    def with_value(self, value: Any) -> "Node":
        """Another value at the same place."""
        return Node(value, self.places, self.folder, self.path)


@dataclass
class Complaints:
    """What is found while files are read: problems refuse them, warnings do not."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    # What is asked for and is not to be had, as a missing file: the test loads, and a run with it is refused.
    cannot_run: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Key:
    """A key of a mapping."""

    kinds: tuple[Kind, ...] = ()  # what its value may be; anything when empty
    items: tuple[Kind, ...] = ()  # what the items of a list may be; anything when empty
    values: tuple[Kind, ...] = ()  # what the values of a mapping may be; anything when empty
    spellings: tuple[str, ...] = ()  # its other names; camelCase and kebab-case of a name need not be said
    needed: bool = False
    null: bool = False  # whether `null` is a value; elsewhere it is as if the key were not there
    says: str = ""  # what it means, where no model says it
    instead: str = ""  # of a key that is refused: what to write in its place


Keys = Mapping[str, Key]


@dataclass(frozen=True)
class Parts:
    """The values of a mapping by the names that passgate has for its keys."""

    node: Node  # the whole mapping
    values: dict[str, Node]
    further: dict[str, Node]  # keys that are not in the table, as they are written
    sound: bool  # whether nothing was wrong

    def get(self, key: str) -> Node | None:
        return self.values.get(key)

    def value(self, key: str, otherwise: Any = None) -> Any:
        part = self.values.get(key)
        return otherwise if part is None else part.value

    def only(self, *keys: str) -> dict[str, Node]:
        """Those of the values that are there, in the order asked for."""
        return {key: self.values[key] for key in keys if key in self.values}


def with_placeholders(value: Any, fill: Callable[[str, DocumentPath], Any], path: DocumentPath = ()) -> Any:
    """A value with every text in it that may have placeholders filled by a function, which gets the text's path too."""
    if isinstance(value, str):
        return fill(value, path) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: with_placeholders(item, fill, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [with_placeholders(item, fill, (*path, index)) for index, item in enumerate(value)]
    return value


def snake_case(name: str) -> str:
    """`maxToolCalls` and `max-tool-calls` as `max_tool_calls`."""
    return _HUMP.sub("_", name).replace("-", "_").lower()


def take_apart(node: Node, keys: Keys, complaints: Complaints, *, further: bool = False) -> Parts:
    """The parts of a mapping. What is wrong with its keys goes to the complaints. Two spellings of a key must say the
    same. `further` allows keys that the table does not know, unless they are like one that it knows. A `config` that
    the table does not know holds keys as if they stood beside it.
    """
    names = {spelling: name for name, key in keys.items() for spelling in (name, *key.spellings)}
    before = len(complaints.problems)
    values: dict[str, Node] = {}
    others: dict[str, Node] = {}
    for raw, part in _pairs(node, names):
        name = names.get(raw) or names.get(snake_case(raw))
        if name is None:
            if further and not get_close_matches(snake_case(raw), list(names), n=1, cutoff=_NEAR):
                others[raw] = part
            else:
                known = [spelling for spelling, name in names.items() if not keys[name].instead]
                complaints.problems.append(part.problem(f"unknown key{nearest(raw, known)}", at_key=True))
        elif keys[name].instead:
            complaints.problems.append(part.problem(keys[name].instead, at_key=True))
        elif part.value is not None or keys[name].null:
            complaints.problems += _taken(name, part, keys[name], values)
    # Where another key is wrong none is said to be missing: it may be the one that is misspelt.
    if len(complaints.problems) == before:
        missing = [name for name, key in keys.items() if key.needed and name not in values]
        complaints.problems += [node.problem(f"the key {name!r} is missing") for name in missing]
    return Parts(node, values, others, sound=len(complaints.problems) == before)


def _pairs(node: Node, names: Mapping[str, str]) -> Iterator[tuple[str, Node]]:
    for raw in node.value:
        part = node.child(raw)
        if raw == "config" and "config" not in names and isinstance(part.value, Mapping):
            yield from ((inner, part.child(inner)) for inner in part.value)
        else:
            yield str(raw), part


def _taken(name: str, part: Node, key: Key, values: dict[str, Node]) -> Iterator[Problem]:
    """Note the value of a key, which may have been said under another name before; what is wrong with it."""
    earlier = values.setdefault(name, part)
    if earlier is not part:
        if not strictly_equal(earlier.value, part.value):
            names = f"{earlier.path[-1]!r} and {part.path[-1]!r}"
            yield part.problem(f"{names} mean the same and differ; keep one of them", at_key=True)
    elif part.value is None:
        return  # a key that may be null
    elif message := wrong_kind(part.value, key.kinds):
        yield part.problem(message)
    elif isinstance(part.value, list | dict):
        is_list = isinstance(part.value, list)
        for inner in range(len(part.value)) if is_list else part.value:
            member = part.child(inner)
            if message := wrong_kind(member.value, key.items if is_list else key.values):
                yield member.problem(message)


def as_text(node: Node | None) -> str | None:
    """A text that is not empty."""
    return node.value if node is not None and isinstance(node.value, str) and node.value else None


def as_texts(node: Node | None) -> tuple[str, ...]:
    """A list of texts; a text alone stands for a list of one."""
    value = None if node is None else node.value
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str) and item)


def as_mapping(node: Node | None) -> Node | None:
    return node if node is not None and isinstance(node.value, dict) else None


def as_items(node: Node | None) -> Iterator[Node]:
    return node.items() if node is not None and isinstance(node.value, list) else iter(())


def as_number(
    node: Node | None, complaints: Complaints, *, least: float = 0, most: float | None = None
) -> float | None:
    """A number within its bounds, both included; out of bounds is a problem."""
    if node is None or not is_kind(node.value, Kind.NUMBER):
        return None
    if node.value < least or (most is not None and node.value > most):
        bounds = f"at least {least:g}" if most is None else f"from {least:g} to {most:g}"
        complaints.problems.append(node.problem(f"must be {bounds}, not {shown(node.value)}"))
        return None
    return float(node.value)


def as_count(node: Node | None, complaints: Complaints, *, least: int = 0, most: int = 10**9) -> int | None:
    """A whole number within its bounds, both included; out of bounds is a problem."""
    if node is None or not is_kind(node.value, Kind.WHOLE):
        return None
    number = as_number(node, complaints, least=least, most=most)
    return None if number is None else int(number)  # 2.0 is a whole number too


def as_one_of(node: Node | None, known: Sequence[str], complaints: Complaints) -> str | None:
    """One of several texts; any other is a problem."""
    value = as_text(node)
    if node is None or value is None or value in known:
        return value
    complaints.problems.append(node.problem(f"{shown(value)} is not one of the allowed values{nearest(value, known)}"))
    return None


def agreed(said: Sequence[Node], complaints: Complaints) -> Node | None:
    """The first of several values, each of which is a problem where it differs from the first."""
    for other in said[1:]:
        if not strictly_equal(said[0].value, other.value):
            message = f"says something else than {format_path(said[0].path)}; keep one of them"
            complaints.problems.append(other.problem(message, at_key=True))
    return said[0] if said else None
