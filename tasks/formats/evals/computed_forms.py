"""Graders that need no judge: of the final answer, and of the tools and skills that the agent used, and the cost."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from passgate.tasks.formats.evals.documents import FILE_SCHEME
from passgate.tasks.formats.evals.forms import LIST, MAPPING, NUMBER, TEXT, TRUTH, WHOLE, Form, Options, Read, build
from passgate.tasks.formats.evals.node import Key, Keys, Node, Parts, take_apart
from passgate.tasks.formats.evals.sources import Sources
from passgate.tasks.formats.findings import check_json_schema
from passgate.tasks.formats.schema_check import Kind, is_kind, wrong_kind
from passgate.tasks.model.assertions import ExpectedCall, FieldCheck
from passgate.tasks.model.javascript_regex import regex_problem
from passgate.tasks.model.json_values import parse_json

_OF_A_FIELD = "is said of each field: write fields: [{path: PATH, match: numeric_tolerance, tolerance: 0.01}]"
FIELD_KEYS: Keys = {
    "path": Key(TEXT, needed=True),
    "match": Key(TEXT, spellings=("match_type",), says="How it is compared."),
    "required": Key(TRUTH),
    "weight": Key(NUMBER, says="Its part in the score."),
    "tolerance": Key(NUMBER, spellings=("numeric_tolerance",), says="For `numeric_tolerance`."),
    "relative": Key(TRUTH),
    "formats": Key(LIST, items=TEXT),
}


def _read_items(parts: Parts, key: str, read: Callable[[Node], Any]) -> Options:
    """The items of a list as the option of the same name; no option when an item cannot be read."""
    listed = parts.get(key)
    if listed is None or not isinstance(listed.value, list):
        return {}
    items = [read(item) for item in listed.items()]
    return {} if None in items else {key: listed.with_value(items)}


def _regex(parts: Parts, sources: Sources) -> Options:
    value, flags = parts.get("value"), parts.value("flags", "")
    if value is not None and isinstance(value.value, str) and isinstance(flags, str):
        problem = regex_problem(value.value, flags)
        if problem:
            sources.refuse(value, problem)
    return parts.only("value", "flags")


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
        if sources.refuses_kind(value, MAPPING, f"{name!r}: "):
            return {}
    if value is not None and isinstance(value.value, dict):
        for path, message in check_json_schema((), value.value):
            sources.complaints.problems.append(value.places.problem((*value.path, *path), message))
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
    """The text of a script as the body of a function; `None` when it does not define the named function."""
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
        if wrong_kind(item.value, MAPPING):  # already reported for the whole list
            return None
        field = take_apart(item, FIELD_KEYS, sources.complaints)
        return build(FieldCheck, field.values, item, sources) if field.sound else None

    return {**parts.only("aggregation"), **_read_items(parts, "fields", read)}


_ONE = Key(TEXT, needed=True, says="The text.")
_MANY = Key(LIST, items=TEXT, needed=True, says="The texts.")
_TEXT_OF_JSON = "The answer; a value that is no text is compared as JSON."
_VALUE_OR_FILE: dict[str, Any] = {"says": "Or `file://` and the path of a file that holds it."}
_SCRIPT_KEYS: Keys = {"value": Key(TEXT, needed=True, **_VALUE_OR_FILE), "threshold": Key(NUMBER)}
_REGEX_KEYS: Keys = {
    "value": Key(TEXT, needed=True, says="The pattern, as JavaScript knows them."),
    "flags": Key(TEXT, says="As in `i`."),
}
_ACCURACY_KEYS: Keys = {
    "fields": Key(LIST, items=MAPPING, needed=True, says="What is compared."),
    **{name: Key(spellings=FIELD_KEYS[name].spellings, instead=_OF_A_FIELD) for name in ("match", "tolerance")},
    "aggregation": Key(TEXT, says="How the fields' scores become one."),
}

ANSWER_FORMS = (
    Form(("contains",), {"value": _ONE}, agentevals=("contains",)),
    *(Form((name,), {"value": _ONE}) for name in ("icontains", "starts_with", "ends_with")),
    *(Form((name,), {"value": _MANY}) for name in ("contains_any", "contains_all", "icontains_any", "icontains_all")),
    Form(("equals",), {"value": Key(needed=True, null=True, says=_TEXT_OF_JSON)}, agentevals=("equals",)),
    Form(("regex",), _REGEX_KEYS, _regex, agentevals=("regex",)),
    Form(("is_json",), {"value": Key((*MAPPING, *TEXT), **_VALUE_OR_FILE)}, _is_json, agentevals=("is_json",)),
    Form(("field_accuracy",), _ACCURACY_KEYS, _fields, agentevals=("field_accuracy",)),
    Form(("javascript",), _SCRIPT_KEYS, partial(_script, _javascript_body), later=("javascript",)),
    Form(("python",), _SCRIPT_KEYS, partial(_script, _python_body), later=("python",)),
)

_ARGS_MATCH = Key((*TEXT, *LIST), items=TEXT, says="exact, superset, subset, ignore, or the fields compared.")
EXPECTED_KEYS: Keys = {
    "tool": Key(TEXT, needed=True, says="The tool's name."),
    "args": Key((*MAPPING, *TEXT), spellings=("input",)),
    "output": Key(says="The result; passgate compares none."),
    "args_match": _ARGS_MATCH,
    "max_duration_ms": Key(NUMBER, says="The most milliseconds of the call."),
}
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
_LIMITS: Keys = {
    "max_tool_calls": Key(WHOLE, says="The most tool calls."),
    "max_llm_calls": Key(WHOLE, says="The most calls of models."),
    "max_tokens": Key(WHOLE),
    "max_input_tokens": Key(WHOLE, says="The most tokens into the model."),
    "max_output_tokens": Key(WHOLE, says="The most tokens out of the model."),
    "max_cost_usd": Key(NUMBER, says="The most US dollars."),
    "max_duration_ms": Key(NUMBER, says="The most milliseconds."),
    "target_exploration_ratio": Key(NUMBER),
}
_TOKENS: Keys = {
    "max_total": Key(WHOLE),
    "max_input": Key(WHOLE, says="The most tokens into the model."),
    "max_output": Key(WHOLE, says="The most tokens out of the model."),
}
_SKILL_KEYS: Keys = {
    "skill": Key(TEXT, spellings=("value",), needed=True, says="The skill's name."),
    "should_trigger": Key(TRUTH, says="Whether it is to be used."),
    "any_call": Key(TRUTH),
}


def _trajectory(parts: Parts, sources: Sources) -> Options:
    read = _read_items(parts, "expected", lambda item: _expected(item, sources))
    minimums, expected, mode = parts.get("minimums"), parts.get("expected"), parts.value("mode", "any_order")
    if not parts.sound:
        pass
    elif mode == "any_order":
        if not parts.value("minimums") and not parts.value("expected"):
            sources.refuse(parts.node, "this grader cannot fail: give at least one of expected, minimums")
    elif minimums is not None:
        sources.refuse(minimums, "'minimums' are for the mode 'any_order'", at_key=True)
    elif expected is None:
        sources.refuse(parts.node, "the key 'expected' is missing")
    elif mode in {"in_order", "superset"} and not expected.value:
        sources.refuse(expected, "must not be empty")  # `exact` and `subset` of no calls forbid all calls
    return {**parts.only("mode", "minimums", "args_match"), **read}


def _expected(item: Node, sources: Sources) -> ExpectedCall | None:
    if isinstance(item.value, str):
        return build(ExpectedCall, {"tool": item}, item, sources)
    if wrong_kind(item.value, MAPPING):
        return None
    parts = take_apart(item, EXPECTED_KEYS, sources.complaints)
    args = parts.get("args")
    if args is not None and isinstance(args.value, str) and args.value != "any":
        sources.refuse(args, f"expected a mapping or 'any', not {args.value!r}")
        return None
    if (output := parts.get("output")) is not None:
        sources.cannot_run(output, "results of calls are not compared: let a `script` grader do it", at_key=True)
    fields = parts.only(*ExpectedCall.model_fields)
    return build(ExpectedCall, fields, item, sources) if parts.sound else None


_USED_KEYS: Keys = {
    "name": Key((*TEXT, *LIST), items=TEXT, spellings=("pattern", "tool"), needed=True),
    **dict.fromkeys(("min", "max"), Key(WHOLE)),
}
_SEQUENCE_KEYS: Keys = {"steps": Key(LIST, items=TEXT, needed=True), "mode": Key(TEXT)}
_ARGUMENTS_KEYS: Keys = {
    "name": Key(TEXT, spellings=("tool",), needed=True),
    "args": Key(MAPPING, spellings=("arguments",), needed=True),
    "mode": Key(TEXT),
    "defaults": Key(MAPPING),
    "ignore": Key((*TEXT, *LIST), items=TEXT),
}
_LISTS = frozenset({"tools", "ignore"})  # a single value may be written as a text
_COUNT_KEYS: Keys = {"type": Key(TEXT), "pattern": Key(TEXT), "min": Key(WHOLE), "max": Key(WHOLE)}


def _of_value(
    keys: Keys,
    parts: Parts,
    sources: Sources,
    short: str = "",
    check: Callable[[Parts, Sources], None] | None = None,
    **names: str,
) -> Options:
    """The options of a grader that are its `value`: a mapping with the keys, or what stands for the option `short`.
    `names` are the names that the model has for keys, where they differ. One text stands for a list of one.
    """
    value, options = parts.get("value"), {}
    if value is not None and isinstance(value.value, dict):
        inner = take_apart(value, keys, sources.complaints)
        options = {names.get(key, key): part for key, part in inner.values.items()}
        if check is not None:
            check(inner, sources)
    elif value is not None and short:
        options = {short: value}
    for name, part in options.items():
        if name in _LISTS and isinstance(part.value, str):
            options[name] = part.with_value([part.value])
    return options


def _refuse_crossed(used: Parts, sources: Sources) -> None:
    low, high = used.value("min"), used.value("max")
    if is_kind(low, Kind.NUMBER) and is_kind(high, Kind.NUMBER) and low > high:
        sources.refuse(used.node, f"'min' is {low} and 'max' is {high}")


def _refuse_boundless(count: Parts, sources: Sources) -> None:
    if count.sound and not count.only("min", "max"):
        sources.refuse(count.node, "this grader cannot fail: give at least one of min, max")


def _goal(parts: Parts, sources: Sources) -> Options:
    goal = _of_value({"goal": Key(TEXT, needed=True)}, parts, sources, "criteria", goal="criteria")
    return {"prompt": parts.node.with_value(_GOAL_PROMPT), **parts.only("target"), **goal}


def _limited(name: str, limits: Keys, agentevals: tuple[str, ...] = (), **keys: Key) -> Form:
    """A form that needs at least one of its limits."""

    def read(parts: Parts, sources: Sources) -> Options:
        if parts.sound and not parts.only(*limits):
            sources.refuse(parts.node, f"{name} cannot fail: give at least one of {', '.join(limits)}")
        return parts.only(*limits, *keys)

    return Form((name,), {**limits, **keys}, read, agentevals)


def _any_call(parts: Parts, _: Sources) -> Options:
    return {"any_call": parts.node.with_value(True), **parts.only(*_SKILL_KEYS)}


def _later(name: str, read: Read, *kinds: Kind, model_type: str = "", **keys: Key) -> Form:
    """A form of the latest AgentV, whose options are its `value`."""
    names = (f"trajectory:{name}",)
    value = Key(kinds, items=TEXT, needed=True)
    return Form(names, {"value": value, **keys}, read, later=names, model_type=model_type or name)


_TRAJECTORY_KEYS: Keys = {
    "mode": Key(TEXT),
    "expected": Key(LIST, items=(*MAPPING, *TEXT), says="The calls that are expected."),
    "minimums": Key(MAPPING, values=WHOLE),
    "args_match": _ARGS_MATCH,
}
_USED = partial(_of_value, _USED_KEYS, short="tools", check=_refuse_crossed, name="tools")
_OFF = Key(NUMBER, says="How far the ratio may be off.")

# AgentEvals, AgentV and the latest AgentV write graders of tool calls in different forms.
TRIAL_FORMS = (
    Form(("tool_trajectory",), _TRAJECTORY_KEYS, _trajectory, agentevals=("tool_trajectory",)),
    _later("tool_used", _USED, *TEXT, *LIST, *MAPPING),
    _later("tool_sequence", partial(_of_value, _SEQUENCE_KEYS, short="steps"), *LIST, *MAPPING),
    _later("tool_args_match", partial(_of_value, _ARGUMENTS_KEYS, name="tool"), *MAPPING, model_type="tool_arguments"),
    _later("step_count", partial(_of_value, _COUNT_KEYS, check=_refuse_boundless, type="kind"), *MAPPING),
    _later("goal_success", _goal, *TEXT, *MAPPING, model_type="llm_grader", target=Key(TEXT, spellings=("provider",))),
    _limited("execution_metrics", _LIMITS, ("execution_metrics",), exploration_tolerance=_OFF),
    Form(("latency",), {"threshold": Key(NUMBER, spellings=("max_ms",), needed=True)}),
    Form(("cost",), {"budget": Key(NUMBER, spellings=("threshold",), needed=True)}),
    _limited("token_usage", _TOKENS),
    Form(("skill_trigger",), _SKILL_KEYS, agentevals=("skill_trigger",)),
    Form(("skill_used",), _SKILL_KEYS, _any_call, later=("skill_used",), model_type="skill_trigger"),
)
