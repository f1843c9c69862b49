"""Values of eval files with where they stand; JSON with places that are looked for only when they are needed."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import MAX_DEPTH, MAX_NUMBER_LENGTH, DocumentPath, format_path
from passgate.tasks.model import json_values


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
    """What is wrong with files: problems refuse them, warnings do not."""

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    # What is asked for and is unavailable, as a missing file: the test loads, and a run with it is refused.
    cannot_run: list[Problem] = field(default_factory=list)

    def add(self, others: "Complaints") -> None:
        """Append further complaints."""
        self.problems.extend(others.problems)
        self.warnings.extend(others.warnings)
        self.cannot_run.extend(others.cannot_run)


def fill_placeholders(value: Any, fill: Callable[[str, DocumentPath], Any], path: DocumentPath = ()) -> Any:
    """Return a value with its texts that may have placeholders filled by a function of text and path."""
    if isinstance(value, str):
        return fill(value, path) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: fill_placeholders(item, fill, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_placeholders(item, fill, (*path, index)) for index, item in enumerate(value)]
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


_DECODER = json.JSONDecoder()


class JsonError(ValueError):
    """A text that is not JSON as it is wanted here."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class TextPlaces:
    """The places of a JSON text that begins in some line of a file. Without the text everything stands where the line
    begins, as for files that are known by their lines only.
    """

    file: str
    text: str = ""
    line: int = 1

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem at a path; at the nearest enclosing place when the path is not in the text."""
        return self.problem_at(find_offset(self.text, path, at_key=at_key), message, path)

    def problem_at(self, offset: int, message: str, path: DocumentPath = ()) -> Problem:
        """Return a problem at an offset of the text."""
        before = self.text[:offset]
        line, column = self.line + before.count("\n"), len(before) - before.rfind("\n")
        return Problem(file=self.file, line=line, column=column, path=format_path(path), message=message)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises `JsonError`, also for duplicate keys, numbers that are not finite
    or too long, half characters and deep nesting.
    """
    try:
        value = json_values.parse_json(text, parse_int=_whole, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise JsonError(f"not valid JSON: {error.msg}", error.pos) from error
    except ValueError as error:
        raise JsonError(str(error)) from error
    # Only a text with that many brackets can be so deep: most values need no walk.
    layer = [value] if text.count("[") + text.count("{") > MAX_DEPTH else []
    for _ in range(MAX_DEPTH + 1):  # layer by layer: a walk that calls itself could end in a RecursionError
        containers = (outer for outer in layer if isinstance(outer, dict | list))
        layer = [item for outer in containers for item in (outer.values() if isinstance(outer, dict) else outer)]
    if layer:
        raise JsonError(f"nested deeper than {MAX_DEPTH} levels")
    # The json module takes a lone surrogate, which can be written to no file afterwards.
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise JsonError("half of a character: a `\\ud...` escape without its other half") from error
    return value


def _whole(text: str) -> int:
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(f"a number of more than {MAX_NUMBER_LENGTH} characters")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def find_offset(text: str, path: DocumentPath, *, at_key: bool = False) -> int:
    """Return where the value at a path of a JSON text begins, or its key; its nearest parent where it is absent."""
    key_offset = offset = _skip(text, 0)
    try:
        for part in path:
            found = next((member for member in _members(text, offset) if member[0] == part), None)
            if found is None:
                return offset
            _, key_offset, offset = found
    except (ValueError, IndexError, RecursionError):
        return offset
    return key_offset if at_key else offset


def _members(text: str, offset: int) -> Iterator[tuple[str | int, int, int]]:
    """Yield the keys or indices of a JSON value with where key and value begin."""
    opening, index = text[offset], 0
    if opening not in "{[":
        return
    offset = _skip(text, offset + 1)
    while text[offset] not in "]}":
        key: str | int = index
        begin = offset
        if opening == "{":
            key, offset = _DECODER.raw_decode(text, offset)
            offset = _skip(text, _skip(text, offset) + 1)
        yield key, begin, offset
        _, offset = _DECODER.raw_decode(text, offset)
        offset = _skip(text, offset)
        if text[offset] == ",":
            offset = _skip(text, offset + 1)
        index += 1


def _skip(text: str, offset: int) -> int:
    while offset < len(text) and text[offset] in " \t\r\n\ufeff":  # a byte order mark may stand before the first value
        offset += 1
    return offset
