"""Tests as files give them, not yet read, and what a dialect of eval files has of its own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.evals.documents import Documents
from passgate.tasks.formats.evals.node import Node, ValuePlaces
from passgate.tasks.formats.evals.words import Parts


@dataclass(frozen=True, eq=False)
class SuiteContext:
    """An eval file: what it says of all its tests."""

    root: Parts  # without any for a file of raw cases
    file: Path  # absolute
    documents: Documents  # reads the files that belong to it
    wide: dict[bool, Any] = field(default_factory=dict, repr=False)  # what was read for all its tests before


@dataclass(frozen=True)
class RawTest:
    """One test with everything that has a say in it."""

    node: Node  # a mapping; `${{ }}` are filled in, `{{ }}` are not
    # Whose input, graders and workspace apply: the imported suite's, or that of the file for raw cases.
    context: SuiteContext
    runtime: SuiteContext  # whose runtime policy (`experiment`, `execution`) applies: that of the file that is run
    runs: tuple[Node, ...] = ()  # the `run` mappings of the includes that brought it, innermost first
    default_id: str | None = None  # the id where the test says none: the name of its folder
    workspace: Path | None = None  # a folder beside the test that is its workspace template where it says none
    # A prompt template of the file (`prompts`), for the dialect in which tests are only variables.
    prompt: Node | None = None
    prompt_label: str | None = None  # tells the tests of several prompts apart

    @property
    def id(self) -> str | None:
        """The id that it has, or gets where it says none."""
        said = self.node.value.get("id") if isinstance(self.node.value, dict) else None
        return str(said) if said is not None else self.default_id


@dataclass(frozen=True)
class EvalDialect:
    """What the eval files of one family have of their own. All else is read as AgentV's suites are."""

    recognises: Callable[[Collection[str]], bool]  # by the keys of a file
    claims: Callable[[Collection[str]], bool]  # whether a file with these keys is an eval file, whatever its name
    file_keys: Mapping[str, str] = field(default_factory=dict)  # passgate's names of the keys of a file
    test_keys: Mapping[str, str] = field(default_factory=dict)  # and of those of its tests
    # What reads the files that belong to an eval file, from what reads plain ones.
    reader: Callable[[Documents, Node], Documents] = lambda documents, _: documents
    # The tests of a file, from those that its list has.
    expand: Callable[[Sequence[RawTest], SuiteContext], Sequence[RawTest]] = lambda tests, _: tests

    def canonical(self, root: Node) -> Node:
        """Return an eval file with passgate's names of its keys. Every part keeps its place."""
        root = rename_keys(root, self.file_keys)
        tests = root.get("tests")
        if not self.test_keys or tests is None or not isinstance(tests.value, list):
            return root
        items = [rename_keys(item, self.test_keys) for item in tests.items()]
        grafts = {item.path: item for item in items}
        value = {**root.value, "tests": [item.value for item in items]}
        return Node(value, GraftedPlaces(root.places, grafts), root.folder, root.path)


class EvalRoot(NamedTuple):
    """The document of an eval file, with passgate's names of its keys."""

    node: Node
    dialect: EvalDialect


def rename_keys(node: Node, names: Mapping[str, str]) -> Node:
    """Return a mapping with other names of its keys; anything else as it is."""
    if not isinstance(node.value, dict) or not names.keys() & node.value.keys():
        return node
    grafts = {(*node.path, names[key]): node.child(key) for key in node.value if key in names}
    value = {names.get(key, key): item for key, item in node.value.items()}
    return Node(value, GraftedPlaces(node.places, grafts), node.folder, node.path)


@dataclass(frozen=True)
class GraftedPlaces:
    """The places of a value some of whose parts stand elsewhere."""

    base: ValuePlaces
    grafts: Mapping[DocumentPath, Node]

    @property
    def file(self) -> str:
        return self.base.file

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """Return a problem where the innermost part that holds the path really stands."""
        for length in range(len(path), 0, -1):
            origin = self.grafts.get(path[:length])
            if origin is not None:
                return origin.places.problem((*origin.path, *path[length:]), message, at_key=at_key)
        return self.base.problem(path, message, at_key=at_key)
