"""What only passgate has in eval files: the graders of its task files and the key `passgate` of a test."""

from functools import partial
from typing import Annotated, Any

from pydantic import Field

from passgate.tasks.formats.evals.forms import MODELS, Form, Options, words_for
from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.sources import Sources
from passgate.tasks.formats.evals.words import Parts, build, problem_in, take_apart
from passgate.tasks.formats.rules import own_findings
from passgate.tasks.formats.serialise import Serialisation, serialised_model
from passgate.tasks.model.base import Frozen, Text
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.task import Environment, GateSelection, Reference, Scoring, TaskFile, TrackedMetrics, Trials

NAMESPACE = "passgate:"
_THEIRS_TOO = "llm_rubric"  # without the namespace it is the grader of AgentV
_NOT_THEIRS = ("required", "min_score", "negate")  # options that only graders of eval files have
_PATHS = {"tests", "configuration", "rubric"}
_TEXT_FILES = (".md", ".txt")
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


def _form(name: str) -> Form:
    """Return the form of a grader of task files: its options have the same names."""
    type_name = name.removeprefix(NAMESPACE)
    return Form((name,), None, partial(_options, type_name), model_type=type_name)


def _options(type_name: str, parts: Parts, sources: Sources) -> Options:
    model = MODELS[type_name]
    for name, asked in parts.only(*_NOT_THEIRS).items():
        if name not in model.model_fields:
            sources.refuse(asked, f"{type_name} passes or fails; it has no `{name}`", at_key=True)
    if str(parts.value("type")).startswith(("not-", "not_")):
        sources.refuse(parts.values["type"], f"{type_name} passes or fails; there is no `not` of it")
    options = {name: _placed(name, part, sources) for name, part in parts.only(*model.model_fields).items()}
    return {**options, "type": parts.node.with_value(type_name)}


def _placed(name: str, part: Node, sources: Sources) -> Node:
    """Return an option with paths relative to the suites folder, as tasks have them, instead of the folder of
    the file.
    """

    def place(path: Any) -> Any:
        is_path = isinstance(path, str) and (name != "rubric" or path.endswith(_TEXT_FILES))
        # The digests of graders hold the slash at the end of a path too.
        slash = "/" if is_path and path.endswith("/") else ""
        return sources.ground.relative(part.folder / path) + slash if is_path else path

    if name not in _PATHS:
        return part
    if isinstance(part.value, list):
        return part.with_value([place(item) for item in part.value])
    if isinstance(part.value, dict):
        return part.with_value({key: place(item) for key, item in part.value.items()})
    return part.with_value(place(part.value))


def with_native(task: TaskFile, test: Parts, sources: Sources) -> TaskFile:
    """Return a task with what the key `passgate` of its test says; what is wrong with it goes to the complaints."""
    said = test.get(KEY)
    if said is None or not isinstance(said.value, dict):
        return task
    parts = take_apart(said, _NATIVE, sources.complaints)
    native = build(_Native, parts.values, said, sources.complaints) if parts.sound else None
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
    _form(f"{NAMESPACE}{name}" if name == _THEIRS_TOO else name)
    for name, model in MODELS.items()
    if not issubclass(model, AssertionOptions)
)
