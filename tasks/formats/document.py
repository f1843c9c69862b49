"""YAML read safely, with the place of every key and value.

No tags, no duplicate keys, no recursion, and a bound on what aliases may blow a file up to.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.errors import Problem

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 64

DocumentPath = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = frozenset({"str", "int", "float", "bool", "null", "timestamp", "map", "seq", "merge", "value"})


@dataclass(frozen=True)
class Place:
    """Where something stands; both count from 1."""

    line: int
    column: int


@dataclass
class Document:
    """The data of one file and where each part of it stands."""

    file: str
    data: Any = None
    values: dict[DocumentPath, Place] = field(default_factory=dict)
    keys: dict[DocumentPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """A problem at a path; at the nearest enclosing place when the path itself is not in the file."""
        place = self.keys.get(path) if at_key else None
        known = path
        while place is None:
            place = self.values.get(known)
            if place is None and not known:
                place = Place(1, 1)
            known = known[:-1]
        return Problem(file=self.file, line=place.line, column=place.column, path=format_path(path), message=message)


def format_path(path: DocumentPath) -> str:
    """`("graders", 0, "type")` as `graders[0].type`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def read_document(file: Path, name: str) -> Document:
    """Read one YAML file. Whatever is wrong with it is in `problems`, and then `data` may be incomplete."""
    document = Document(file=name)
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"the file is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
        text = file.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        document.problems.append(_syntax_problem(name, error))
    except (OSError, ValueError) as error:
        document.problems.append(Problem(file=name, line=1, column=1, path="", message=f"cannot be read: {error}"))
    else:
        document.data = _Builder(document).build(node, ()) if node is not None else None
    return document


def _syntax_problem(name: str, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return Problem(
        file=name,
        line=mark.line + 1 if mark else 1,
        column=mark.column + 1 if mark else 1,
        path="",
        message=f"not valid YAML: {what}",
    )


class _Builder:
    """Turns composed nodes into data while noting places and problems."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._constructor = yaml.constructor.SafeConstructor()
        self._nodes = 0

    def build(self, node: yaml.Node, path: DocumentPath) -> Any:
        self._document.values.setdefault(path, _place(node))
        self._nodes += 1
        if self._nodes > MAX_NODES:
            if self._nodes == MAX_NODES + 1:
                self._complain(path, f"the file has more than {MAX_NODES} values once its aliases are followed")
            return None
        if len(path) > MAX_DEPTH:
            self._complain(path, f"nested deeper than {MAX_DEPTH} levels, or an alias that contains itself")
            return None
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        if kind not in _PLAIN_TAGS:
            self._complain(path, f"the tag {node.tag!r} is not allowed; write the value plainly")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, kind, path)

    def _mapping(self, node: yaml.MappingNode, path: DocumentPath) -> dict[str, Any]:
        self._refuse_duplicates(node, path)
        data: dict[str, Any] = {}
        for key_node, value_node in self._merged(node, path):
            if not isinstance(key_node, yaml.ScalarNode):
                self._complain(path, "a key must be a plain text")
                continue
            key = str(key_node.value)
            self._document.keys[(*path, key)] = _place(key_node)
            self._document.values.pop((*path, key), None)
            data[key] = self.build(value_node, (*path, key))
        return data

    def _merged(self, node: yaml.MappingNode, path: DocumentPath) -> list[tuple[yaml.Node, yaml.Node]]:
        """The pairs of a mapping with its `<<` merges first, so that its own keys win."""
        if not any(key.tag.endswith(":merge") for key, _ in node.value):
            return list(node.value)
        try:
            self._constructor.flatten_mapping(node)
        except (yaml.YAMLError, RecursionError) as error:
            self._complain(path, f"`<<` cannot be merged: {getattr(error, 'problem', error)}")
        return list(node.value)

    def _refuse_duplicates(self, node: yaml.MappingNode, path: DocumentPath) -> None:
        seen: dict[str, Place] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key, place = str(key_node.value), _place(key_node)
            if key in seen:
                self._document.problems.append(
                    Problem(
                        file=self._document.file,
                        line=place.line,
                        column=place.column,
                        path=format_path((*path, key)),
                        message=f"the key stands here a second time (first in line {seen[key].line})",
                    )
                )
            seen[key] = place

    def _scalar(self, node: yaml.Node, kind: str, path: DocumentPath) -> Any:
        if kind in {"str", "timestamp", "value"}:
            return str(node.value)
        try:
            value = self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            self._complain(path, f"not a valid {kind}: {error}")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._complain(path, "not a finite number")
            return None
        return value

    def _complain(self, path: DocumentPath, message: str) -> None:
        self._document.problems.append(self._document.problem(path, message))


def _place(node: yaml.Node) -> Place:
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)
