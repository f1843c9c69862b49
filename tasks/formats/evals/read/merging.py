"""Tests made of several mappings: what one says and what others say for it, each part with its own place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.evals.node import Node, Places

_GRADERS = ("assert", "assertions")
_MERGED = ("vars", "options", "metadata")


@dataclass(frozen=True)
class GraftedPlaces:
    """The places of a value some of whose parts stand elsewhere."""

    base: Places
    grafts: Mapping[DocumentPath, Node]

    @property
    def file(self) -> str:
        return self.base.file

    def problem(self, path: DocumentPath, message: str, *, at_key: bool = False) -> Problem:
        """A problem where the innermost part that holds the path really stands."""
        for length in range(len(path), 0, -1):
            origin = self.grafts.get(path[:length])
            if origin is not None:
                return origin.places.problem((*origin.path, *path[length:]), message, at_key=at_key)
        return self.base.problem(path, message, at_key=at_key)


def merged(defaults: Node, test: Node) -> Node:
    """A test with what its defaults say in addition: their graders first, their variables, options and metadata where
    the test has none of the name, and every other key that it does not have.
    """
    value = dict(test.value)
    grafts: dict[DocumentPath, Node] = {}
    for key, said in defaults.value.items():
        origin = defaults.child(key)
        if key in _GRADERS:
            _add_graders(value, grafts, origin, test)
        elif key in _MERGED and isinstance(said, Mapping) and isinstance(value.get(key), Mapping):
            grafts |= {(*test.path, key, name): origin.child(name) for name in said if name not in value[key]}
            value[key] = {**said, **value[key]}
        elif value.get(key) is None:
            value[key] = said
            grafts[(*test.path, key)] = origin
    return Node(value, GraftedPlaces(test.places, grafts), test.folder, test.path)


def _add_graders(value: dict[str, Any], grafts: dict[DocumentPath, Node], defaults: Node, test: Node) -> None:
    """Put the graders of the defaults before the test's own."""
    key = next((name for name in _GRADERS if value.get(name) is not None), str(defaults.path[-1]))
    own = value.get(key)
    if own is None:
        value[key] = defaults.value
        grafts[(*test.path, key)] = defaults
    elif isinstance(own, list) and isinstance(defaults.value, list):
        before = len(defaults.value)
        value[key] = [*defaults.value, *own]
        grafts |= {(*test.path, key, index): defaults.child(index) for index in range(before)}
        own_node = test.child(key)
        grafts |= {(*test.path, key, before + index): own_node.child(index) for index in range(len(own))}
