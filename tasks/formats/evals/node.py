"""A value of a file together with where it stands, so that whatever is wrong with it can be told."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath


class Places(Protocol):
    """Where the parts of one file stand."""

    @property
    def file(self) -> str:
        """The file as users know it."""

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """A problem at a path of the file."""


class Node(NamedTuple):
    """A value and where it stands. The value may differ from what the file says: variables are filled in."""

    value: Any
    places: Places
    folder: Path
    """The folder of the file: what its relative paths are relative to."""
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
    cannot_run: list[Problem] = field(default_factory=list)
    """What is asked for and is not to be had, as a missing file: the test loads, and a run with it is refused."""
