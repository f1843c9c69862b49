"""Graders that need no judge: of the final answer, and of the tools and skills that the agent used, and the cost."""

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from passgate.tasks.formats.evals.documents import FILE_SCHEME
from passgate.tasks.formats.evals.forms import DescribedWords, Form, Options, value_words, words_for
from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.words import EvalWords, Parts, Sources, build, take_apart, word
from passgate.tasks.model.assertions import (
    ExpectedCall,
    FieldCheck,
    StepCount,
    ToolArguments,
    ToolSequence,
    ToolTrajectory,
    ToolUsed,
)
from passgate.tasks.model.base import Share, Text
from passgate.tasks.model.json_values import parse_json

_OF_A_FIELD = "is said of each field: write fields: [{path: PATH, match: numeric_tolerance, tolerance: 0.01}]"
FIELD = words_for(FieldCheck, spellings={"match": ("match_type",), "tolerance": ("numeric_tolerance",)})


def _read_items(parts: Parts, key: str, read: Callable[[Node], Any]) -> Options:
    """Return the items of a list as the option of the same name; no option when an item cannot be read."""
    listed = parts.get(key)
    if listed is None or not isinstance(listed.value, list):
        return {}
    items = [read(item) for item in listed.items()]
    return {} if None in items else {key: listed.with_value(items)}


def _is_json(parts: Parts, sources: Sources) -> Options:
    value = parts.get("value")
    if value is not None and isinstance(value.value, str):  # the path of a file with the schema
        name = value.value
        text = sources.text(value, name.removeprefix(FILE_SCHEME), called=name)[1]
        if text is None:
            return {}
        try:
            value = value.with_value(parse_json(text))
        except ValueError as error:
            sources.refuse(value, f"{name!r} is not JSON: {error}")
            return {}
        if sources.refuses_type(value, dict, context=f"{name!r}: "):
            return {}
    return {} if value is None else {"value": value}


def _script(body_of_file: Callable[[str, str], str | None], parts: Parts, sources: Sources) -> Options:
    value = parts.get("value")
    options = parts.only("value", "threshold")
    if value is None:
        return options
    options["cwd"] = value.with_value(sources.ground.relative(value.folder))
    if isinstance(value.value, str) and value.value.startswith(FILE_SCHEME):
        # `file://PATH` or `file://PATH:FUNCTION`
        name, _, function = value.value.removeprefix(FILE_SCHEME).partition(":")
        text = sources.text(value, name, called=value.value)[1]
        body = body_of_file(text, function) if text is not None else None
        if body is not None:
            options["value"] = value.with_value(body)
        elif text is not None:
            sources.cannot_run(value, f"{name!r} is not a script that passgate can call")
    return options


def _python_body(text: str, function: str) -> str | None:
    """Return the text of a script as the body of a function; `None` when it does not define the named function."""
    name = function or "get_assert"
    if re.search(rf"^(async\s+)?def\s+{re.escape(name)}\b", text, re.MULTILINE):
        return f"{text}\nreturn {name}(output, context)\n"
    return None if function else text


def _javascript_body(text: str, function: str) -> str | None:
    if re.search(r"^export\b", text, re.MULTILINE):  # not allowed in the body of a function
        return None
    if "module.exports" in text:
        member = f".{function}" if function else ""
        return (
            f"const module = {{ exports: {{}} }};\nconst exports = module.exports;\n{text}\n"
            f"return module.exports{member}(output, context);\n"
        )
    return None if function else text


def _fields(parts: Parts, sources: Sources) -> Options:
    def read(item: Node) -> FieldCheck | None:
        if not isinstance(item.value, dict):  # already reported for the whole list
            return None
        field = take_apart(item, FIELD, sources)
        return build(FieldCheck, field.values, item, sources) if field.sound else None

    return {**parts.only("aggregation"), **_read_items(parts, "fields", read)}


_ONE_TEXT = value_words(Text, "The text.")
_MANY_TEXTS = value_words(Annotated[list[Text], Field(min_length=1)], "The texts.")
_SCRIPT = value_words(
    Text,
    "The script, or `file://` and the path of a file that holds it.",
    threshold=(Share, word("The least score that passes, before `min_score`.")),
)


class AnyValue(DescribedWords):
    """The final answer against a value."""

    NULL = frozenset({"value"})

    value: Any = word("The answer; a value that is not a text is compared as JSON.", needed=True)


class JsonWords(DescribedWords):
    """The final answer as JSON."""

    value: dict[str, Any] | str = word("A JSON Schema, or `file://` and the path of a file that holds it.")


class FieldsWords(DescribedWords):
    """The fields of the answer."""

    REFUSED = dict.fromkeys(("match", "match_type", "tolerance", "numeric_tolerance"), _OF_A_FIELD)

    fields: list[dict[str, Any]] = word("What is compared.", needed=True)
    aggregation: Literal["weighted_average", "minimum", "all_or_nothing"] = word("How the fields' scores become one.")


ANSWER_FORMS = (
    Form(("contains",), _ONE_TEXT, agentevals=("contains",)),
    *(Form((name,), _ONE_TEXT) for name in ("icontains", "starts_with", "ends_with")),
    *(Form((name,), _MANY_TEXTS) for name in ("contains_any", "contains_all", "icontains_any", "icontains_all")),
    Form(("equals",), AnyValue, agentevals=("equals",)),
    Form(("regex",), agentevals=("regex",)),
    Form(("is_json",), JsonWords, _is_json, agentevals=("is_json",)),
    Form(("field_accuracy",), FieldsWords, _fields, agentevals=("field_accuracy",)),
    Form(("javascript",), _SCRIPT, partial(_script, _javascript_body)),
    Form(("python",), _SCRIPT, partial(_script, _python_body)),
)


EXPECTED = words_for(
    ExpectedCall,
    spellings={"args": ("input",)},
    output=(Any, word("The result; passgate compares none.")),
)
_GOAL_PROMPT = """Did the agent reach the goal?

[[ ## goal ## ]]
{{ criteria }}

[[ ## task ## ]]
{{ input }}

[[ ## tool calls ## ]]
{{ tool_calls }}

[[ ## answer ## ]]
{{ output }}
"""


def _trajectory(parts: Parts, sources: Sources) -> Options:
    read = _read_items(parts, "expected", lambda item: _read_call(item, sources))
    minimums, expected, mode = parts.get("minimums"), parts.get("expected"), parts.value("mode", "any_order")
    if parts.sound and mode != "any_order" and minimums is not None:
        sources.refuse(minimums, "'minimums' are for the mode 'any_order'", at_key=True)
    elif parts.sound and mode != "any_order" and expected is None:
        sources.refuse(parts.node, "the key 'expected' is missing")
    return {**parts.only("mode", "minimums", "args_match"), **read}


def _read_call(item: Node, sources: Sources) -> ExpectedCall | None:
    if isinstance(item.value, str):
        return build(ExpectedCall, {"tool": item}, item, sources)
    if not isinstance(item.value, dict):
        return None
    parts = take_apart(item, EXPECTED, sources)
    if (output := parts.get("output")) is not None:
        sources.cannot_run(output, "results of calls are not compared: let a `script` grader do it", at_key=True)
    fields = parts.only(*ExpectedCall.model_fields)
    return build(ExpectedCall, fields, item, sources) if parts.sound else None


_LISTS = frozenset({"tools", "ignore"})  # a single value may be written as a text
_TEXT_OR_LIST: Any = Text | list[Text]
_USED = words_for(ToolUsed, spellings={"tools": ("name", "pattern", "tool")}, own={"tools": _TEXT_OR_LIST})
_ARGUMENTS = words_for(
    ToolArguments, spellings={"tool": ("name",), "args": ("arguments",)}, own={"ignore": _TEXT_OR_LIST}
)
_COUNT = words_for(StepCount, spellings={"kind": ("type",)})


class Goal(EvalWords):
    """What the agent must reach."""

    criteria: str = word("The goal.", "criteria", "goal", needed=True)


def _value_options(words: type[EvalWords], parts: Parts, sources: Sources, short: str = "") -> Options:
    """Return the options of a grader that are its `value`: a mapping, or what stands for the option `short`."""
    value, options = parts.get("value"), dict[str, Node]()
    if value is not None and isinstance(value.value, dict):
        options = dict(take_apart(value, words, sources).values)
    elif value is not None and short:
        options = {short: value}
    for name, part in options.items():
        if name in _LISTS and isinstance(part.value, str):
            options[name] = part.with_value([part.value])
    return options


def _goal(parts: Parts, sources: Sources) -> Options:
    goal = _value_options(Goal, parts, sources, "criteria")
    return {"prompt": parts.node.with_value(_GOAL_PROMPT), **parts.only("target"), **goal}


def _any_call(parts: Parts, _: Sources) -> Options:
    return {"any_call": parts.node.with_value(True), **parts.only("skill", "should_trigger", "any_call")}


def _value_form(name: str, model_type: str, words: type[EvalWords], value: Any, short: str = "") -> Form:
    """Return the form of a grader whose options are its `value`; `short` is the one that may stand there alone."""
    says = "The options, or the first of them alone." if short else "The options."
    return Form((name,), value_words(value, says), partial(_value_options, words, short=short), model_type=model_type)


_SKILL = {"skill": ("value",)}
_CALLS = words_for(ToolTrajectory, DescribedWords, own={"expected": list[dict[str, Any] | str]})
_GOAL = value_words(str | dict[str, Any], "The goal.", target=(str, word("See `llm_grader`.", "target", "provider")))

# AgentEvals, AgentV and the latest AgentV write graders of tool calls in different forms.
TRIAL_FORMS = (
    Form(("tool_trajectory",), _CALLS, _trajectory, agentevals=("tool_trajectory",)),
    _value_form("trajectory:tool_used", "tool_used", _USED, str | list[str] | dict[str, Any], "tools"),
    _value_form(
        "trajectory:tool_sequence", "tool_sequence", words_for(ToolSequence), list[str] | dict[str, Any], "steps"
    ),
    _value_form("trajectory:tool_args_match", "tool_arguments", _ARGUMENTS, dict[str, Any]),
    _value_form("trajectory:step_count", "step_count", _COUNT, dict[str, Any]),
    Form(("trajectory:goal_success",), _GOAL, _goal, model_type="llm_grader"),
    Form(("execution_metrics",), agentevals=("execution_metrics",)),
    Form(("latency",), spellings={"threshold": ("max_ms",)}),
    Form(("cost",), spellings={"budget": ("threshold",)}),
    Form(("token_usage",)),
    Form(("skill_trigger",), spellings=_SKILL, agentevals=("skill_trigger",)),
    Form(("skill_used",), None, _any_call, model_type="skill_trigger", spellings=_SKILL),
)
