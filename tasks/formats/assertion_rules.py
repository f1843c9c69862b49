"""What a schema cannot say of the graders that eval files have too."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from passgate.tasks.formats.findings import Finding, check_json_schema, check_path, read_text
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model.assertions import (
    CodeGrader,
    ExecutionMetrics,
    IsJson,
    LlmGrader,
    Regex,
    ScriptAssertion,
    StepCount,
    TokenUsage,
    ToolTrajectory,
)
from passgate.tasks.model.graders import Aggregator, Composite, Grader, Turns
from passgate.tasks.model.javascript_regex import regex_problem

NEEDED_BY_AGGREGATOR = {"threshold": "threshold", "code_grader": "command", "llm_grader": "prompt"}
"""What a kind of aggregator cannot be without."""
Check = Callable[[Grader, Path], Iterator[Finding]]
"""Everything wrong with a grader whose shape is right, with paths inside of the grader."""


def assertion_rules(of_member: Check) -> Mapping[type, Callable[..., Iterator[Finding]]]:
    """The rules by the grader's type. `of_member` checks a grader that another one is made of."""

    def composite(grader: Composite, root: Path) -> Iterator[Finding]:
        yield from _members(grader.assertions, ("assertions",), root, of_member)
        yield from _aggregator(grader.aggregator, grader.assertions, root)

    def turns(grader: Turns, root: Path) -> Iterator[Finding]:
        for index, turn in enumerate(grader.turns):
            yield from _members(turn.assertions, ("turns", index, "assertions"), root, of_member)
        yield from _members(grader.conversation, ("conversation",), root, of_member)
        if not grader.conversation and not any(turn.assertions for turn in grader.turns):
            yield (), "this grader cannot fail: no turn has `assertions`"

    return {
        Composite: composite,
        Turns: turns,
        Regex: _regex,
        IsJson: _is_json,
        CodeGrader: _folder,
        ScriptAssertion: _folder,
        LlmGrader: _prompt_file,
        ToolTrajectory: _trajectory,
        StepCount: _needs_one("min", "max"),
        TokenUsage: _needs_one("max_total", "max_input", "max_output"),
        ExecutionMetrics: _needs_one(
            *("max_tool_calls", "max_llm_calls", "max_tokens", "max_input_tokens", "max_output_tokens"),
            *("max_cost_usd", "max_duration_ms", "target_exploration_ratio"),
        ),
    }


def _members(
    graders: tuple[Grader, ...], path: tuple[str | int, ...], root: Path, of_member: Check
) -> Iterator[Finding]:
    for index, grader in enumerate(graders):
        for inner, message in of_member(grader, root):
            yield (*path, index, *inner), message


def _aggregator(aggregator: Aggregator, members: tuple[Grader, ...], root: Path) -> Iterator[Finding]:
    needed = NEEDED_BY_AGGREGATOR.get(aggregator.type)
    if needed is not None and getattr(aggregator, needed) in (None, (), ""):
        yield ("aggregator",), f"the key {needed!r} is missing"
    if aggregator.type == "safety_gate" and not aggregator.required and not any(map(is_required, members)):
        yield ("aggregator",), "this gate guards nothing: name its members under `required`"
    names = Counter(member.name for member in members if member.name is not None)
    for name in (*aggregator.required, *aggregator.weights):
        if names[name] != 1:
            what = f"the name of {names[name]} members" if names[name] else "the name of no member"
            yield ("aggregator",), f"{name!r} is {what}{nearest(name, list(names)) if not names[name] else ''}"
    yield from check_path(("aggregator", "cwd"), aggregator.cwd, root)


def is_required(member: Grader) -> bool:
    """Whether a member says of itself that it is required."""
    return getattr(member, "required", None) is True


def _regex(grader: Regex, root: Path) -> Iterator[Finding]:
    problem = regex_problem(grader.value, grader.flags)
    if problem is not None:
        yield ("value",), problem


def _is_json(grader: IsJson, root: Path) -> Iterator[Finding]:
    if grader.value is not None:
        yield from check_json_schema(("value",), grader.value)


def _folder(grader: CodeGrader | ScriptAssertion, root: Path) -> Iterator[Finding]:
    yield from check_path(("cwd",), grader.cwd, root)


def _prompt_file(grader: LlmGrader, root: Path) -> Iterator[Finding]:
    if grader.prompt_file is None:
        return
    problems = list(check_path(("prompt_file",), grader.prompt_file, root))
    yield from problems
    if problems:
        return
    try:
        text = read_text(root / grader.prompt_file)
    except ValueError as error:
        yield ("prompt_file",), f"{grader.prompt_file!r} {error}"
        return
    if grader.prompt and grader.prompt != text:
        yield ("prompt_file",), "the file says something else than `prompt`: give only one of them"


def _trajectory(grader: ToolTrajectory, root: Path) -> Iterator[Finding]:
    # No calls at all can be what is expected.
    if grader.mode not in {"exact", "subset"}:
        yield from _needs_one("expected", "minimums")(grader, root)


def _needs_one(*keys: str) -> Callable[[Grader, Path], Iterator[Finding]]:
    def check(grader: Grader, root: Path) -> Iterator[Finding]:
        if all(getattr(grader, key) in (None, (), {}) for key in keys):
            yield (), f"this grader cannot fail: give at least one of {', '.join(keys)}"

    return check
