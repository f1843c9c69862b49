"""The form of a grader: its names, its keys and how they become options of its model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, get_args

from pydantic import BaseModel, create_model

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.sources import Sources
from passgate.tasks.formats.evals.words import EvalWords, Parts, word
from passgate.tasks.model.base import Amount, Share, Text
from passgate.tasks.model.grader_options import AssertionOptions, GraderOptions
from passgate.tasks.model.graders import Grader

# The options of a grader by their names in its model; with a `type` when it differs from that of the form.
Options = dict[str, Node]
Read = Callable[[Parts, Sources], Options]
MODELS: dict[str, type[GraderOptions]] = {
    name: model for model in get_args(get_args(Grader)[0]) for name in get_args(model.model_fields["type"].annotation)
}


class GraderWords(EvalWords):
    """What every grader has."""

    type: str = word("What grades.", needed=True)
    name: Text = word("Its name in reports.")
    metric: Text = word("Its name, where it has no `name`.")
    id: Text = word("Its name, where it has neither `name` nor `metric`.")
    weight: Amount = word("Its part in the score.")
    required: bool | Share = word("The trial fails without it. A number is the least score that passes too.")
    min_score: Share = word("The least score that passes it, instead of 0.8.")
    negate: bool = word("Its score is one less what it would be: what must not be so.")


class DescribedWords(GraderWords):
    """What every grader has but those that take any other key."""

    description: str = word("What it is there for, for readers.")


@dataclass(frozen=True)
class Form:
    """One type of grader as eval files write it."""

    names: tuple[str, ...]  # in snake_case; kebab-case need not be given
    own: type[EvalWords] | None = None  # its keys, where they are not the options of its model
    # Turns the keys into options; without it the options are the keys that the model knows.
    read: Read | None = None
    agentevals: tuple[str, ...] = ()  # those of the names that AgentEvals has for it
    model_type: str = ""  # the `type` of its model, where it is not the first of the names
    further: bool = False  # whether it takes any other keys
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # other names of options

    @property
    def model(self) -> type[GraderOptions]:
        return MODELS[self.model_type or self.names[0]]

    @cached_property
    def words(self) -> type[EvalWords]:
        """The keys of the form."""
        return self.own or words_for(self.model, DescribedWords, spellings=self.spellings)

    def options(self, parts: Parts, sources: Sources) -> Options:
        """Return the options of a grader; what is wrong with them goes to the complaints."""
        options = {"type": parts.node.with_value(self.model_type or self.names[0])}
        if self.read is not None:
            return options | self.read(parts, sources)
        return parts.only(*self.model.model_fields) | options


def words_for(
    model: type[BaseModel],
    base: type[EvalWords] = EvalWords,
    spellings: Mapping[str, tuple[str, ...]] | None = None,
    own: Mapping[str, Any] | None = None,
) -> type[EvalWords]:
    """Return the fields of a model as keys. `spellings` are further names, `own` types that differ in eval files."""
    known: set[str] = {"type"} if issubclass(model, GraderOptions) else set()
    if issubclass(model, GraderOptions):
        known |= {*(AssertionOptions if issubclass(model, AssertionOptions) else GraderOptions).model_fields}
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if name not in known:
            annotation: Any = info.annotation
            for constraint in info.metadata:
                annotation = Annotated[annotation, constraint]
            names = (name, *(spellings or {}).get(name, ()))
            fields[name] = (annotation, word("", *names, needed=info.is_required()))
    fields |= {name: (annotation, fields[name][1]) for name, annotation in (own or {}).items() if name in fields}
    fields |= {name: annotation for name, annotation in (own or {}).items() if isinstance(annotation, tuple)}
    return create_model(model.__name__, __base__=base, **fields)


def value_words(annotation: Any, says: str, **more: Any) -> type[EvalWords]:
    """Return the keys of a grader that has a `value` of a type."""
    return create_model("Value", __base__=DescribedWords, value=(annotation, word(says, needed=True)), **more)
