"""Lists of assertions in a file of a repository, and what they are read into."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.documents import Documents, Ground
from passgate.tasks.formats.evals.graders import read_graders
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.words import Sources
from passgate.tasks.model.graders import Grader
from tests.unit.formats.evals.eval_files import Told, write

FILE = "evals/EVAL.yaml"


@dataclass(frozen=True)
class Graders(Told):
    """What a list of assertions is read into."""

    graders: tuple[Grader, ...]

    @property
    def one(self) -> Any:
        assert self.problems == []
        assert len(self.graders) == 1
        return self.graders[0]


def read(root: Path, *assertions: Any, files: Mapping[str, str] | None = None, text: str | None = None) -> Graders:
    """The graders of the assertions of `evals/EVAL.yaml`, a file that holds nothing else, as data or as YAML."""
    content = text or yaml.safe_dump(list(assertions), sort_keys=False)
    write(root, {FILE: content, ".git/HEAD": "", **(files or {})})
    ground, complaints = Ground(root / "evals", root), Complaints()
    documents = Documents(ground, complaints, {"WHERE": "Paris"}, lambda file: str(file.relative_to(root)))
    document = read_document(root / FILE, FILE)
    assert document.problems == []
    node = Node(document.data, document, root / "evals")
    return Graders(complaints, read_graders(node, Sources(documents, complaints)))
