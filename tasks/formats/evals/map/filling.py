"""The variables of a test, filled into what it says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.documents import FILE_SCHEME
from passgate.tasks.formats.evals.read.node import Node, Parts
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.formats.evals.read.variables import fill_variables, render_template

_ROUNDS = 3
"""How deep variables may stand in variables."""
JUDGES_NAMES = frozenset(
    (
        *("input", "output", "expected_output", "criteria", "question", "answer", "reference_answer", "note"),
        *("metadata", "metadata_json", "rubrics", "rubrics_json", "file_changes", "tool_calls", "candidate_answer"),
        *("input_messages", "output_messages", "expected_messages", "evaluator_results_json"),
    )
)
"""Names that mean something in the prompts of judges."""


@dataclass(frozen=True)
class Variables:
    """What `{{ name }}` stands for in one test."""

    values: dict[str, Any]
    is_template: bool = False
    """Whether the texts of the test are templates, in which what is missing is empty; else it is left as it stands."""

    def filled(self, node: Node, sources: Sources) -> Node:
        """A value with the variables in it."""
        if self.is_template:
            return node.with_value(_rendered(node.value, self._names(), node, sources))
        return node.with_value(fill_variables(node.value, self.values)) if self.values else node

    def filled_in_graders(self, node: Node) -> Node:
        """Graders with the variables in them, where the texts of the test are templates; what a judge is told stays."""
        if not self.is_template:
            return node
        own = {name: value for name, value in self.values.items() if name not in JUDGES_NAMES}
        return node.with_value(fill_variables(node.value, {**own, "vars": self.values}))

    def _names(self) -> dict[str, Any]:
        return {"vars": self.values, **self.values}


NONE = Variables({})


def variables_of(test: Parts, raw: RawTest, sources: Sources) -> Variables:
    """The variables of a test. In the dialect with prompts they may hold each other, and come from files."""
    said = test.get("vars")
    if said is None or not isinstance(said.value, dict):
        return Variables({}, is_template=raw.prompt is not None)
    if raw.prompt is None and ("input" not in said.value or test.get("input") is not None):
        return Variables(said.value)
    values = {key: _from_file(said.child(key), sources) for key in said.value}
    for _ in range(_ROUNDS):
        names = {"vars": values, **values}
        values = {key: _rendered(value, names, said.child(key), sources) for key, value in values.items()}
    return Variables(values, is_template=True)


def _from_file(node: Node, sources: Sources) -> Any:
    """A variable, which may be what a file holds."""
    if not isinstance(node.value, str) or not node.value.startswith(FILE_SCHEME):
        return node.value
    return sources.text(node, node.value.removeprefix(FILE_SCHEME))[1] or ""


def _rendered(value: Any, names: Mapping[str, Any], node: Node, sources: Sources) -> Any:
    """A value with its texts rendered. A text that is one placeholder becomes the variable's value with its type."""
    if isinstance(value, list):
        return [_rendered(item, names, node, sources) for item in value]
    if isinstance(value, dict):
        return {key: _rendered(item, names, node, sources) for key, item in value.items()}
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = fill_variables(value, names) if value.strip().startswith("{{") else value
    if not isinstance(whole, str):
        return whole
    try:
        return render_template(value, names)
    except ValueError as error:
        sources.refuse(node, str(error))
        return value
