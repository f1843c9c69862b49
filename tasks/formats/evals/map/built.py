"""Models made of the parts of eval files: what a model refuses is told at the place that the value comes from."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.read.node import Complaints, Node
from passgate.tasks.formats.schema_check import nearest, shown

Model = TypeVar("Model", bound=BaseModel)

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_EMPTY = frozenset({"string_too_short", "too_short"})


def build(model: type[Model], parts: Mapping[str, Node], node: Node, complaints: Complaints) -> Model | None:
    """The model whose fields are the parts; `None` when it refuses them, and then the complaints say why.

    `node` is where problems are told that belong to no part.
    """
    try:
        return model.model_validate({name: part.value for name, part in parts.items()})
    except ValidationError as error:
        problems = [_problem(found, parts, node) for found in _telling(error.errors())]
        complaints.problems += dict.fromkeys(problems)
        return None


def _telling(errors: Iterable[Any]) -> list[Any]:
    """Of a value with several possible forms, what is wrong with the form that it has."""
    by_field: dict[Any, list[Any]] = {}
    for error in errors:
        by_field.setdefault(error["loc"][:1], []).append(error)
    told: list[Any] = []
    for found in by_field.values():
        exact = [error for error in found if not error["type"].endswith("_type")]
        told += exact or found[:1]
    return told


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
