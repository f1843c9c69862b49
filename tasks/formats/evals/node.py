"""Values of eval files with where they stand, taken apart: every spelling of a key is one key, no key is overlooked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath, format_path
from passgate.tasks.model.json_values import strictly_equal


class ValuePlaces(Protocol):
    """Where the parts of one file stand."""

    @property
    def file(self) -> str:
        """The file as users know it."""

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem at a path of the file."""


class Node(NamedTuple):
    """A value and where it stands. The value may differ from what the file says: variables are filled in."""

    value: Any
    places: ValuePlaces
    folder: Path  # the folder of the file: what its relative paths are relative to
    path: DocumentPath = ()

    def problem(self, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem at this value, or at its key."""
        return self.places.problem(self.path, message, at_key=at_key)

    def child(self, key: str | int) -> "Node":
        """Return the value at a key or an index, which must be there."""
        return Node(self.value[key], self.places, self.folder, (*self.path, key))

    def get(self, key: str) -> "Node | None":
        """Return the value at a key of a mapping; `None` without it and where it is null."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return None if value is None else Node(value, self.places, self.folder, (*self.path, key))

    def items(self) -> Iterator["Node"]:
        """Return the items of a list."""
        return (self.child(index) for index in range(len(self.value)))

    def with_value(self, value: Any) -> "Node":
        """Another value at the same place."""
        return Node(value, self.places, self.folder, self.path)


@dataclass
class Complaints:
    """What is found while files are read: problems refuse them, warnings do not."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    # What is asked for and is unavailable, as a missing file: the test loads, and a run with it is refused.
    cannot_run: list[Problem] = field(default_factory=list)

    def add(self, others: "Complaints") -> None:
        """Append further complaints."""
        self.problems.extend(others.problems)
        self.warnings.extend(others.warnings)
        self.cannot_run.extend(others.cannot_run)


def with_placeholders(value: Any, fill: Callable[[str, DocumentPath], Any], path: DocumentPath = ()) -> Any:
    """Return a value with every text in it that may have placeholders filled by a function, which gets the text's path
    too.
    """
    if isinstance(value, str):
        return fill(value, path) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: with_placeholders(item, fill, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [with_placeholders(item, fill, (*path, index)) for index, item in enumerate(value)]
    return value


def as_text(node: Node | None) -> str | None:
    """Return a text that is not empty."""
    return node.value if node is not None and isinstance(node.value, str) and node.value else None


def as_texts(node: Node | None) -> tuple[str, ...]:
    """Return a list of texts; a text alone stands for a list of one."""
    value = None if node is None else node.value
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str) and item)


def as_mapping(node: Node | None) -> Node | None:
    return node if node is not None and isinstance(node.value, dict) else None


def as_items(node: Node | None) -> Iterator[Node]:
    return node.items() if node is not None and isinstance(node.value, list) else iter(())


def agreed(said: Sequence[Node], complaints: Complaints) -> Node | None:
    """Return the first of several values, each of which is a problem where it differs from the first."""
    for other in said[1:]:
        if not strictly_equal(said[0].value, other.value):
            message = f"says something else than {format_path(said[0].path)}; keep one of them"
            complaints.problems.append(other.problem(message, at_key=True))
    return said[0] if said else None
