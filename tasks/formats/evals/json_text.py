"""JSON read strictly, with places that are looked for only when there is something to tell."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import MAX_DEPTH, MAX_NUMBER_LENGTH, DocumentPath, format_path

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
        return self.problem_at(offset_of(self.text, path, at_key=at_key), message, path)

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
        value = json.loads(
            text, object_pairs_hook=_mapping, parse_constant=_no_constant, parse_int=_whole, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise JsonError(f"not valid JSON: {error.msg}", error.pos) from error
    except RecursionError as error:
        raise JsonError(f"nested deeper than {MAX_DEPTH} levels") from error
    # Only a text with that many brackets can be so deep: most values need no walk.
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper(value):
        raise JsonError(f"nested deeper than {MAX_DEPTH} levels")
    # The json module takes a lone surrogate, which can be written to no file afterwards.
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise JsonError("half of a character: a `\\ud...` escape without its other half") from error
    return value


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [key for key, _ in pairs]
        raise JsonError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r}")
    return mapping


def _no_constant(name: str) -> None:
    raise JsonError(f"{name} is not a finite number")


def _whole(text: str) -> int:
    if len(text) > MAX_NUMBER_LENGTH:
        raise JsonError(f"a number of more than {MAX_NUMBER_LENGTH} characters")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise JsonError("not a finite number")
    return number


def _deeper(value: Any) -> bool:
    layer = [value]
    for _ in range(MAX_DEPTH + 1):  # layer by layer: a walk that calls itself could end in a RecursionError
        containers = (outer for outer in layer if isinstance(outer, dict | list))
        layer = [item for outer in containers for item in (outer.values() if isinstance(outer, dict) else outer)]
    return bool(layer)


def offset_of(text: str, path: DocumentPath, *, at_key: bool = False) -> int:
    """Where the value at a path of a JSON text begins, or its key; for a path that is not there its nearest parent."""
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
