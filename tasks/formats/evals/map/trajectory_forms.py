"""Graders of the tool calls of a trial, as AgentEvals and AgentV write them and as the latest AgentV does."""

from passgate.tasks.formats.evals.map.built import build
from passgate.tasks.formats.evals.map.forms import LIST, MAPPING, NUMBER, TEXT, WHOLE, Draft, Drafting, Form
from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, Parts, take_apart
from passgate.tasks.formats.schema_check import Kind, wrong_kind
from passgate.tasks.model.assertions import (
    AssertionOptions,
    ExpectedCall,
    LlmGrader,
    StepCount,
    ToolArguments,
    ToolSequence,
    ToolTrajectory,
    ToolUsed,
)

_ARGS_MATCH = Key((*TEXT, *LIST), items=TEXT, says="exact, superset, subset, ignore, or the fields compared.")
EXPECTED_KEYS: Keys = {
    "tool": Key(TEXT, needed=True, says="The tool's name."),
    "args": Key((*MAPPING, *TEXT)),
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


def _trajectory(parts: Parts, reading: Reading) -> Draft:
    options = parts.only("mode", "minimums", "args_match")
    expected = parts.get("expected")
    if expected is not None and isinstance(expected.value, list):
        read = [_expected(item, reading) for item in expected.items()]
        if None not in read:
            options["expected"] = expected.with_value(read)
    if parts.sound:
        _can_fail(parts, reading)
    return Draft(ToolTrajectory, "tool_trajectory", options)


def _can_fail(parts: Parts, reading: Reading) -> None:
    mode, minimums, expected = parts.value("mode", "any_order"), parts.get("minimums"), parts.get("expected")
    if mode == "any_order" and not parts.value("minimums") and not parts.value("expected"):
        reading.refuse(parts.node, "this grader cannot fail: give at least one of expected, minimums")
    elif mode != "any_order" and minimums is not None:
        reading.refuse(minimums, "'minimums' are for the mode 'any_order'", at_key=True)
    elif mode != "any_order" and expected is None:
        reading.refuse(parts.node, "the key 'expected' is missing")
    elif mode in {"in_order", "superset"} and not parts.value("expected"):
        reading.refuse(expected or parts.node, "must not be empty")


def _expected(item: Node, reading: Reading) -> ExpectedCall | None:
    if isinstance(item.value, str):
        return build(ExpectedCall, {"tool": item}, item, reading.complaints)
    if wrong_kind(item.value, (Kind.MAPPING,)):
        return None
    parts = take_apart(item, EXPECTED_KEYS, reading.complaints)
    args = parts.get("args")
    if args is not None and isinstance(args.value, str) and args.value != "any":
        reading.refuse(args, f"expected a mapping or 'any', not {args.value!r}")
        return None
    return build(ExpectedCall, parts.values, item, reading.complaints) if parts.sound else None


_USED_KEYS: Keys = {
    "name": Key((*TEXT, *LIST), items=TEXT, spellings=("pattern", "tool"), needed=True),
    "min": Key(WHOLE),
    "max": Key(WHOLE),
}
_SEQUENCE_KEYS: Keys = {"steps": Key(LIST, items=TEXT, needed=True), "mode": Key(TEXT)}
_ARGUMENTS_KEYS: Keys = {
    "name": Key(TEXT, spellings=("tool",), needed=True),
    "args": Key(MAPPING, spellings=("arguments",), needed=True),
    "mode": Key(TEXT),
    "defaults": Key(MAPPING),
    "ignore": Key((*TEXT, *LIST), items=TEXT),
}
_COUNT_KEYS: Keys = {"type": Key(TEXT), "pattern": Key(TEXT), "min": Key(WHOLE), "max": Key(WHOLE)}


def _inner(parts: Parts, keys: Keys, reading: Reading) -> Parts | None:
    """The parts of `value`, where it is a mapping."""
    value = parts.get("value")
    if value is None or not isinstance(value.value, dict):
        return None
    return take_apart(value, keys, reading.complaints)


def _listed(node: Node) -> Node:
    """One text as a list of one."""
    return node.with_value([node.value]) if isinstance(node.value, str) else node


def _options(parts: Parts | None, **names: str) -> dict[str, Node]:
    """The parts of a mapping under the names that the model has for them."""
    if parts is None:
        return {}
    return {name: part for name, key in names.items() if (part := parts.get(key)) is not None}


def _used(parts: Parts, reading: Reading) -> Draft:
    value, inner = parts.get("value"), _inner(parts, _USED_KEYS, reading)
    options = _options(inner, tools="name", min="min", max="max")
    if inner is None and value is not None:
        options["tools"] = value
    if "tools" in options:
        options["tools"] = _listed(options["tools"])
    low, high = (inner.value(key) if inner else None for key in ("min", "max"))
    if low is not None and high is not None and low > high and value is not None:
        reading.refuse(value, f"'min' is {low} and 'max' is {high}")
    return Draft(ToolUsed, "tool_used", options)


def _sequence(parts: Parts, reading: Reading) -> Draft:
    value, inner = parts.get("value"), _inner(parts, _SEQUENCE_KEYS, reading)
    options = _options(inner, steps="steps", mode="mode")
    if inner is None and value is not None:
        options["steps"] = value
    return Draft(ToolSequence, "tool_sequence", options)


def _arguments(parts: Parts, reading: Reading) -> Draft:
    inner = _inner(parts, _ARGUMENTS_KEYS, reading)
    options = _options(inner, tool="name", args="args", mode="mode", defaults="defaults", ignore="ignore")
    if "ignore" in options:
        options["ignore"] = _listed(options["ignore"])
    return Draft(ToolArguments, "tool_arguments", options)


def _count(parts: Parts, reading: Reading) -> Draft:
    inner = _inner(parts, _COUNT_KEYS, reading)
    options = _options(inner, kind="type", pattern="pattern", min="min", max="max")
    if inner is not None and inner.sound and not inner.only("min", "max"):
        reading.refuse(inner.node, "this grader cannot fail: give at least one of min, max")
    return Draft(StepCount, "step_count", options)


def _goal(parts: Parts, reading: Reading) -> Draft:
    value = parts.get("value")
    inner = _inner(parts, {"goal": Key(TEXT, needed=True)}, reading)
    goal = inner.get("goal") if inner is not None else value
    options = {"prompt": parts.node.with_value(_GOAL_PROMPT), **parts.only("target")}
    return Draft(LlmGrader, "llm_grader", options | ({"criteria": goal} if goal is not None else {}))


def _later(name: str, model: type[AssertionOptions], draft: Drafting, *kinds: Kind, **keys: Key) -> Form:
    """A form of the latest AgentV, whose options are its `value`."""
    value = Key(kinds, items=TEXT, needed=True)
    return Form((f"trajectory:{name}",), model, {"value": value, **keys}, draft, later=(f"trajectory:{name}",))


TRAJECTORY_FORMS = (
    Form(
        ("tool_trajectory",),
        ToolTrajectory,
        {
            "mode": Key(TEXT),
            "expected": Key(LIST, items=(*MAPPING, *TEXT), says="The calls that are expected."),
            "minimums": Key(MAPPING, values=WHOLE),
            "args_match": _ARGS_MATCH,
        },
        _trajectory,
        ("tool_trajectory",),
    ),
    _later("tool_used", ToolUsed, _used, *TEXT, *LIST, *MAPPING),
    _later("tool_sequence", ToolSequence, _sequence, *LIST, *MAPPING),
    _later("tool_args_match", ToolArguments, _arguments, *MAPPING),
    _later("step_count", StepCount, _count, *MAPPING),
    _later("goal_success", LlmGrader, _goal, *TEXT, *MAPPING, target=Key(TEXT, spellings=("provider",))),
)
