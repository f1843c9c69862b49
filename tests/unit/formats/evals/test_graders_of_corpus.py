"""Every list of graders in the corpus of eval files."""

from collections.abc import Iterator

import pytest

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.map.graders import read_graders, rubric_grader
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.evals.read.paths import Ground
from tests.unit.formats.evals.schema_answers import CORPUS

LISTS = ("assert", "assertions", "evaluators", "rubrics")
REFUSED = {
    "trace-file-demo.eval.yaml": ["input: unknown key", "output: unknown key"],
    "graders__custom-assertions__02.yaml": ["unknown evaluator 'min-words'"],
    "docs__graders__custom-assertions__02.yaml": ["unknown evaluator 'word-count'"],
    "deterministic.eval.yaml": [
        "no regular expression as JavaScript knows them",
        "must be at least 0, not -1",
        "unknown evaluator 'no-such-type'",
        "the key 'value' is missing",
    ],
    "rubric.eval.yaml": ["the score ranges must start at 0, not at 5"],
}
"""What is wrong in files of the corpus: AgentV passes over these keys and graders, or scores them 0."""
ABSENT = ("no file ", "a prompt that a program makes", "passgate has no ", "a proxy for the model calls")

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of eval files is not here")


def lists_in(node: Node) -> Iterator[Node]:
    """The outermost lists of graders."""
    if isinstance(node.value, list):
        for item in node.items():
            yield from lists_in(item)
    elif isinstance(node.value, dict):
        for key in node.value:
            child = node.child(key)
            if key in LISTS and isinstance(child.value, list) and "type" not in node.value:
                yield child
            else:
                yield from lists_in(child)


def read(node: Node, ground: Ground, complaints: Complaints) -> int:
    """How many graders a list is read into; no fewer than it says, unless there is something wrong with it."""
    sources = Sources(ground, complaints, lambda _: None)
    before = len(complaints.problems)
    if node.path[-1] == "rubrics":
        return int(rubric_grader(node, sources) is not None)
    graders = read_graders(node, sources)
    texts = sum(isinstance(value, str) for value in node.value)
    if len(complaints.problems) == before:
        assert len(graders) == len(node.value) - max(texts - 1, 0)
    return len(graders)


def parts() -> list[str]:
    if not CORPUS.is_dir():
        return []
    folders = [*CORPUS.glob("agentv/*"), *CORPUS.glob("agentv-docs-*"), *CORPUS.glob("agentevals*")]
    return [str(folder.relative_to(CORPUS)) for folder in sorted([*folders, *CORPUS.glob("probes*")])]


@pytest.mark.parametrize("part", parts())
def test_every_list_is_read_and_only_mistakes_are_refused(part: str) -> None:
    total = 0
    for file in sorted((CORPUS / part).rglob("*.y*ml")):
        document, complaints = read_document(file, file.name), Complaints()
        ground = Ground(file.parent, CORPUS / part)
        total += sum(read(node, ground, complaints) for node in lists_in(Node(document.data, document, file.parent)))
        expected = REFUSED.get(file.name, [])
        for problem in complaints.problems:
            assert any(text in f"{problem.path}: {problem.message}" for text in expected), str(problem)
        for problem in complaints.cannot_run:
            assert problem.message.startswith(ABSENT), str(problem)
    assert total > 0
