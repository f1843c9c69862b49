"""What a task says, as plain values: without defaults, and with its paths as another file would write them."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from passgate.tasks.formats.rules import MESSAGES, NO_FILES
from passgate.tasks.model.assertions import CodeGrader, LlmGrader, ScriptAssertion
from passgate.tasks.model.grader_options import JsonCheck, SqliteCheck
from passgate.tasks.model.graders import Aggregator, DeterministicTests, LlmRubric, StaticAnalysis
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.model.messages import ContentBlock
from passgate.tasks.model.task import (
    AgentRules,
    Counterexample,
    Extension,
    Hook,
    Replay,
    Repository,
    Solution,
    TaskFile,
    Tool,
    Workspace,
)

# A path of the suites folder as another file writes it. Raises `LeavesError` where that file cannot.
Place = Callable[[str], str]

# The fields that hold paths of the suites folder.
_PATHS: Mapping[type[BaseModel], tuple[str, ...]] = {
    **dict.fromkeys((CodeGrader, ScriptAssertion, Aggregator, Hook), ("cwd",)),
    LlmGrader: ("prompt_file",),
    LlmRubric: ("rubric",),
    DeterministicTests: ("tests",),
    StaticAnalysis: ("configuration",),
    ContentBlock: ("value",),
    Replay: ("transcript",),
    Tool: ("function",),
    Workspace: ("template", "folder"),
    Extension: ("module",),
    AgentRules: tuple(AgentRules.model_fields),
    Repository: ("repo",),
    **dict.fromkeys((Solution, Counterexample), ("patch", "script", "transcript")),
}
# In these models a value that equals its default still means something: `equals: null` is a check.
_TOLD_APART = (JsonCheck, SqliteCheck)


class LeavesError(Exception):
    """A path that cannot be written, and why."""


@dataclass(frozen=True)
class Loss:
    """Something that cannot be written."""

    path: str  # where in the task, as in `graders[1].cwd`
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.reason})" if self.reason else self.path


@dataclass(frozen=True)
class Serialisation:
    """How paths are written, and what is lost."""

    place: Place
    losses: list[Loss] = field(default_factory=list)


def serialised_task(task: TaskFile, saying: Serialisation) -> dict[str, Any]:
    """Return a task as a task file has it. Files are named by their paths: what they held is left out. What holds a
    path that cannot be written is left out too, and is one of the losses.
    """
    plain = serialised_model(task, saying)
    if task.inputs.get("messages") is not None:
        with contextlib.suppress(ValidationError):
            messages = MESSAGES.validate_python(task.inputs["messages"])
            plain["inputs"] = {**plain["inputs"], "messages": _items(messages, saying, "inputs.messages")}
    return plain


def serialised_model(model: BaseModel, saying: Serialisation, path: str = "") -> dict[str, Any]:
    """Return the same for a part of a task; `path` is where it stands in the task. `type` comes first."""
    if isinstance(model, LlmGrader) and model.prompt_file is not None:
        model = _merge_prompts(model, saying, path)
    fields = type(model).model_fields
    plain: dict[str, Any] = {}
    for name in sorted(fields, key=lambda name: name != "type"):
        value = _place_value(model, name, saying.place)
        if _is_left_out(model, name, value, fields[name]):
            continue
        inner = f"{path}.{name}" if path else name
        try:
            plain[name] = _value(value, saying, inner, is_typed=fields[name].annotation is not Any)
        except LeavesError as error:
            if fields[name].is_required() or fields[name].default is not None:
                raise
            saying.losses.append(Loss(inner, str(error)))
        if plain.get(name) == {} and fields[name].default is not None and isinstance(value, BaseModel):
            del plain[name]  # all that was in it is lost
    return plain


def _merge_prompts(grader: LlmGrader, saying: Serialisation, path: str) -> LlmGrader:
    # Reading the path gives the prompt again, so the prompt is written only when the path cannot be.
    try:
        saying.place(grader.prompt_file or "")
    except LeavesError as error:
        if not grader.prompt:
            raise
        saying.losses.append(Loss(f"{path}.prompt_file", str(error)))
        return grader.model_copy(update={"prompt_file": None})
    return grader.model_copy(update={"prompt": ""})


def _place_value(model: BaseModel, name: str, place: Place) -> Any:
    value = getattr(model, name)
    is_path = value is not None and name in _PATHS.get(type(model), ())
    match model:
        case LlmRubric():
            is_path = is_path and str(value).endswith((".md", ".txt"))
        case Aggregator():
            is_path = is_path and bool(model.command)
        case ContentBlock():
            is_file = model.type in {"file", "image"} and isinstance(value, str) and not value.startswith(NO_FILES)
            is_path = is_path and is_file
    if not is_path:
        return value
    if isinstance(model, Tool):  # as in `tools.py:refund`
        file, _, function = value.rpartition(":")
        return f"{place(file)}:{function}"
    if isinstance(value, tuple):
        return tuple(place(item) for item in value)
    return {key: place(item) for key, item in value.items()} if isinstance(value, dict) else place(value)


def _is_left_out(model: BaseModel, name: str, value: Any, info: FieldInfo) -> bool:
    if isinstance(model, ContentBlock) and name == "text":  # what its file held
        return True
    if info.is_required() or (isinstance(model, _TOLD_APART) and name in model.model_fields_set):
        return False
    return bool(value == info.get_default(call_default_factory=True))


def _value(value: Any, saying: Serialisation, path: str, *, is_typed: bool) -> Any:
    if isinstance(value, BaseModel):
        return serialised_model(value, saying, path)
    if isinstance(value, tuple) and any(isinstance(item, BaseModel) for item in value):
        return _items(value, saying, path)
    if is_typed and isinstance(value, float) and value.is_integer():
        return int(value)  # the model makes 2.0 of the 2 that people write
    return to_jsonable_python(value)


def _items(values: Iterable[Any], saying: Serialisation, path: str) -> list[Any]:
    """Return the items of a list without those that cannot be written."""
    items = []
    for index, item in enumerate(values):
        try:
            items.append(_value(item, saying, f"{path}[{index}]", is_typed=True))
        except LeavesError as error:
            saying.losses.append(Loss(f"{path}[{index}]", str(error)))
    return items


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two documents differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys((*left, *right)):
            inner = f"{path}.{key}" if path else str(key)
            if key in left and key in right:
                yield from differences(left[key], right[key], inner)
                continue
            only = left[key] if key in left else right[key]
            # A mapping that only one of them has is reported key by key.
            yield from differences(only, {}, inner) if isinstance(only, dict) and only else [inner]
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif not strictly_equal(left, right):
        yield path
