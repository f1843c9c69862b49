"""The keys of a whole eval file, in all dialects."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.schema_check import REMOVED_KEYS, differences
from passgate.tasks.model.json_values import strictly_equal

# What the keys of a whole file hold.
ROOT_RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    # One letter is enough: one page of the formats says from 1 character on, another from 2.
    "name": {"type": "string", "pattern": r"^[a-z](-?[a-z0-9])*$", "maxLength": 64},
    "version": {"type": ["string", "number"], "pattern": r"^[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$"},
    "description": {"type": "string", "maxLength": 2048},
}
# The `timeout_seconds` of `execution`.
TIMEOUT_RULE: Final[Mapping[str, Any]] = {"type": "integer", "minimum": 1, "maximum": 3600}
_VALIDATORS: Final = {
    key: Draft202012Validator(rule) for key, rule in {**ROOT_RULES, "timeout_seconds": TIMEOUT_RULE}.items()
}
# Said in place of a pattern, which few can read.
_MEANINGS: Final = {
    "name": "1 to 64 lower-case letters, digits and single hyphens, as in code-review",
    "version": "a version, as in 1.0",
}
TESTS_KEYS = ("tests", "evalcases", "eval_cases", "cases")  # the names that the list of tests has had
TOP_LEVEL_KEYS: Mapping[str, str] = {
    **dict.fromkeys(TESTS_KEYS, "the tests"),
    "name": "the suite's name",
    "suite": "the suite that the tests belong to",
    "description": "what the tests are about",
    "version": "of the format or of the suite; not used",
    **dict.fromkeys(("author", "license"), "not used"),
    "requires": "versions of other tools; not used",
    "category": "not used",
    "tags": "tags of every test",
    "metadata": "of every test",
    "governance": "of every test's metadata",
    "$schema": "the schema for editors; not used",
    "defaults": "a place for YAML anchors, or names of another tool's providers; not used",
    "input": "messages before those of every test",
    "input_files": "files attached to every test",
    **dict.fromkeys(("assert", "assertions", "evaluators"), "graders of every test"),
    "rubrics": "rubric items of every test",
    "execution": "target, limits, repeats, and in older files graders",
    "experiment": "target, limits and repeats",
    **dict.fromkeys(("run", "policy"), "limits and repeats"),
    **dict.fromkeys(("workspace", "environment"), "the folder that the agent works in"),
    "threshold": "the score that passes",
    "timeout_seconds": "seconds for one trial",
    "budget_usd": "dollars for the whole suite",
    "target": "the agent's name in the other tool",
    "targets": "the agents' names in the other tool",
    "providers": "the agents' names in the other tool",
    "preprocessors": "programs that turn files into text for graders",
    "extensions": "functions of modules around the trials",
    "prompts": "templates that every test's variables go into",
    "default_test": "what every test has in addition",
    "scenarios": "lists of variables, each with the same tests",
    "evaluate_options": "repeats and limits",
    "env": "values for `{{ env.NAME }}`",
}
_PRIVATE = "x-"
_REPEAT = "write `evaluate_options: {repeat: N}`"
_PROMPTS = "name the prompts of a test under its `prompts`"
# Keys that the other tool has or had, and what to write in their place.
_INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("repeat", "runs"), _REPEAT),
    **dict.fromkeys(("providerPromptMap", "provider_prompt_map"), _PROMPTS),
    "derived_metrics": "ask the history for it, or write a `script` grader that gives it as its score",
    "early_exit": "leave it out: trials that cannot change the verdict are not run",
    "evaluator": "write `assert`",
    "expected_output": "write it into each test, or as `default_test: {vars: {expected_output: ...}}`",
    "graders": "name the judge in gates.yaml, under `judge`",
    "imports": "write `tests: [{include: PATH, type: suite}]`",
    "model": "name it with --agent, as in openai:MODEL, or in agents.yaml",
    "nunjucks_filters": "write the finished texts into `vars`",
    "on_run_complete": "write `extensions: [file://PATH:afterAll]`",
    "output_path": "leave it out: `passgate run --json` and `passgate report` give the results",
    "workers": "write `concurrency` into gates.yaml, or --jobs",
}


def check_execution(execution: Node, complaints: Complaints) -> None:
    """What is wrong with the time-out of an `execution`."""
    _check_key(execution, "timeout_seconds", complaints)


def is_timeout(value: Any) -> bool:
    """Whether an `execution` can say it as its time-out."""
    return bool(_VALIDATORS["timeout_seconds"].is_valid(value))


def _check_key(container: Node, key: str, complaints: Complaints) -> None:
    for difference in differences(container.value[key], _VALIDATORS[key])[:1] if key in container.value else ():
        message = f"expected {_MEANINGS[key]}" if key in _MEANINGS else difference.message
        complaints.problems.append(container.child(key).problem(message))


def check_top_level(root: Node, complaints: Complaints) -> None:
    """Refuse unknown keys, unless they begin with `x-`, and a name, version or description of another form."""
    for key in root.value:
        if key not in TOP_LEVEL_KEYS and not key.startswith(_PRIVATE):
            complaints.problems.append(root.child(key).problem(_unknown_key(key), at_key=True))
    for key in ROOT_RULES:
        _check_key(root, key, complaints)


def _unknown_key(key: str) -> str:
    if key in REMOVED_KEYS:
        return f"removed key: {REMOVED_KEYS[key]}"
    close = difflib.get_close_matches(key, list(TOP_LEVEL_KEYS), n=1)
    remedy = f"did you mean {close[0]!r}?" if close else f"keys of your own begin with `{_PRIVATE}`"
    return f"unknown key; {_INSTEAD.get(key, remedy)}"


def without_tests(root: Node) -> Problem:
    """What is wrong with an eval file that has no tests under any name."""
    empty = next((key for key in TESTS_KEYS if key in root.value), None)
    if empty is not None:
        return root.child(empty).problem("there are no tests", at_key=True)
    close = [key for key in root.value if difflib.get_close_matches(key, TESTS_KEYS, n=1)]
    if close:
        return root.child(close[0]).problem("unknown key; did you mean 'tests'?", at_key=True)
    return root.problem("there are no tests: the key 'tests' is missing")


def tests_of(root: Node, complaints: Complaints) -> Node | None:
    """The list of tests under any of its names; two names with different tests are a problem."""
    given = [child for child in map(root.get, TESTS_KEYS) if child is not None]
    for other in given[1:]:
        if not strictly_equal(given[0].value, other.value):
            names = f"{given[0].path[-1]!r} and {other.path[-1]!r}"
            complaints.problems.append(other.problem(f"{names} are two names of one key, and differ", at_key=True))
    return given[0] if given else None


def has_tests(keys: Collection[str]) -> bool:
    """Whether a mapping with these keys is an eval file with tests of its own."""
    return any(key in keys for key in (*TESTS_KEYS, "scenarios"))
