"""The form of a grader: its names, its keys and how they become options; and how options become models."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.node import Keys, Node, Parts
from passgate.tasks.formats.evals.sources import Sources
from passgate.tasks.formats.schema_check import Kind, nearest, shown
from passgate.tasks.model.assertions import GraderOptions
from passgate.tasks.model.graders import Grader

TEXT, NUMBER, WHOLE = (Kind.TEXT,), (Kind.NUMBER,), (Kind.WHOLE,)
TRUTH, LIST, MAPPING = (Kind.TRUTH,), (Kind.LIST,), (Kind.MAPPING,)

Model = TypeVar("Model", bound=BaseModel)
# The options of a grader by their names in its model; with a `type` when it differs from that of the form.
Options = dict[str, Node]
Read = Callable[[Parts, Sources], Options]
MODELS: dict[str, type[GraderOptions]] = {
    name: model for model in get_args(get_args(Grader)[0]) for name in get_args(model.model_fields["type"].annotation)
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


@dataclass(frozen=True)
class Form:
    """One type of grader as eval files write it."""

    names: tuple[str, ...]  # in snake_case; kebab-case need not be said
    keys: Keys
    # Turns the keys into options; without it the options are the keys that the model knows.
    read: Read | None = None
    agentevals: tuple[str, ...] = ()  # those of the names that AgentEvals has for it
    later: tuple[str, ...] = ()  # those of the names that only the latest AgentV has for it
    model_type: str = ""  # the `type` of its model, where it is not the first of the names
    further: bool = False  # whether it takes any other keys

    @property
    def model(self) -> type[GraderOptions]:
        return MODELS[self.model_type or self.names[0]]

    def options(self, parts: Parts, sources: Sources) -> Options:
        """The options of a grader; what is wrong with them goes to the complaints."""
        options = {"type": parts.node.with_value(self.model_type or self.names[0])}
        if self.read is not None:
            return options | self.read(parts, sources)
        return parts.only(*self.model.model_fields) | options


def build(model: type[Model], parts: Mapping[str, Node], node: Node, sources: Sources) -> Model | None:
    """The model with the parts as fields. `None` when it refuses them; the complaints say why, at a part or `node`."""
    try:
        return model.model_validate({name: part.value for name, part in parts.items()})
    except ValidationError as error:
        problems: list[Problem] = []
        for _, of_field in groupby(error.errors(), key=lambda each: each["loc"][:1]):
            found = list(of_field)
            # A value may have several forms: report only what is wrong with the form that it has.
            telling = [each for each in found if not each["type"].endswith("_type")] or found[:1]
            problems += [_problem(each, parts, node) for each in telling]
        sources.complaints.problems += dict.fromkeys(problems)
        return None


def _problem(error: Any, parts: Mapping[str, Node], node: Node) -> Problem:
    location = error["loc"]
    if not location:
        return node.problem(_message(error))
    part = parts.get(str(location[0]))
    if part is None:
        return node.problem(f"the key {location[0]!r} is missing")
    for step in location[1:]:
        # Some of pydantic's steps name a form of the value, not a place in it.
        known: Any = part.value if isinstance(part.value, Mapping) else ()
        if isinstance(part.value, list) and isinstance(step, int):
            known = range(len(part.value))
        if step in known:
            part = part.child(step)
    return part.problem(_message(error))


def _message(error: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"must be {words} {context[bound]:g}, not {shown(error['input'])}"
    if kind in {"string_too_short", "too_short"}:
        return "must not be empty"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        return f"{shown(error['input'])} is not one of the allowed values{nearest(error['input'], known)}"
    if kind == "value_error":
        return str(context["error"])
    return f"{error['msg']}, not {shown(error['input'])}"
