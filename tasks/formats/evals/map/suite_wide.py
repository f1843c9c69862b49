"""What an eval file says of all its tests, read once for all of them."""

import json
from dataclasses import dataclass, replace

from passgate.tasks.formats.evals.map.filling import Variables
from passgate.tasks.formats.evals.map.inputs import read_suite_input
from passgate.tasks.formats.evals.map.own_graders import NAMES, Graders, read_own_graders
from passgate.tasks.formats.evals.map.runtime import check_runtime
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.rules import Messages
from passgate.tasks.formats.schema_check import Kind, shown, wrong_kind

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
class SuiteWide:
    """The parts of a file that every test of it has, with what there is to complain of them."""

    messages: Messages
    graders: Graders
    has_places: bool
    """Whether a test's variables change it."""
    complaints: Complaints


def read_suite_wide(root: Node, variables: Variables, sources: Sources) -> SuiteWide:
    """The suite-wide parts of an eval file, with the variables of a test where there are any."""
    own = replace(sources, complaints=Complaints())
    _check(root, own)
    messages, graders = read_suite_input(root, variables, own), read_own_graders(root, variables, own)
    return SuiteWide(messages, graders, _has_places(root), own.complaints)


def _has_places(root: Node) -> bool:
    said = {key: root.value.get(key) for key in ("input", "rubrics", "execution", *NAMES)}
    return "{{" in json.dumps(said, default=str)


def _check(root: Node, sources: Sources) -> None:
    for key, kinds in _KINDS.items():
        said = root.get(key)
        message = wrong_kind(said.value, kinds) if said is not None else None
        if said is not None and message is not None:
            sources.refuse(said, message)
    for key, message in _NOT_HAD.items():
        said = root.get(key)
        if said is not None and said.value:
            sources.cannot_run(said, message, at_key=True)
    compat = root.get("compat")
    if compat is not None and compat.value != COMPATIBLE:
        sources.refuse(compat, f"the only value is {COMPATIBLE}, not {shown(compat.value)}")
    check_runtime(root, sources)
