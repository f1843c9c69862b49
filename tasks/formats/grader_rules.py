"""What a schema cannot say of a grader: it must be able to fail, and its paths, patterns and names must be right."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import (
    Finding,
    check_contents,
    check_json_schema,
    check_path,
    check_text,
    read_text,
)
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model import assertions, graders
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.javascript_regex import regex_problem

# What a kind of aggregator cannot be without.
NEEDED_BY_AGGREGATOR = {"threshold": "threshold", "code_grader": "command", "llm_grader": "prompt"}
_ONE_NEEDED: Mapping[type[Grader], tuple[str, ...]] = {
    graders.ToolCalls: ("required", "forbidden"),
    graders.TrajectoryMetrics: tuple(sorted({*graders.TrajectoryMetrics.model_fields} - {"type", "name", "weight"})),
    graders.PolicyCheck: ("deny_tools", "deny_output", "arguments", "secrets", "canaries"),
    graders.OutputCheck: ("equals", "contains", "not_contains", "matches", "json_schema"),
    assertions.ToolTrajectory: ("expected", "minimums"),
    assertions.StepCount: ("min", "max"),
    assertions.TokenUsage: ("max_total", "max_input", "max_output"),
    assertions.ExecutionMetrics: (
        *("max_tool_calls", "max_llm_calls", "max_tokens", "max_input_tokens", "max_output_tokens"),
        *("max_cost_usd", "max_duration_ms", "target_exploration_ratio"),
    ),
}  # options of which a grader has one at least: without any it cannot fail


def grader_findings(grader: Grader, root: Path) -> Iterator[Finding]:
    """Everything wrong with a grader whose shape is right, with paths inside of the grader."""
    keys, fields = _ONE_NEEDED.get(type(grader), ()), type(grader).model_fields
    # No calls at all can be what is expected.
    may_be_empty = isinstance(grader, assertions.ToolTrajectory) and grader.mode in {"exact", "subset"}
    if keys and not may_be_empty and all(getattr(grader, key) == fields[key].default for key in keys):
        yield (), f"this grader cannot fail: give at least one of {', '.join(keys)}"
    for path, name in _paths(grader):
        is_tests = isinstance(grader, graders.DeterministicTests)
        check = check_path if path == ("cwd",) else partial(check_contents, is_filled=is_tests)
        yield from check(path, name, root)
    yield from _option_findings(grader)
    if isinstance(grader, assertions.LlmGrader) and grader.prompt_file is not None:
        problems = list(check_text(("prompt_file",), grader.prompt_file, root))
        yield from problems
        if not problems and grader.prompt and grader.prompt != read_text(root / grader.prompt_file):
            yield ("prompt_file",), "the file says something else than `prompt`: give only one of them"
    for path, member in _members(grader):
        for inner, message in grader_findings(member, root):
            yield (*path, *inner), message
    if isinstance(grader, graders.Composite):
        yield from _aggregator(grader.aggregator, grader.assertions)
        yield from check_path(("aggregator", "cwd"), grader.aggregator.cwd, root)
    elif isinstance(grader, graders.Turns) and not any(_members(grader)):
        yield (), "this grader cannot fail: no turn has `assertions`"


def is_required(member: Grader) -> bool:
    """Whether a member says of itself that it is required."""
    return getattr(member, "required", None) is True


def _paths(grader: Grader) -> Iterator[tuple[DocumentPath, str]]:
    match grader:
        case graders.DeterministicTests():
            yield from ((("tests", index), name) for index, name in enumerate(grader.tests))
        case graders.StaticAnalysis():
            yield from ((("configuration", tool), name) for tool, name in grader.configuration.items())
        case graders.LlmRubric() if grader.rubric.endswith((".md", ".txt")):  # any other is the rubric itself
            yield ("rubric",), grader.rubric
        case assertions.CodeGrader() | assertions.ScriptAssertion():
            yield ("cwd",), grader.cwd


def _option_findings(grader: Grader) -> Iterator[Finding]:
    match grader:
        case graders.StateCheck():
            yield from _state_findings(grader)
        case graders.PolicyCheck():
            for index, pattern in enumerate(grader.deny_output):
                yield from _pattern(("deny_output", index), pattern)
            for index, rule in enumerate(grader.arguments):
                if not rule.allow and not rule.deny:
                    yield ("arguments", index), "this rule cannot fail: give allow or deny"
        case graders.OutputCheck():
            yield from _pattern(("matches",), grader.matches)
            yield from check_json_schema(("json_schema",), grader.json_schema or {})
        case assertions.IsJson():
            yield from check_json_schema(("value",), grader.value or {})
        # JavaScript's regular expressions: eval files have no others.
        case assertions.Regex() if problem := regex_problem(grader.value, grader.flags):
            yield ("value",), problem


def _state_findings(grader: graders.StateCheck) -> Iterator[Finding]:
    for index, check in enumerate(grader.expect):
        path: DocumentPath = ("expect", index)
        if isinstance(check, graders.FileCheck):
            yield from _pattern((*path, "matches"), check.matches)
            yield from _inside((*path, "file"), check.file)
        elif isinstance(check, graders.CommandCheck):
            yield from _pattern((*path, "stdout_matches"), check.stdout_matches)
        else:
            key = "sqlite" if isinstance(check, graders.SqliteCheck) else "json_file"
            yield from _inside((*path, key), getattr(check, key))
            needed = ("rows", "value", "min_rows", "max_rows") if key == "sqlite" else ("equals", "one_of", "absent")
            if not check.model_fields_set & {*needed}:
                yield path, f"this check cannot fail: give at least one of {', '.join(needed)}"


def _inside(path: DocumentPath, name: str) -> Iterator[Finding]:
    if Path(name).is_absolute() or ".." in Path(name).parts:
        yield path, f"{name!r} is outside the workspace"


def _pattern(path: DocumentPath, pattern: str | None) -> Iterator[Finding]:
    try:
        re.compile(pattern or "")
    except (re.error, OverflowError, RecursionError) as error:
        yield path, f"not a regular expression: {error}"


def _members(grader: Grader) -> Iterator[tuple[DocumentPath, Grader]]:
    """The graders that a grader is made of."""
    if isinstance(grader, graders.Composite):
        yield from ((("assertions", index), member) for index, member in enumerate(grader.assertions))
    elif isinstance(grader, graders.Turns):
        for number, turn in enumerate(grader.turns):
            yield from ((("turns", number, "assertions", index), one) for index, one in enumerate(turn.assertions))
        yield from ((("conversation", index), member) for index, member in enumerate(grader.conversation))


def _aggregator(aggregator: graders.Aggregator, members: tuple[Grader, ...]) -> Iterator[Finding]:
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
