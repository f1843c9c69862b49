"""The keys of a whole eval file, in all dialects."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import Field

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.runtime import GraderLists, LimitWords
from passgate.tasks.formats.evals.words import word
from passgate.tasks.formats.folder import TESTS_KEYS

_REPEAT = "unknown key; write `evaluate_options: {repeat: N}`"
_PROMPTS = "unknown key; name the prompts of a test under its `prompts`"


class SuiteWords(LimitWords, GraderLists):
    """An eval file."""

    NULL = frozenset({"name", "version", "description"})
    OWN_PREFIX = "x-"
    NESTED = ""
    EXPECTED = {
        "name": "1 to 64 lower-case letters, digits and single hyphens, as in code-review",
        "version": "a version, as in 1.0",
    }
    # Keys that the other tool has or had.
    REFUSED = {
        **dict.fromkeys(("repeat", "runs"), _REPEAT),
        "provider_prompt_map": _PROMPTS,
        "derived_metrics": "unknown key; ask the history for it, or write a `script` grader that gives it as its score",
        "early_exit": "unknown key; leave it out: trials that cannot change the verdict are not run",
        "evaluator": "unknown key; write `assert`",
        "expected_output": "unknown key; write it into each test, or as `default_test: {vars: {expected_output: ...}}`",
        "graders": "unknown key; name the judge in gates.yaml, under `judge`",
        "imports": "unknown key; write `tests: [{include: PATH, type: suite}]`",
        "model": "unknown key; name it with --agent, as in openai:MODEL, or in agents.yaml",
        "nunjucks_filters": "unknown key; write the finished texts into `vars`",
        "on_run_complete": "unknown key; write `extensions: [file://PATH:afterAll]`",
        "output_path": "unknown key; leave it out: `passgate run --json` and `passgate report` give the results",
        "workers": "unknown key; write `concurrency` into gates.yaml, or --jobs",
    }

    # One letter is enough: one page of the formats says from 1 character on, another from 2.
    name: Annotated[str, Field(pattern=r"^[a-z](-?[a-z0-9])*$", max_length=64)] = word("The suite's name.")
    version: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$")] | float = word(
        "Version of the format or of the suite; not used."
    )
    description: Annotated[str, Field(max_length=2048)] = word("What the tests are about.")
    suite: str = word("The suite of passgate that the tests belong to, where their folder does not say it.")
    tests: Any = word("The tests, or the path of a file or folder with tests.", *TESTS_KEYS)
    input: Any = word("Messages before those of every test.")
    input_files: list[str] | str = word("Files attached to every test whose input is a text.")
    rubrics: Any = word("Items of a rubric for every test.")
    execution: Any = word("How the tests are run.")
    experiment: Any = word("How the tests are run.")
    run: Any = word("How the tests are run.")
    policy: Any = word("How the tests are run.")
    evaluate_options: Any = word("Repeats and limits.")
    target: Any = word("An agent of targets.yaml; passgate takes the one of --agent.")
    targets: Any = word("Agents of targets.yaml; passgate takes the one of --agent.")
    providers: Any = word("The agents' names in the other tool.")
    workspace: Any = word("The folder that the agent works in, or the file that says it.")
    environment: Any = word("The folder that the agent works in, and its variables.")
    extensions: Any = word("Functions of modules around the trials.")
    tags: list[Any] | dict[str, Any] | str = word("Tags of every test.")
    metadata: dict[str, Any] = word("Metadata of every test.")
    governance: dict[str, Any] = word("Goes into every test's metadata: owasp, mitre, controls, risk_tier, owner.")
    prompts: Any = word("Templates that every test's variables go into.")
    default_test: Any = word("What every test has in addition.")
    scenarios: Any = word("Lists of variables, each with the same tests.")
    env: Any = word("Values for `{{ env.NAME }}`.")
    defaults: Any = word("A place for YAML anchors, or names of another tool's providers; not used.")
    preprocessors: Any = word("Programs that turn files into text for graders; passgate has none.")
    author: Any = word("Who wrote it.")
    license: Any = word("As in Apache-2.0.")
    requires: Any = word("Versions of other tools; not used.")
    category: Any = word("What kind of tests they are.")
    schema_: Any = word("The schema for editors.", "$schema")


def without_tests(root: Node) -> Problem:
    """Return what is wrong with an eval file that has no tests under any name."""
    empty = next((key for key in TESTS_KEYS if key in root.value), None)
    if empty is not None:
        return root.child(empty).problem("there are no tests", at_key=True)
    close = [key for key in root.value if get_close_matches(key, TESTS_KEYS, n=1)]
    if close:
        return root.child(close[0]).problem("unknown key; did you mean 'tests'?", at_key=True)
    return root.problem("there are no tests: the key 'tests' is missing")


def has_tests(keys: Collection[str]) -> bool:
    """Return whether a mapping with these keys is an eval file with tests of its own."""
    return any(key in keys for key in (*TESTS_KEYS, "scenarios"))
