"""JSONL: one test a line, and the sidecar that says what all of them have."""

import os
from collections.abc import Iterator
from pathlib import Path

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.read.documents import Documents
from passgate.tasks.formats.evals.read.json_text import JsonError, JsonPlaces, parse_json
from passgate.tasks.formats.evals.read.references import FILE_SCHEME
from passgate.tasks.formats.evals.read.top_level import TESTS_KEYS, has_tests
from passgate.tasks.model.json_values import strictly_equal

LINES_SUFFIX = ".jsonl"
MOST_BROKEN_LINES = 1000
"""Of one file. More of them are another kind of file, and the list of them helps nobody."""
_SIDECARS = (".yaml", ".yml", ".eval.yaml", ".eval.yml")
_TELLS_NOTHING = frozenset({"$schema", "name", "description", "version", "author", "license", "requires"})
"""Keys of a sidecar that change nothing about its tests."""


def read_lines(file: Path, documents: Documents) -> Iterator[Node]:
    """The value of every line that is not blank. A line that is no JSON is a problem; nothing is read behind many."""
    name, broken = documents.shown(file), 0
    for number, line in enumerate((documents.text(file) or "").split("\n"), start=1):
        if not line or line.isspace():
            continue
        places = JsonPlaces(name, line, number)
        try:
            node = Node(parse_json(line), places, file.parent)
        except JsonError as error:
            documents.refuse(places.problem_at(error.offset, str(error)))
            broken += 1
            if broken == MOST_BROKEN_LINES:
                message = f"{broken} lines are no JSON: what stands behind this one is not read"
                documents.refuse(places.problem_at(0, message))
                return
        else:
            yield documents.interpolated(node) if documents.placeholder.search(line) else node


def sidecar_of(file: Path, documents: Documents) -> Node | None:
    """What a JSONL file's sidecar says of all its tests: the document of `<base>.yaml` or `<base>.eval.yaml`.

    A file with tests of its own is none. Two sidecars must say the same.
    """
    documents.ground.looked_at.update(sidecar_names(file))
    read = [documents.read_root(candidate) for candidate in sidecar_names(file) if candidate.is_file()]
    sidecars = [root for root in read if root is not None and _is_sidecar(root, file)]
    for other in sidecars[1:]:
        if not strictly_equal(sidecars[0].value, other.value):
            message = f"{file.name} has two sidecars that differ: {sidecars[0].places.file} and {other.places.file}"
            documents.refuse(other.problem(message))
    return sidecars[0] if sidecars else None


def sidecar_names(file: Path) -> list[Path]:
    """The names that a JSONL file's sidecar may have."""
    return [file.with_name(file.name.removesuffix(LINES_SUFFIX) + suffix) for suffix in _SIDECARS]


def lines_beside(sidecar: Path) -> Path | None:
    """The JSONL file that an eval file without tests is the sidecar of."""
    for suffix in reversed(_SIDECARS):
        if sidecar.name.endswith(suffix):
            lines = sidecar.with_name(sidecar.name.removesuffix(suffix) + LINES_SUFFIX)
            return lines if lines.is_file() else None
    return None


def says_something(sidecar: Node) -> bool:
    """Whether a sidecar's tests are others without it."""
    return any(key not in _TELLS_NOTHING and key not in TESTS_KEYS for key in sidecar.value)


def _is_sidecar(root: Node, lines: Path) -> bool:
    if not isinstance(root.value, dict) or "task_id" in root.value or "id" in root.value:
        return False
    if not has_tests(root.value):
        return True
    named = [root.value[key] for key in TESTS_KEYS if isinstance(root.value.get(key), str)]
    return any(_leads_to(root.folder, name, lines) for name in named)


def _leads_to(folder: Path, name: str, file: Path) -> bool:
    return os.path.normpath(folder / name.removeprefix(FILE_SCHEME)) == os.path.normpath(file)
