"""YAML read safely, with the place of every key and value.

No tags, no duplicate keys, no recursion, and a bound on what aliases may blow a file up to.
"""

import itertools
import math
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.errors import Problem

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 64
MAX_NUMBER_LENGTH = 100
"""Characters: YAML knows notations that grow into numbers of any size."""

DocumentPath = tuple[str | int, ...]
_Pair = tuple[yaml.Node, yaml.Node]

YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The fastest safe one that there is."""
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS: dict[type[yaml.Node], frozenset[str]] = {
    yaml.MappingNode: frozenset({"map"}),
    yaml.SequenceNode: frozenset({"seq"}),
    yaml.ScalarNode: frozenset({"str", "int", "float", "bool", "null", "timestamp", "merge", "value"}),
}


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
        node = _compose(read_source(file))
    except UnreadableFileError as error:
        place, message = error.place, str(error)
        document.problems.append(Problem(file=name, line=place.line, column=place.column, path="", message=message))
    else:
        document.data = _Builder(document).build(node, ()) if node is not None else None
    return document


class UnreadableFileError(Exception):
    """A file that is no text or no YAML document, and from which place on."""

    def __init__(self, message: str, place: Place = Place(1, 1)) -> None:
        self.place = place
        super().__init__(message)


def read_source(file: Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The text of a file. Raises `UnreadableFileError`."""
    content = b""
    try:
        about = file.stat()
        if not stat.S_ISREG(about.st_mode):
            raise UnreadableFileError("cannot be read: it is no regular file")
        if about.st_size > max_bytes:
            raise UnreadableFileError(f"cannot be read: the file is larger than {max_bytes // 1024 // 1024} MiB")
        content = file.read_bytes()
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        raise UnreadableFileError("cannot be read: this is not UTF-8 text", _place_after(before)) from error
    except (OSError, ValueError) as error:
        raise UnreadableFileError(f"cannot be read: {error}") from error


def _compose(text: str) -> yaml.Node | None:
    try:
        _refuse_depth(text)
        node: yaml.Node | None = yaml.compose(text, Loader=YAML_LOADER)
    except yaml.reader.ReaderError as error:
        unprintable = yaml.reader.Reader.NON_PRINTABLE.search(text)
        place = _place_after(text[: unprintable.start()]) if unprintable else Place(1, 1)
        raise UnreadableFileError(f"not valid YAML: {error.reason}", place) from error
    except yaml.MarkedYAMLError as error:
        place = _place(error.problem_mark or error.context_mark)
        what = ", ".join(filter(None, [error.context, error.problem]))
        line = "".join(text.splitlines()[place.line - 1 : place.line])
        if line[place.column - 1 : place.column] == "\t":
            what = "a tab; indent with spaces"
        raise UnreadableFileError(f"not valid YAML: {what}", place) from error
    return node


def _refuse_depth(text: str) -> None:
    """The composer calls itself for every level, in C without a bound: so the levels are counted before."""
    depth = 0
    for event in yaml.parse(text, Loader=YAML_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UnreadableFileError(f"nested deeper than {MAX_DEPTH} levels", _place(event.start_mark))


def _place_after(text: str) -> Place:
    """The place right behind a text."""
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"))


class _Builder:
    """Turns composed nodes into data while noting places and problems."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._constructor = yaml.constructor.SafeConstructor()
        self._pairs: dict[int, list[_Pair]] = {}
        self._open: set[int] = set()
        self._nodes = 0
        self._overfull = False

    def build(self, node: yaml.Node, path: DocumentPath) -> Any:
        self._document.values.setdefault(path, _place(node.start_mark))
        self._nodes += 1
        if self._nodes > MAX_NODES:
            if not self._overfull:
                self._complain(path, f"the file has more than {MAX_NODES} values once its aliases are followed")
            self._overfull = True
            return None
        if len(path) > MAX_DEPTH:
            self._complain(path, f"nested deeper than {MAX_DEPTH} levels once its aliases are followed")
            return None
        if id(node) in self._open:
            self._complain(path, "an alias inside of what it stands for")
            return None
        if not _is_plain(node):
            self._complain(path, f"the tag {node.tag!r} is not allowed; write the value plainly")
            return None
        self._open.add(id(node))
        value = self._built(node, path)
        self._open.remove(id(node))
        return value

    def _built(self, node: yaml.Node, path: DocumentPath) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, node.tag.removeprefix(_TAG), path)

    def _mapping(self, node: yaml.MappingNode, path: DocumentPath) -> dict[str, Any]:
        self._refuse_duplicates(node, path)
        data: dict[str, Any] = {}
        for key_node, value_node in self._merged(node, path):
            if not isinstance(key_node, yaml.ScalarNode) or not _is_plain(key_node):
                self._complain(path, "a key must be a plain text", _place(key_node.start_mark))
                continue
            key = str(key_node.value)
            self._document.keys[(*path, key)] = _place(key_node.start_mark)
            self._document.values.pop((*path, key), None)
            data[key] = self.build(value_node, (*path, key))
        return data

    def _merged(self, node: yaml.MappingNode, path: DocumentPath) -> list[_Pair]:
        """The pairs of a mapping with those of its `<<` merges first, so that its own keys win."""
        own = [pair for pair in node.value if not _is_merge(pair[0])]
        if len(own) == len(node.value):
            return own
        if id(node) not in self._pairs:
            self._pairs[id(node)] = own  # what a mapping adds that merges itself
            self._pairs[id(node)] = [*self._inherited(node, path), *own]
        return self._pairs[id(node)]

    def _inherited(self, node: yaml.MappingNode, path: DocumentPath) -> list[_Pair]:
        """The pairs that a mapping merges; of one key those of the first source. They count as values each time."""
        pairs: dict[str, _Pair] = {}
        merged = [value for key, value in node.value if _is_merge(key)]
        lists = [value.value if isinstance(value, yaml.SequenceNode) else [value] for value in merged]
        for source in itertools.chain(*lists):
            if not isinstance(source, yaml.MappingNode):
                self._complain(path, "`<<` takes a mapping or a list of mappings")
                continue
            for key, value in self._merged(source, path):
                self._nodes += 1
                if isinstance(key, yaml.ScalarNode):
                    pairs.setdefault(str(key.value), (key, value))
            if self._nodes > MAX_NODES:
                break
        return list(pairs.values())

    def _refuse_duplicates(self, node: yaml.MappingNode, path: DocumentPath) -> None:
        seen: dict[str, Place] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                continue
            key, place = str(key_node.value), _place(key_node.start_mark)
            if key in seen:
                message = f"the key stands here a second time (first in line {seen[key].line})"
                self._complain((*path, key), message, place)
            seen[key] = place

    def _scalar(self, node: yaml.Node, kind: str, path: DocumentPath) -> Any:
        if kind in {"str", "timestamp", "value"}:
            return str(node.value)
        if len(node.value) > MAX_NUMBER_LENGTH:
            self._complain(path, f"a number of more than {MAX_NUMBER_LENGTH} characters")
            return None
        try:
            value = self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError, LookupError):
            self._complain(path, f"not a valid {kind}: {node.value}")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._complain(path, "not a finite number")
            return None
        return value

    def _complain(self, path: DocumentPath, message: str, place: Place | None = None) -> None:
        problem = self._document.problem(path, message)
        if place is not None:
            problem = replace(problem, line=place.line, column=place.column)
        self._document.problems.append(problem)


def _is_plain(node: yaml.Node) -> bool:
    return node.tag.removeprefix(_TAG) in _PLAIN_TAGS[type(node)]


def _is_merge(key: yaml.Node) -> bool:
    return str(key.tag) == f"{_TAG}merge"


def _place(mark: Any) -> Place:
    """The place of a mark, which PyYAML's two parsers have of different types, or not at all."""
    return Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
