"""Graders made of graders."""

from collections import Counter
from collections.abc import Iterator

from passgate.tasks.formats.assertion_rules import NEEDED_BY_AGGREGATOR, is_required
from passgate.tasks.formats.evals.map.built import build
from passgate.tasks.formats.evals.map.commands import command_parts
from passgate.tasks.formats.evals.map.forms import LIST, MAPPING, NUMBER, TEXT, Draft, Form
from passgate.tasks.formats.evals.map.prompt_text import prompt_parts
from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Key, Keys, Node, Parts, snake_case, take_apart
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model.graders import Aggregator, Composite, Grader

AGGREGATOR_NAMES = {
    "code_judge": "code_grader",
    "script": "code_grader",
    "llm_judge": "llm_grader",
    "llm_rubric": "llm_grader",
}
"""Other names of kinds of aggregators."""
AGGREGATOR_KEYS: Keys = {
    "type": Key(TEXT, needed=True),
    "weights": Key(MAPPING, values=NUMBER),
    "required": Key(LIST, items=TEXT),
    "threshold": Key(NUMBER, says="For `all_or_nothing` and `threshold`."),
    "command": Key((*TEXT, *LIST), spellings=("path", "script")),
    "cwd": Key(TEXT, says="Where the program runs."),
    "prompt": Key(TEXT),
    "target": Key(TEXT, spellings=("model", "provider"), says="See `llm_grader`."),
}
COMPOSITE_KEYS: Keys = {
    "assertions": Key(LIST, spellings=("assert", "evaluators"), needed=True, says="The members."),
    "aggregator": Key(MAPPING, says="How their scores become one; their weighted average when not given."),
    "threshold": Key(NUMBER),
}


def _composite(parts: Parts, reading: Reading) -> Draft:
    options = parts.only("threshold")
    if not options and _is_set(parts.node):
        options["threshold"] = parts.node.with_value(1.0)
    members, aggregator = parts.get("assertions"), parts.get("aggregator")
    graders: tuple[Grader, ...] = ()
    if members is not None and isinstance(members.value, list):
        graders = reading.read_list(members, reading)
        options["assertions"] = members.with_value(graders)
    if aggregator is not None and isinstance(aggregator.value, dict):
        read = _aggregator(aggregator, graders, reading)
        if read is not None:
            options["aggregator"] = aggregator.with_value(read)
    return Draft(Composite, "composite", options)


def _is_set(node: Node) -> bool:
    """Whether it is an assert-set: all its members must pass where it has no threshold."""
    return snake_case(str(node.value.get("type"))).removeprefix("not_") == "assert_set"


def _aggregator(node: Node, members: tuple[Grader, ...], reading: Reading) -> Aggregator | None:
    parts = take_apart(node, AGGREGATOR_KEYS, reading.complaints)
    if not parts.sound:
        return None
    kind = snake_case(parts.values["type"].value)
    kind = AGGREGATOR_NAMES.get(kind, kind)
    _check(kind, parts, members, reading)
    options = {"type": parts.values["type"].with_value(kind), **parts.only("weights", "required", "threshold")}
    command, prompt = parts.get("command"), parts.get("prompt")
    if command is not None:
        options |= command_parts(command, parts.get("cwd"), reading)
    if prompt is not None:
        options["prompt"] = prompt_parts(prompt, reading).get("prompt", prompt)
    return build(Aggregator, options, node, reading.complaints)


def _check(kind: str, parts: Parts, members: tuple[Grader, ...], reading: Reading) -> None:
    needed = NEEDED_BY_AGGREGATOR.get(kind)
    if needed is not None and parts.get(needed) is None:
        reading.refuse(parts.node, f"the key {needed!r} is missing")
    if kind == "safety_gate" and not parts.value("required") and not any(map(is_required, members)):
        reading.refuse(parts.node, "this gate guards nothing: name its members under 'required'")
    names = Counter(member.name for member in members if member.name is not None)
    for name, part in _named(parts):
        if name not in names:
            reading.refuse(part, f"{name!r} is the name of no member{nearest(name, list(names))}")
        elif names[name] > 1:
            reading.refuse(part, f"{name!r} is the name of {names[name]} members")


def _named(parts: Parts) -> Iterator[tuple[str, Node]]:
    """The names of members that the aggregator goes by, each with its place."""
    required, weights = parts.get("required"), parts.get("weights")
    if required is not None:
        yield from ((item.value, item) for item in required.items())
    if weights is not None:
        yield from ((name, weights.child(name)) for name in weights.value)


COMPOSITE_FORMS = (
    Form(("composite", "assert_set"), Composite, COMPOSITE_KEYS, _composite, ("composite",), later=("assert_set",)),
)
