"""`include` entries in a list of tests."""

from dataclasses import dataclass
from typing import Literal

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.read.documents import Documents
from passgate.tasks.formats.schema_check import nearest

_KEYS = ("include", "type", "select", "run")
_TYPES = ("suite", "tests")


@dataclass(frozen=True)
class Include:
    """Files whose tests are taken in."""

    reference: Node
    type: Literal["suite", "tests"]
    """`suite`: eval files with what they say of their tests. `tests`: cases for what the including file says."""
    select: Node | None
    run: Node | None


def is_include(value: object) -> bool:
    """Whether an item of a list of tests is an include."""
    return isinstance(value, dict) and "include" in value


def read_include(entry: Node, documents: Documents) -> Include | None:
    """An include, or `None` when it cannot be used."""
    before = len(documents.complaints.problems)
    for key in entry.value:
        if key not in _KEYS:
            documents.refuse(entry.child(key).problem(f"unknown key{nearest(key, _KEYS)}", at_key=True))
    reference, kind, run = entry.child("include"), entry.get("type"), entry.get("run")
    if not isinstance(reference.value, str):
        documents.refuse(reference.problem("expected a path or a pattern"))
    if kind is None:
        documents.refuse(entry.problem("the key 'type' is missing: suite or tests"))
    elif kind.value not in _TYPES:
        documents.refuse(kind.problem(f"{kind.value!r} is not one of the allowed values{nearest(kind.value, _TYPES)}"))
    if run is not None and not isinstance(run.value, dict):
        documents.refuse(run.problem("expected a mapping"))
    if kind is None or len(documents.complaints.problems) > before:
        return None
    return Include(reference, kind.value, entry.get("select"), run)


def check_parent(root: Node, documents: Documents) -> None:
    """A file that imports suites must not say where they work: the suites do."""
    for parent in (root, root.get("experiment"), root.get("execution")):
        workspace = parent.get("workspace") if parent is not None else None
        if workspace is not None:
            message = "a file that includes suites (`type: suite`) has no workspace; put it into the suites"
            documents.refuse(workspace.problem(message, at_key=True))
