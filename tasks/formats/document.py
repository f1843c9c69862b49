"""YAML read safely, with the place of every key and value.

No tags, no duplicate keys, no recursion, and a bound on what aliases may blow a file up to.
"""

import math
import re
import stat
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.errors import Problem

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_NODES = 200_000
MAX_DEPTH = 64
MAX_NUMBER_LENGTH = 100  # YAML knows notations that grow into numbers of any size
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"  # How the file begins that git LFS leaves of another
FETCH_LFS = "fetch it with `git lfs pull`, in a workflow with `lfs: true` of actions/checkout"

DocumentPath = tuple[str | int, ...]
_Pair = tuple[yaml.Node, yaml.Node]

YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML can be built without libyaml
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
# YAML 1.1 has types of their own for dates and for `=`. Who writes one in a task means the text.
_TEXTS = frozenset({"str", "timestamp", "value"})
_PLAIN_TAGS: dict[type[yaml.Node], dict[str, str]] = {
    kind: {prefix + name: name for name in names for prefix in (_TAG, "")}
    for kind, names in (
        (yaml.MappingNode, {"map"}),
        (yaml.SequenceNode, {"seq"}),
        (yaml.ScalarNode, {*_TEXTS, "int", "float", "bool", "null", "merge"}),
    )
}
_INDENT = re.compile(r"[-?: \t]{2,}")


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
    problems: list[Problem] = field(default_factory=list)
    root: yaml.Node | None = field(default=None, repr=False)

    @property
    def values(self) -> dict[DocumentPath, Place]:
        """The place of every value."""
        return self._places.values

    @property
    def keys(self) -> dict[DocumentPath, Place]:
        """The place of every key, by the path of its value."""
        return self._places.keys

    @cached_property
    def _places(self) -> "_Places":
        # Only who has a problem to tell asks for places, and they take longer to collect than the data.
        places = _Places(self.file)
        if self.root is not None:
            places.build(self.root)
        return places

    def key_line(self, key: str) -> int:
        """Return the line of a key of the whole document, which is a mapping that has it."""
        own = next((name for name, _ in self.root.value if name.value == key), None) if self.root else None
        return _place(own.start_mark).line if own is not None else self.keys[(key,)].line

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem at a path; at the nearest enclosing place when the path itself is not in the file."""
        known = (self.values.get(path[:length]) for length in range(len(path), -1, -1))
        place = (self.keys.get(path) if at_key else None) or next(filter(None, known), Place(1, 1))
        return Problem(file=self.file, line=place.line, column=place.column, path=format_path(path), message=message)


def format_path(path: DocumentPath) -> str:
    """`("graders", 0, "type")` as `graders[0].type`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def read_document(file: Path, name: str, sources: "SourceTexts | None" = None) -> Document:
    """Read one YAML file. Whatever is wrong with it is in `problems`, and then `data` may be incomplete."""
    try:
        root = _compose(sources.text(file) if sources else read_source(file))
    except UnreadableFileError as error:
        return Document(name, problems=[error.problem(name)])
    builder = _Builder(name)
    data = builder.build(root) if root is not None else None
    return Document(name, data, builder.problems, root)


class UnreadableFileError(Exception):
    """A file that is not a text or not a YAML document, and from which place on."""

    def __init__(self, message: str, place: Place = Place(1, 1)) -> None:
        super().__init__(message)
        self.place = place

    def problem(self, file: str) -> Problem:
        """Return it as a problem of a file."""
        return Problem(file=file, line=self.place.line, column=self.place.column, path="", message=str(self))


def read_source(file: Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return the text of a file. Raises `UnreadableFileError`."""
    content = b""
    try:
        about = file.stat()
        # A pipe or a device may never end, and opening one may wait for ever.
        if not stat.S_ISREG(about.st_mode):
            raise UnreadableFileError("cannot be read: it is not a regular file")
        if about.st_size > max_bytes:
            raise UnreadableFileError(f"cannot be read: the file is larger than {max_bytes // 1024 // 1024} MiB")
        # Files of /proc say that they are empty, and reading one of them may wait for ever too.
        content = file.read_bytes() if about.st_size else b""
        if content.startswith(LFS_POINTER):
            raise UnreadableFileError(f"is a pointer of git LFS: {FETCH_LFS}")
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        raise UnreadableFileError("cannot be read: this is not UTF-8 text", _place_after(before)) from error
    except (OSError, ValueError) as error:
        raise UnreadableFileError(f"cannot be read: {error}") from error


class SourceTexts:
    """The texts of files, each read once for everyone who asks: what kind of file it is, and what it says."""

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}

    def text(self, file: Path) -> str:
        """Return the text of a file. Raises `UnreadableFileError`."""
        absolute = file.absolute()
        if absolute not in self._texts:
            self._texts[absolute] = read_source(file)
        return self._texts[absolute]


def _compose(text: str) -> yaml.Node | None:
    try:
        # The composer calls itself for every level, in C without a bound: so the levels are counted before.
        if _may_be_deep(text):
            _refuse_depth(text)
        try:
            node: yaml.Node | None = yaml.compose(text, Loader=YAML_LOADER)
        except yaml.YAMLError:
            # Text that is not YAML is reported before what only cannot be composed, as an alias without its anchor.
            _refuse_depth(text)
            raise
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


def _may_be_deep(text: str) -> bool:
    """Return whether a text may be nested too deep. `False` is sure, and saves the slow count."""
    # A level of block style begins at a further column, behind nothing but such characters; a list also in the column
    # of its key. A level of flow style begins at a bracket, and in it there may be a pair without one of its own.
    columns = max(map(len, _INDENT.findall(text)), default=1)
    return 2 * (columns + 1 + text.count("[") + text.count("{")) > MAX_DEPTH


def _refuse_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=YAML_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UnreadableFileError(f"nested deeper than {MAX_DEPTH} levels", _place(event.start_mark))


def _place_after(text: str) -> Place:
    return Place(text.count("\n") + 1, len(text) - text.rfind("\n"))


# Not PyYAML's own constructor, which takes the last of two equal keys and follows aliases without a bound.
class _Builder:
    """Turns composed nodes into data while noting problems."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._path: list[str | int] = []
        self._constructor = yaml.constructor.SafeConstructor()
        self._pairs: dict[int, list[_Pair]] = {}
        self._open: set[int] = set()
        self._nodes = 0
        self._overfull = False

    def build(self, node: yaml.Node) -> Any:
        self._nodes += 1
        kind = _PLAIN_TAGS[type(node)].get(node.tag)
        if kind is None or self._nodes > MAX_NODES or len(self._path) > MAX_DEPTH or id(node) in self._open:
            self._refuse(node)
            return None
        if isinstance(node, yaml.ScalarNode):
            return node.value if kind in _TEXTS else self._scalar(node, kind)
        self._open.add(id(node))
        data = self._mapping(node) if isinstance(node, yaml.MappingNode) else []
        for index, item in enumerate(node.value if isinstance(node, yaml.SequenceNode) else ()):
            self._path.append(index)
            data.append(self.build(item))
            self._path.pop()
        self._open.remove(id(node))
        return data

    def _refuse(self, node: yaml.Node) -> None:
        if self._nodes > MAX_NODES:
            if not self._overfull:
                self._complain(node, f"the file has more than {MAX_NODES} values once its aliases are followed")
            self._overfull = True
        elif len(self._path) > MAX_DEPTH:
            self._complain(node, f"nested deeper than {MAX_DEPTH} levels once its aliases are followed")
        elif id(node) in self._open:
            self._complain(node, "an alias inside of what it stands for")
        else:
            self._complain(node, f"the tag {node.tag!r} is not allowed; write the value plainly")

    def _mapping(self, node: yaml.MappingNode) -> Any:
        self._refuse_duplicates(node)
        data: dict[str, Any] = {}
        for key, value in self._merged(node, node):
            if not isinstance(key, yaml.ScalarNode) or key.tag not in _PLAIN_TAGS[yaml.ScalarNode]:
                self._complain(key, "a key must be a plain text")
                continue
            self._path.append(key.value)
            self._enter(key)
            data[key.value] = self.build(value)
            self._path.pop()
        return data

    def _enter(self, key: yaml.Node) -> None:
        """Note a key whose value is about to be built."""

    def _merged(self, node: yaml.MappingNode, around: yaml.Node) -> list[_Pair]:
        """Return the pairs of a mapping with those of its `<<` merges first, so that its own keys win."""
        own: list[_Pair] = [pair for pair in node.value if pair[0].tag != _MERGE]
        if len(own) == len(node.value):
            return own
        if id(node) not in self._pairs:
            self._pairs[id(node)] = own  # what a mapping adds that merges itself
            self._pairs[id(node)] = [*self._inherited(node, around), *own]
        return self._pairs[id(node)]

    def _inherited(self, node: yaml.MappingNode, around: yaml.Node) -> list[_Pair]:
        """Return the pairs that a mapping merges; of one key those of the first source. They count as values
        each time.
        """
        pairs: dict[str, _Pair] = {}
        merged = [value for key, value in node.value if key.tag == _MERGE]
        for source in chain(*(value.value if isinstance(value, yaml.SequenceNode) else [value] for value in merged)):
            if not isinstance(source, yaml.MappingNode):
                self._complain(around, "`<<` takes a mapping or a list of mappings")
                continue
            for key, value in self._merged(source, around):
                self._nodes += 1
                if isinstance(key, yaml.ScalarNode):
                    pairs.setdefault(key.value, (key, value))
            if self._nodes > MAX_NODES:
                break
        return list(pairs.values())

    def _refuse_duplicates(self, node: yaml.MappingNode) -> None:
        seen: dict[str, yaml.Node] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                self._path.append(key.value)
                first = _place(seen[key.value].start_mark).line
                self._complain(key, f"duplicate key (first defined in line {first})")
                self._path.pop()
            seen[key.value] = key

    def _scalar(self, node: yaml.ScalarNode, kind: str) -> Any:
        try:
            if len(node.value) > MAX_NUMBER_LENGTH:
                wrong = f"a number of more than {MAX_NUMBER_LENGTH} characters"
            else:
                value = self._constructor.construct_object(node)
                if not isinstance(value, float) or math.isfinite(value):
                    return value
                wrong = "not a finite number"
        except (yaml.YAMLError, ValueError, OverflowError, LookupError):
            wrong = f"not a valid {kind}: {node.value}"
        self._complain(node, wrong)
        return None

    def _complain(self, node: yaml.Node, message: str) -> None:
        place, path = _place(node.start_mark), format_path(tuple(self._path))
        self.problems.append(Problem(file=self._file, line=place.line, column=place.column, path=path, message=message))


class _Places(_Builder):
    """Notes where every key and value stands."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.values: dict[DocumentPath, Place] = {}
        self.keys: dict[DocumentPath, Place] = {}

    def build(self, node: yaml.Node) -> Any:
        self.values.setdefault(tuple(self._path), _place(node.start_mark))
        return super().build(node)

    def _enter(self, key: yaml.Node) -> None:
        path = tuple(self._path)
        self.keys[path] = _place(key.start_mark)
        self.values.pop(path, None)  # what the key had where it was merged from


def _place(mark: Any) -> Place:
    """Return the place of a mark, which PyYAML's two parsers have of different types, or not at all."""
    return Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
