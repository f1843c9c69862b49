"""Lists of assertions in a file of a repository, and what they are read into."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.map.graders import read_graders
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.documents import Documents
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.model.graders import Grader
from tests.unit.formats.evals.eval_files import write

FILE = "evals/EVAL.yaml"


@dataclass(frozen=True)
class Graders:
    """What a list of assertions is read into."""

    graders: tuple[Grader, ...]
    complaints: Complaints

    @property
    def one(self) -> Any:
        assert self.problems == []
        assert len(self.graders) == 1
        return self.graders[0]

    @property
    def problems(self) -> list[str]:
        return [_text(problem) for problem in self.complaints.problems]

    @property
    def cannot_run(self) -> list[str]:
        return [_text(problem) for problem in self.complaints.cannot_run]


def _text(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}"


def read(root: Path, *assertions: Any, files: Mapping[str, str] | None = None, text: str | None = None) -> Graders:
    """The graders of the assertions of `evals/EVAL.yaml`, a file that holds nothing else, as data or as YAML."""
    content = text or yaml.safe_dump(list(assertions), sort_keys=False)
    write(root, {FILE: content, ".git/HEAD": "", **(files or {})})
    ground, complaints = Ground(root / "evals", root), Complaints()
    documents = Documents(ground, complaints, {"WHERE": "Paris"}, lambda file: str(file.relative_to(root)))
    document = read_document(root / FILE, FILE)
    assert document.problems == []
    node = Node(document.data, document, root / "evals")
    return Graders(read_graders(node, Sources(ground, complaints, documents.read)), complaints)
