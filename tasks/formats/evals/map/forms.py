"""What a form of a grader is: its names, its keys and how they become options; and how models are made of options."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Keys, Node, Parts
from passgate.tasks.formats.findings import Finding
from passgate.tasks.formats.schema_check import Kind, nearest, shown
from passgate.tasks.model.assertions import GraderOptions
from passgate.tasks.model.graders import Grader

TEXT, NUMBER, WHOLE = (Kind.TEXT,), (Kind.NUMBER,), (Kind.WHOLE,)
TRUTH, LIST, MAPPING = (Kind.TRUTH,), (Kind.LIST,), (Kind.MAPPING,)

Model = TypeVar("Model", bound=BaseModel)
Options = dict[str, Node]
"""The options of a grader by their names in its model; with a `type` where that is not the one of the form."""

MODELS: dict[str, type[GraderOptions]] = {
    name: model for model in get_args(get_args(Grader)[0]) for name in get_args(model.model_fields["type"].annotation)
}
"""The models of graders by their types."""

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_EMPTY = frozenset({"string_too_short", "too_short"})


@dataclass(frozen=True)
class Form:
    """One type of grader as eval files write it."""

    names: tuple[str, ...]
    """In snake_case; kebab-case need not be said."""
    keys: Keys
    read: Callable[[Parts, Sources], Options] | None = None
    """What the keys are as options; without it those keys that the model knows are its options."""
    agentevals: tuple[str, ...] = ()
    """Those of the names that AgentEvals has for it."""
    later: tuple[str, ...] = ()
    """Those of the names that only the latest AgentV has for it."""
    model_type: str = ""
    """The `type` of its model, where it is not the first of the names."""
    further: bool = False
    """Whether it takes any other keys."""

    @property
    def type_name(self) -> str:
        return self.model_type or self.names[0]

    @property
    def model(self) -> type[GraderOptions]:
        return MODELS[self.type_name]

    def options(self, parts: Parts, sources: Sources) -> Options:
        """The options of a grader; what is wrong with them goes to the complaints."""
        options = {"type": parts.node.with_value(self.type_name)}
        if self.read is not None:
            return options | self.read(parts, sources)
        return parts.only(*self.model.model_fields) | options


def read_items(parts: Parts, key: str, read: Callable[[Node], Any]) -> Options:
    """The items of a list as the option of the same name; without it where one of them cannot be read."""
    listed = parts.get(key)
    if listed is None or not isinstance(listed.value, list):
        return {}
    items = [read(item) for item in listed.items()]
    return {} if None in items else {key: listed.with_value(items)}


def refuse_found(findings: Iterable[Finding], parts: Parts, sources: Sources) -> None:
    """Note what is found at paths of the options as problems, where the part of the first step stands in the file."""
    for path, message in findings:
        part = parts.get(str(path[0])) if path else None
        place = parts.node.path if part is None else (*part.path, *path[1:])
        sources.complaints.problems.append(parts.node.places.problem(place, message))


def build(model: type[Model], parts: Mapping[str, Node], node: Node, sources: Sources) -> Model | None:
    """The model whose fields are the parts; `None` when it refuses them, and then the complaints say why.

    `node` is where problems are told that belong to no part.
    """
    try:
        return model.model_validate({name: part.value for name, part in parts.items()})
    except ValidationError as error:
        problems = [_problem(found, parts, node) for found in _telling(error.errors())]
        sources.complaints.problems += dict.fromkeys(problems)
        return None


def _telling(errors: Iterable[Any]) -> Iterator[Any]:
    """Of a value with several possible forms, what is wrong with the form that it has."""
    for _, of_field in groupby(errors, key=lambda error: error["loc"][:1]):
        found = list(of_field)
        yield from [error for error in found if not error["type"].endswith("_type")] or found[:1]


def _problem(error: Any, parts: Mapping[str, Node], node: Node) -> Problem:
    location = error["loc"]
    if not location:
        return node.problem(_message(error))
    part = parts.get(str(location[0]))
    if part is None:
        return node.problem(f"the key {location[0]!r} is missing")
    for step in location[1:]:
        if _leads_on(part.value, step):
            part = part.child(step)
    return part.problem(_message(error))


def _leads_on(value: Any, step: Any) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)


def _message(error: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"must be {words} {context[bound]:g}, not {shown(error['input'])}"
    if kind in _EMPTY:
        return "must not be empty"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"])
        return f"{shown(error['input'])} is not one of the allowed values{nearest(error['input'], known)}"
    if kind == "value_error":
        return str(context["error"])
    return f"{error['msg']}, not {shown(error['input'])}"
