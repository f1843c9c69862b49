"""The keys of a whole eval file, in all dialects."""

import difflib
from collections.abc import Collection, Mapping

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.model.json_values import strictly_equal

TESTS_KEYS = ("tests", "evalcases", "eval_cases", "cases")
"""The names that the list of tests has had."""
TOP_LEVEL_KEYS: Mapping[str, str] = {
    **dict.fromkeys(TESTS_KEYS, "the tests"),
    "name": "the suite's name",
    "suite": "the suite that the tests belong to",
    "description": "what the tests are about",
    "version": "of the format or of the suite; not used",
    "author": "not used",
    "license": "not used",
    "requires": "versions of other tools; not used",
    "category": "not used",
    "tags": "tags of every test",
    "metadata": "of every test",
    "governance": "of every test's metadata",
    "$schema": "the schema for editors; not used",
    "defaults": "a place for YAML anchors, or names of another tool's providers; not used",
    "input": "messages before those of every test",
    "input_files": "files attached to every test",
    "assert": "graders of every test",
    "assertions": "graders of every test",
    "evaluators": "graders of every test",
    "rubrics": "rubric items of every test",
    "execution": "target, limits, repeats, and in older files graders",
    "experiment": "target, limits and repeats",
    "run": "limits and repeats",
    "policy": "limits and repeats",
    "workspace": "the folder that the agent works in",
    "environment": "the folder that the agent works in",
    "threshold": "the score that passes",
    "timeout_seconds": "seconds for one trial",
    "budget_usd": "dollars for the whole suite",
    "target": "the agent's name in the other tool",
    "targets": "the agents' names in the other tool",
    "providers": "the agents' names in the other tool",
    "preprocessors": "programs that turn files into text for graders",
    "extensions": "programs of the other tool",
    "prompts": "templates that every test's variables go into",
    "default_test": "what every test has in addition",
    "scenarios": "lists of variables, each with the same tests",
    "evaluate_options": "repeats and limits",
    "compat": "whose scores are reproduced",
    "env": "values for `{{ env.NAME }}`",
}
_PRIVATE = "x-"


def check_top_level(root: Node, complaints: Complaints) -> None:
    """Every key of an eval file must be known; keys that begin with `x-` are the file's own."""
    for key in root.value:
        if key not in TOP_LEVEL_KEYS and not key.startswith(_PRIVATE):
            close = difflib.get_close_matches(key, list(TOP_LEVEL_KEYS), n=1)
            remedy = f"did you mean {close[0]!r}?" if close else f"keys of your own begin with `{_PRIVATE}`"
            complaints.problems.append(root.child(key).problem(f"unknown key; {remedy}", at_key=True))


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
