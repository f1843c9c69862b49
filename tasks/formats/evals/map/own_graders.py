"""What a test is graded by: its rubric, its graders, those of its file, or a judge that is told the criteria."""

from dataclasses import dataclass

from passgate.tasks.formats.evals.map.filling import Variables
from passgate.tasks.formats.evals.map.graders import read_graders, rubric_grader
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Node, agreed
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.graders import Grader

NAMES = ("assert", "assertions", "evaluators")
DEFAULT = LlmGrader(type="llm_grader")
"""Grades a test that has criteria or an expected answer and no grader."""


@dataclass(frozen=True)
class Graders:
    """The graders that a test or a file says."""

    rubric: tuple[Grader, ...] = ()
    listed: tuple[Grader, ...] = ()
    said: bool = False
    """Whether it says any, be they right or wrong."""

    @property
    def all(self) -> tuple[Grader, ...]:
        return (*self.rubric, *self.listed)


def read_own_graders(node: Node, variables: Variables, sources: Sources) -> Graders:
    """The graders of a test or a file. Under several names and in several places they have to be the same."""
    rubrics = node.get("rubrics")
    rubric = rubric_grader(variables.filled_in_graders(rubrics), sources) if rubrics is not None else None
    listed = agreed(_lists(node), sources.complaints)
    graders = () if listed is None else read_list(listed, variables, sources)
    return Graders((rubric,) if rubric else (), graders, said=rubrics is not None or bool(listed and listed.value))


def _lists(node: Node) -> list[Node]:
    places = (node, node.get("execution"))
    return [
        said
        for place in places
        if place is not None and isinstance(place.value, dict)
        for name in NAMES
        if name in place.value and (said := place.get(name)) is not None
    ]


def read_list(listed: Node, variables: Variables, sources: Sources) -> tuple[Grader, ...]:
    """A list of graders with the variables of a test in it."""
    return read_graders(variables.filled_in_graders(listed), sources, one_judge=variables.is_template)
