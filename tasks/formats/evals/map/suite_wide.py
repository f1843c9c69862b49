"""The graders of a test or a file, and what an eval file says of all its tests, read once for all of them."""

import json
from dataclasses import dataclass, replace

from passgate.tasks.formats.evals.map.graders import read_graders, rubric_grader
from passgate.tasks.formats.evals.map.inputs import Variables
from passgate.tasks.formats.evals.map.messages import read_messages
from passgate.tasks.formats.evals.map.runtime import check_runtime
from passgate.tasks.formats.evals.map.sources import Sources, present
from passgate.tasks.formats.evals.read.node import Complaints, Node, agreed
from passgate.tasks.formats.rules import Messages
from passgate.tasks.formats.schema_check import Kind, shown
from passgate.tasks.model.graders import Grader

_LISTS = ("assert", "assertions", "evaluators")
_NOT_HAD = {
    "preprocessors": "passgate runs no preprocessors of files",
    "extensions": "passgate runs no extensions of other tools",
}
_KINDS: dict[str, tuple[Kind, ...]] = {
    "suite": (Kind.TEXT,),
    "description": (Kind.TEXT,),
    "metadata": (Kind.MAPPING,),
    "governance": (Kind.MAPPING,),
    "tags": (Kind.LIST, Kind.MAPPING, Kind.TEXT),
    "input_files": (Kind.LIST, Kind.TEXT),
    "threshold": (Kind.NUMBER,),
    "timeout_seconds": (Kind.NUMBER,),
    "budget_usd": (Kind.NUMBER,),
}
COMPATIBLE = "agentv"


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


@dataclass(frozen=True)
class SuiteWide:
    """The parts of a file that every test of it has, with what there is to complain of them."""

    messages: Messages
    graders: Graders
    has_places: bool
    """Whether a test's variables change it."""
    complaints: Complaints


def read_own_graders(node: Node, variables: Variables, sources: Sources) -> Graders:
    """The graders of a test or a file. Under several names and in several places they have to be the same."""
    rubrics = node.get("rubrics")
    rubric = rubric_grader(variables.filled_in_graders(rubrics), sources) if rubrics is not None else None
    listed = agreed(_lists(node), sources.complaints)
    graders = () if listed is None else read_list(listed, variables, sources)
    return Graders((rubric,) if rubric else (), graders, said=rubrics is not None or bool(listed and listed.value))


def _lists(node: Node) -> tuple[Node, ...]:
    places = (place for place in present((node, node.get("execution"))) if isinstance(place.value, dict))
    return present(place.get(name) for place in places for name in _LISTS)


def read_list(listed: Node, variables: Variables, sources: Sources) -> tuple[Grader, ...]:
    """A list of graders with the variables of a test in it."""
    return read_graders(variables.filled_in_graders(listed), sources, one_judge=variables.is_template)


def read_suite_wide(root: Node, variables: Variables, sources: Sources) -> SuiteWide:
    """The suite-wide parts of an eval file, with the variables of a test where there are any."""
    own = replace(sources, complaints=Complaints())
    _check(root, own)
    said = root.get("input")
    messages = () if said is None else read_messages(variables.filled(said, own), own)
    variable = {key: root.value.get(key) for key in ("input", "rubrics", "execution", *_LISTS)}
    has_places = "{{" in json.dumps(variable, default=str)
    return SuiteWide(messages, read_own_graders(root, variables, own), has_places, own.complaints)


def _check(root: Node, sources: Sources) -> None:
    for key, kinds in _KINDS.items():
        said = root.get(key)
        if said is not None:
            sources.refuses_kind(said, kinds)
    for key, message in _NOT_HAD.items():
        said = root.get(key)
        if said is not None and said.value:
            sources.cannot_run(said, message, at_key=True)
    compat = root.get("compat")
    if compat is not None and compat.value != COMPATIBLE:
        sources.refuse(compat, f"the only value is {COMPATIBLE}, not {shown(compat.value)}")
    check_runtime(root, sources)
