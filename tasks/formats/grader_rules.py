"""What a schema cannot say of a grader: it must be able to fail, and its paths, patterns and names must be right."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import Finding, check_json_schema, check_path, check_text, read_text
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
from passgate.tasks.model.graders import (
    Aggregator,
    CommandCheck,
    Composite,
    DeterministicTests,
    FileCheck,
    Grader,
    LlmRubric,
    OutputCheck,
    PolicyCheck,
    SqliteCheck,
    StateCheck,
    StaticAnalysis,
    ToolCalls,
    TrajectoryMetrics,
    Turns,
)
from passgate.tasks.model.javascript_regex import regex_problem

NEEDED_BY_AGGREGATOR = {"threshold": "threshold", "code_grader": "command", "llm_grader": "prompt"}
"""What a kind of aggregator cannot be without."""
_ONE_NEEDED: Mapping[type[Grader], tuple[str, ...]] = {
    ToolCalls: ("required", "forbidden"),
    TrajectoryMetrics: tuple(sorted({*TrajectoryMetrics.model_fields} - {"type", "name", "weight"})),
    PolicyCheck: ("deny_tools", "deny_output", "arguments", "secrets", "canaries"),
    OutputCheck: ("equals", "contains", "not_contains", "matches", "json_schema"),
    ToolTrajectory: ("expected", "minimums"),
    StepCount: ("min", "max"),
    TokenUsage: ("max_total", "max_input", "max_output"),
    ExecutionMetrics: (
        *("max_tool_calls", "max_llm_calls", "max_tokens", "max_input_tokens", "max_output_tokens"),
        *("max_cost_usd", "max_duration_ms", "target_exploration_ratio"),
    ),
}
"""Options of which a grader has one at least: without any it cannot fail."""


def grader_findings(grader: Grader, root: Path) -> Iterator[Finding]:
    """Everything wrong with a grader whose shape is right, with paths inside of the grader."""
    keys, fields = _ONE_NEEDED.get(type(grader), ()), type(grader).model_fields
    # No calls at all can be what is expected.
    may_be_empty = isinstance(grader, ToolTrajectory) and grader.mode in {"exact", "subset"}
    if keys and not may_be_empty and all(getattr(grader, key) == fields[key].default for key in keys):
        yield (), f"this grader cannot fail: give at least one of {', '.join(keys)}"
    check = _RULES.get(type(grader))
    if check is not None:
        yield from check(grader, root)


def is_required(member: Grader) -> bool:
    """Whether a member says of itself that it is required."""
    return getattr(member, "required", None) is True


def _deterministic_tests(grader: DeterministicTests, root: Path) -> Iterator[Finding]:
    for index, name in enumerate(grader.tests):
        yield from check_path(("tests", index), name, root)


def _static_analysis(grader: StaticAnalysis, root: Path) -> Iterator[Finding]:
    for tool, name in grader.configuration.items():
        yield from check_path(("configuration", tool), name, root)


def _state_check(grader: StateCheck, root: Path) -> Iterator[Finding]:
    for index, check in enumerate(grader.expect):
        path: DocumentPath = ("expect", index)
        if isinstance(check, FileCheck):
            yield from _pattern((*path, "matches"), check.matches)
            yield from _inside((*path, "file"), check.file)
        elif isinstance(check, SqliteCheck):
            yield from _inside((*path, "sqlite"), check.sqlite)
            if not check.model_fields_set & {"rows", "value", "min_rows", "max_rows"}:
                yield path, "this check cannot fail: give at least one of rows, value, min_rows, max_rows"
        elif isinstance(check, CommandCheck):
            yield from _pattern((*path, "stdout_matches"), check.stdout_matches)
        else:
            yield from _inside((*path, "json_file"), check.json_file)
            if not check.model_fields_set & {"equals", "one_of", "absent"}:
                yield path, "this check cannot fail: give at least one of equals, one_of, absent"


def _inside(path: DocumentPath, name: str) -> Iterator[Finding]:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        yield path, f"{name!r} is outside the workspace"


def _pattern(path: DocumentPath, pattern: str | None) -> Iterator[Finding]:
    try:
        re.compile(pattern or "")
    except (re.error, OverflowError, RecursionError) as error:
        yield path, f"not a regular expression: {error}"


def _policy_check(grader: PolicyCheck, root: Path) -> Iterator[Finding]:
    for index, pattern in enumerate(grader.deny_output):
        yield from _pattern(("deny_output", index), pattern)
    for index, rule in enumerate(grader.arguments):
        if not rule.allow and not rule.deny:
            yield ("arguments", index), "this rule cannot fail: give allow or deny"


def _output_check(grader: OutputCheck, root: Path) -> Iterator[Finding]:
    yield from _pattern(("matches",), grader.matches)
    if grader.json_schema is not None:
        yield from check_json_schema(("json_schema",), grader.json_schema)


def _llm_rubric(grader: LlmRubric, root: Path) -> Iterator[Finding]:
    if grader.rubric.endswith((".md", ".txt")):
        yield from check_path(("rubric",), grader.rubric, root)


def _regex(grader: Regex, root: Path) -> Iterator[Finding]:
    problem = regex_problem(grader.value, grader.flags)
    if problem is not None:
        yield ("value",), problem


def _is_json(grader: IsJson, root: Path) -> Iterator[Finding]:
    if grader.value is not None:
        yield from check_json_schema(("value",), grader.value)


def _folder(grader: CodeGrader | ScriptAssertion, root: Path) -> Iterator[Finding]:
    return check_path(("cwd",), grader.cwd, root)


def _prompt_file(grader: LlmGrader, root: Path) -> Iterator[Finding]:
    if grader.prompt_file is None:
        return
    problems = list(check_text(("prompt_file",), grader.prompt_file, root))
    yield from problems
    if not problems and grader.prompt and grader.prompt != read_text(root / grader.prompt_file):
        yield ("prompt_file",), "the file says something else than `prompt`: give only one of them"


def _composite(grader: Composite, root: Path) -> Iterator[Finding]:
    yield from _members(grader.assertions, ("assertions",), root)
    yield from _aggregator(grader.aggregator, grader.assertions)
    yield from check_path(("aggregator", "cwd"), grader.aggregator.cwd, root)


def _turns(grader: Turns, root: Path) -> Iterator[Finding]:
    for index, turn in enumerate(grader.turns):
        yield from _members(turn.assertions, ("turns", index, "assertions"), root)
    yield from _members(grader.conversation, ("conversation",), root)
    if not grader.conversation and not any(turn.assertions for turn in grader.turns):
        yield (), "this grader cannot fail: no turn has `assertions`"


def _members(graders: tuple[Grader, ...], path: DocumentPath, root: Path) -> Iterator[Finding]:
    for index, grader in enumerate(graders):
        for inner, message in grader_findings(grader, root):
            yield (*path, index, *inner), message


def _aggregator(aggregator: Aggregator, members: tuple[Grader, ...]) -> Iterator[Finding]:
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


_RULES: Mapping[type[Grader], Callable[..., Iterator[Finding]]] = {
    DeterministicTests: _deterministic_tests,
    StaticAnalysis: _static_analysis,
    StateCheck: _state_check,
    PolicyCheck: _policy_check,
    OutputCheck: _output_check,
    LlmRubric: _llm_rubric,
    Composite: _composite,
    Turns: _turns,
    Regex: _regex,
    IsJson: _is_json,
    CodeGrader: _folder,
    ScriptAssertion: _folder,
    LlmGrader: _prompt_file,
}
