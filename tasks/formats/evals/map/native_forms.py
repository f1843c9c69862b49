"""The graders of passgate's task files in eval files: the same types with the same options."""

from typing import Any

from pydantic import ValidationError

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.evals.map.forms import LIST, Draft, Drafting, Form
from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, Parts
from passgate.tasks.formats.rules import grader_findings
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.assertions import GraderOptions
from passgate.tasks.model.graders import (
    DeterministicTests,
    Grader,
    LlmRubric,
    OutputCheck,
    PolicyCheck,
    StateCheck,
    StaticAnalysis,
    ToolCalls,
    TrajectoryMetrics,
    TurnGraders,
    Turns,
)

NAMESPACE = "passgate:"
_MODELS: dict[str, type[GraderOptions]] = {
    "deterministic_tests": DeterministicTests,
    "static_analysis": StaticAnalysis,
    "state_check": StateCheck,
    "tool_calls": ToolCalls,
    "trajectory_metrics": TrajectoryMetrics,
    "policy_check": PolicyCheck,
    "output_check": OutputCheck,
    f"{NAMESPACE}llm_rubric": LlmRubric,
}
"""By the names of their types. An `llm_rubric` without the namespace is AgentV's."""
_NOT_THEIRS = ("required", "min_score", "negate")
"""What graders of eval files have and these have not."""
_AS_THERE = "As in task files."
_PATHS = {"tests", "configuration", "rubric"}
_TEXT_FILES = (".md", ".txt")


def _keys(model: type[GraderOptions]) -> Keys:
    base = (*GraderOptions.model_fields, "type")
    own = {name: field for name, field in model.model_fields.items() if name not in base}
    return {
        **dict.fromkeys(_NOT_THEIRS, Key(says="Not of this grader, which passes or fails.")),
        **{name: Key(needed=field.is_required(), says=_AS_THERE) for name, field in own.items()},
    }


def _native(type_name: str, model: type[GraderOptions]) -> Drafting:
    own_name = type_name.removeprefix(NAMESPACE)

    def draft(parts: Parts, reading: Reading) -> Draft:
        for name in _NOT_THEIRS:
            asked = parts.get(name)
            if asked is not None and name not in model.model_fields:
                reading.refuse(asked, f"{own_name} passes or fails; it has no `{name}`", at_key=True)
        if str(parts.value("type")).startswith(("not-", "not_")):
            reading.refuse(parts.values["type"], f"{own_name} passes or fails; there is no `not` of it")
        known = {name: part for name, part in parts.values.items() if name in model.model_fields}
        options = {name: _placed(name, part, reading) for name, part in known.items()}
        _check(model, {**options, "type": parts.node.with_value(own_name)}, parts, reading)
        return Draft(model, own_name, options)

    return draft


def _placed(name: str, part: Node, reading: Reading) -> Node:
    """An option with its paths as tasks hold them: relative to the suites folder, not to the folder of the file."""

    def place(path: Any) -> Any:
        is_path = isinstance(path, str) and (name != "rubric" or path.endswith(_TEXT_FILES))
        return reading.ground.relative(part.folder / path) + _slash(path) if is_path else path

    if name not in _PATHS:
        return part
    if isinstance(part.value, list):
        return part.with_value([place(item) for item in part.value])
    if isinstance(part.value, dict):
        return part.with_value({key: place(item) for key, item in part.value.items()})
    return part.with_value(place(part.value))


def _slash(path: str) -> str:
    """The slash at the end of a path, which the digests of graders hold too."""
    return "/" if path.endswith("/") else ""


def _check(model: type[GraderOptions], options: dict[str, Node], parts: Parts, reading: Reading) -> None:
    """What a task file is told of a grader whose shape is right; of any other the model tells it."""
    try:
        grader: Any = model.model_validate({name: part.value for name, part in options.items()})
    except ValidationError:
        return
    for path, message in grader_findings(grader, reading.ground.suites_folder):
        reading.complaints.problems.append(_problem(parts, path, message))


def _problem(parts: Parts, path: DocumentPath, message: str) -> Any:
    part = parts.get(str(path[0])) if path else None
    return parts.node.problem(message) if part is None else part.places.problem((*part.path, *path[1:]), message)


_TURN_KEYS = {"assertions", "expected_output"}


def _turns(parts: Parts, reading: Reading) -> Draft:
    options = parts.only("aggregation", "on_turn_failure")
    turns, conversation = parts.get("turns"), parts.get("conversation")
    if turns is not None and isinstance(turns.value, list):
        options["turns"] = turns.with_value([_turn(item, reading) for item in turns.items()])
    if conversation is not None and isinstance(conversation.value, list):
        options["conversation"] = conversation.with_value(reading.read_list(conversation, reading))
    return Draft(Turns, "turns", options)


def _turn(item: Node, reading: Reading) -> Any:
    """The graders of one turn; a turn of the wrong shape stays as it is, and the model tells it."""
    listed = item.get("assertions") if isinstance(item.value, dict) else None
    if not isinstance(item.value, dict) or set(item.value) - _TURN_KEYS:
        return item.value
    graders: tuple[Grader, ...] = () if listed is None else reading.read_list(listed, reading)
    return TurnGraders(assertions=graders, expected_output=item.value.get("expected_output"))


NATIVE_FORMS = (
    *(Form((name,), model, _keys(model), _native(name, model)) for name, model in _MODELS.items()),
    Form(
        ("turns",),
        Turns,
        {
            "turns": Key(LIST, items=(Kind.MAPPING,), needed=True, says="Graders for each answer."),
            "conversation": Key(LIST),
            "aggregation": Key(says="mean, min or max of the turns."),
            "on_turn_failure": Key(),
        },
        _turns,
    ),
)
