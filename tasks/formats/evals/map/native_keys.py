"""The key `passgate` of a test: what only passgate knows of it, as its task files say it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.evals.map.built import build
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, Parts, take_apart
from passgate.tasks.formats.evals.write.serialise import Serialisation, serialised_model
from passgate.tasks.formats.rules import own_findings
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.base import Frozen, Text
from passgate.tasks.model.task import (
    Budgets,
    Environment,
    GateSelection,
    Reference,
    Scoring,
    TaskFile,
    TrackedMetrics,
    Trials,
)

KEY = "passgate"
NATIVE_KEYS: Keys = {
    "inputs": Key((Kind.MAPPING,), says="What the agent is given beside `input`."),
    "environment": Key((Kind.MAPPING,), says="Sandbox, reset, budgets, network, tools, replay, user."),
    "trials": Key((Kind.MAPPING,), says="k and metric."),
    "tracked_metrics": Key((Kind.LIST,), says="Metrics shown for this test."),
    "gates": Key((Kind.MAPPING,), says="Whether a gate takes this test."),
    "reference": Key((Kind.MAPPING,), says="A solution that must pass, and others that must fail."),
    "scoring": Key((Kind.MAPPING,), says="`rule: all`: every grader must pass."),
}


class _Native(Frozen):
    """The parts of a task that the key can say."""

    inputs: dict[str, Any] = {}
    environment: Environment = Environment()
    trials: Trials = Trials()
    tracked_metrics: Annotated[tuple[Text | TrackedMetrics, ...], Field(min_length=1)] | None = None
    gates: GateSelection = GateSelection()
    reference: Reference | None = None
    scoring: Scoring = Scoring()


def with_native(task: TaskFile, test: Parts, sources: Sources) -> TaskFile:
    """A task with what the key `passgate` of its test says; what is wrong with it goes to the complaints."""
    said = test.get(KEY)
    if said is None or not isinstance(said.value, dict):
        return task
    parts = take_apart(said, NATIVE_KEYS, sources.complaints)
    native = build(_Native, parts.values, said, sources.complaints) if parts.sound else None
    if native is None:
        return task
    native = _located(native, said, sources)
    whole = task.model_copy(update=_fields(task, native, parts))
    for path, message in own_findings(whole, sources.ground.suites_folder):
        sources.complaints.problems.append(_problem(said, parts, path, message))
    return whole


def _located(native: _Native, said: Node, sources: Sources) -> _Native:
    """The same with its paths as tasks hold them: relative to the suites folder, not to the folder of the file."""
    saying = Serialisation(lambda path: sources.ground.relative(said.folder / path))
    return _Native.model_validate(serialised_model(native, saying))


def _fields(task: TaskFile, native: _Native, parts: Parts) -> Mapping[str, Any]:
    """The fields that are said, over what the task has of them."""
    over: dict[str, Any] = {
        "inputs": {**native.inputs, **task.inputs},
        "environment": _environment(task.environment, native.environment),
        "trials": Trials(k=task.trials.k or native.trials.k, metric=task.trials.metric or native.trials.metric),
        "tracked_metrics": native.tracked_metrics,
        "gates": native.gates,
        "reference": native.reference,
        "scoring": task.scoring.model_copy(update=native.scoring.model_dump(include={*_said(parts, "scoring")})),
    }
    return {name: value for name, value in over.items() if name in parts.values}


def _said(parts: Parts, name: str) -> Mapping[str, Any]:
    value = parts.value(name, {})
    return value if isinstance(value, dict) else {}


def _environment(known: Environment, native: Environment) -> Environment:
    """What the test says in the words of other tools goes before."""
    seconds = Budgets(max_seconds=known.budgets.max_seconds)
    update = {
        "budgets": seconds.over(native.budgets),
        "workspace": known.workspace or native.workspace,
        "user": known.user or native.user,
    }
    return native.model_copy(update=update)


def _problem(said: Node, parts: Parts, path: DocumentPath, message: str) -> Any:
    part = parts.get(str(path[0])) if path else None
    return said.problem(message) if part is None else part.places.problem((*part.path, *path[1:]), message)
