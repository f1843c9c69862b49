"""What a form of a grader is: the names that it goes by, the keys that it has, and how they become options."""

from collections.abc import Callable
from dataclasses import dataclass

from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Keys, Node, Parts
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.assertions import GraderOptions

TEXT, NUMBER, WHOLE = (Kind.TEXT,), (Kind.NUMBER,), (Kind.WHOLE,)
TRUTH, LIST, MAPPING = (Kind.TRUTH,), (Kind.LIST,), (Kind.MAPPING,)


@dataclass(frozen=True)
class Draft:
    """A grader that is not made yet: its model, the model's `type` and its options by their names in the model."""

    model: type[GraderOptions]
    type_name: str
    options: dict[str, Node]


Drafting = Callable[[Parts, Reading], Draft]


@dataclass(frozen=True)
class Form:
    """One type of grader as eval files write it."""

    names: tuple[str, ...]
    """In snake_case; kebab-case need not be said."""
    model: type[GraderOptions]
    keys: Keys
    draft: Drafting
    agentevals: tuple[str, ...] = ()
    """Those of the names that AgentEvals has for it."""
    later: tuple[str, ...] = ()
    """Those of the names that only the latest AgentV has for it."""
    further: bool = False
    """Whether it takes any other keys."""


def plain(model: type[GraderOptions], type_name: str) -> Drafting:
    """How a grader is drafted whose keys are the options of its model."""

    def draft(parts: Parts, reading: Reading) -> Draft:
        options = {name: part for name, part in parts.values.items() if name in model.model_fields}
        return Draft(model, type_name, options)

    return draft
