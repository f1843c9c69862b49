"""The form of a grader: its names, its keys and how they become options; and what only passgate has in eval files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.words import EvalWords, Parts, Sources, build, problem_in, take_apart, word
from passgate.tasks.formats.rules import own_findings
from passgate.tasks.formats.serialise import Serialisation, serialised_model
from passgate.tasks.model.base import Amount, Frozen, Share, Text
from passgate.tasks.model.grader_options import AssertionOptions, GraderOptions
from passgate.tasks.model.graders import GRADER_TYPES, Grader
from passgate.tasks.model.task import Environment, GateSelection, Reference, Scoring, TaskFile, TrackedMetrics, Trials

# The options of a grader by their names in its model; with a `type` when it differs from that of the form.
Options = dict[str, Node]
Read = Callable[[Parts, Sources], Options]


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
        return GRADER_TYPES[self.model_type or self.names[0]]

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
    spellings: Mapping[str, tuple[str, ...]] = {},
    own: Mapping[str, Any] = {},
    **more: Any,
) -> type[EvalWords]:
    """Return the fields of a model as keys. `spellings` are further names, `own` types that differ in eval files, and
    `more` are keys that the model does not have.
    """
    fields: dict[str, Any] = {}
    known: set[str] = set()
    if issubclass(model, GraderOptions):
        known = {"type", *(AssertionOptions if issubclass(model, AssertionOptions) else GraderOptions).model_fields}
    for name, info in model.model_fields.items():
        if name not in known:
            annotation: Any = info.annotation
            for constraint in info.metadata:
                annotation = Annotated[annotation, constraint]
            key = word("", name, *spellings.get(name, ()), needed=info.is_required())
            fields[name] = (own.get(name, annotation), key)
    return create_model(model.__name__, __base__=base, **fields, **more)


def value_words(annotation: Any, says: str, **more: Any) -> type[EvalWords]:
    """Return the keys of a grader that has a `value` of a type."""
    return create_model("Value", __base__=DescribedWords, value=(annotation, word(says, needed=True)), **more)


NAMESPACE = "passgate:"
_THEIRS_TOO = "llm_rubric"  # without the namespace it is the grader of AgentV
_NOT_THEIRS = ("required", "min_score", "negate")  # options that only graders of eval files have
KEY = "passgate"


class _Native(Frozen):
    """The parts of a task that the key can give."""

    inputs: dict[str, Any] = {}
    environment: Environment = Environment()
    trials: Trials = Trials()
    tracked_metrics: Annotated[tuple[Text | TrackedMetrics, ...], Field(min_length=1)] | None = None
    gates: GateSelection = GateSelection()
    reference: Reference | None = None
    scoring: Scoring = Scoring()


_NATIVE = words_for(_Native)


def _options(type_name: str, parts: Parts, sources: Sources) -> Options:
    """Return the options of a grader of task files, which have the same names."""
    model = GRADER_TYPES[type_name]
    for name, asked in parts.only(*_NOT_THEIRS).items():
        if name not in model.model_fields:
            sources.refuse(asked, f"{type_name} passes or fails; it has no `{name}`", at_key=True)
    if str(parts.value("type")).startswith(("not-", "not_")):
        sources.refuse(parts.values["type"], f"{type_name} passes or fails; there is no `not` of it")
    return {**parts.only(*model.model_fields), "type": parts.node.with_value(type_name)}


def place_paths(grader: Grader, folder: Path, sources: Sources) -> Grader:
    """Return a grader with paths relative to the suites folder, as tasks have them, instead of the file's own."""

    def place(path: str) -> str:
        # The digests of graders hold the slash at the end of a path too.
        return sources.ground.relative(folder / path) + ("/" if path.endswith("/") else "")

    return type(grader).model_validate(serialised_model(grader, Serialisation(place)))


def add_native(task: TaskFile, test: Parts, sources: Sources) -> TaskFile:
    """Return a task with what the key `passgate` of its test says; what is wrong with it goes to the complaints."""
    said = test.get(KEY)
    if said is None or not isinstance(said.value, dict):
        return task
    parts = take_apart(said, _NATIVE, sources)
    native = build(_Native, parts.values, said, sources) if parts.sound else None
    if native is None:
        return task
    # Paths in the file are relative to its folder, paths in tasks to the suites folder.
    located = Serialisation(lambda path: sources.ground.relative(said.folder / path))
    native = _Native.model_validate(serialised_model(native, located))
    whole = task.model_copy(update=_fields(task, native, parts))
    found = own_findings(whole, sources.ground.suites_folder)
    sources.complaints.problems += [problem_in(said, parts.values, path, message) for path, message in found]
    return whole


def _fields(task: TaskFile, native: _Native, parts: Parts) -> dict[str, Any]:
    """Return the fields that the key sets, merged with what the task has."""
    known, own = task.environment, native.environment
    # What the test says under the keys of other tools wins.
    environment = {
        "budgets": known.budgets.over(own.budgets),
        "workspace": known.workspace or own.workspace,
        "user": known.user or own.user,
    }
    over: dict[str, Any] = {
        "inputs": {**native.inputs, **task.inputs},
        "environment": own.model_copy(update=environment),
        "trials": Trials(k=task.trials.k or native.trials.k, metric=task.trials.metric or native.trials.metric),
        "tracked_metrics": native.tracked_metrics,
        "gates": native.gates,
        "reference": native.reference,
        "scoring": task.scoring.model_copy(update=native.scoring.model_dump(include={*parts.value("scoring", {})})),
    }
    return {name: value for name, value in over.items() if name in parts.values}


NATIVE_FORMS = tuple(
    Form((f"{NAMESPACE}{name}" if name == _THEIRS_TOO else name,), None, partial(_options, name), model_type=name)
    for name, model in GRADER_TYPES.items()
    if not issubclass(model, AssertionOptions)
)
