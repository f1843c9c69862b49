"""What the shipped schemas of eval files say of documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.schema_check import check_schema
from tests.builders import REPOSITORY

CORPUS = REPOSITORY.parent / "shared/corpus"
_TESTS = ("tests", "evalcases", "eval_cases", "cases")


def _schema(name: str) -> Any:
    return json.loads((REPOSITORY / f"schema/{name}.schema.json").read_text(encoding="utf-8"))


def answers(name: str, said: Any) -> list[str]:
    """What a schema refuses in a document or a file, as `path: message`."""
    document = read_document(said, said.name) if isinstance(said, Path) else Document("file", said)
    assert document.problems == []
    found = check_schema(document, Draft202012Validator(_schema(name)))
    return [f"{problem.path}: {problem.message}" for problem in found]


def described_everywhere(name: str) -> list[str]:
    """The keys of files, tests and graders that say nothing of what they mean."""
    schema = _schema(name)
    places = {"": schema, **schema["$defs"]}
    return [
        f"{place}.{key}"
        for place, value in places.items()
        for key, inner in value.get("properties", {}).items()
        if "description" not in inner | places.get(inner.get("$ref", "-").rsplit("/", 1)[-1], {})
    ]


def files_below(pattern: str) -> Iterator[Path]:
    """The eval files of a part of the corpus that are YAML as passgate reads it."""
    for folder in sorted(CORPUS.glob(pattern)):
        for file in sorted(folder.rglob("*.y*ml")):
            document = read_document(file, file.name)
            if not document.problems and isinstance(document.data, dict) and set(_TESTS) & set(document.data):
                yield file


TEST = {"id": "a", "criteria": "b", "input": "c"}
OLD = {"id": "a", "expected_outcome": "b", "input_messages": [{"role": "user", "content": "c"}]}


def problems(**said: Any) -> list[str]:
    return answers("eval", {"name": "my-eval", "tests": [TEST], **said})


def agentv_problems(**said: Any) -> list[str]:
    return answers("agentv", {"tests": [TEST], **said})


@pytest.mark.parametrize("key", ["tests", "evalcases", "eval_cases", "cases"])
def test_the_tests_have_several_names(key: str) -> None:
    for tests in ([TEST, OLD, "./more.yaml"], "./cases.jsonl"):
        assert answers("eval", {"name": "my-eval", key: tests}) == []


def test_graders_of_the_file_are_enough_for_a_test() -> None:
    tests = [{"id": "a", "input": "b"}]
    assert problems(tests=tests, **{"assert": [{"type": "is_json"}]}) == []
    assert agentv_problems(tests=tests, assertions=["It is kind."]) == []


def test_graders_of_both_generations_are_known() -> None:
    judge = {"name": "a", "type": "llm_judge", "prompt": "./a.md", "weight": 2.0}
    code = {"name": "b", "type": "code_judge", "script": ["python", "a.py"], "anything": 1}
    item = {"id": "a", "expected_outcome": "b", "score_ranges": {"0": "c", "10": "d"}}
    gate = {"type": "safety_gate", "required": ["a"]}
    graders = [
        {"name": "g", "type": "composite", "evaluators": [judge, code], "aggregator": gate},
        {"type": "rubric", "rubrics": ["a", item]},
        {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "a", "args": "any"}]},
        {"type": "field_accuracy", "fields": [{"path": "a", "match": "regex"}], "aggregation": "minimum"},
        {"type": "execution_metrics", "max_input_tokens": 3},
        {"type": "skill-trigger", "skill": "a", "should_trigger": False},
        {"type": "contains", "value": "a", "required": 0.5},
        {"type": "equals", "value": 42},
        "It is kind.",
    ]
    assert problems(**{"assert": graders}) == []
    execution = {"target": "default", "timeout_seconds": 300, "evaluators": graders}
    assert answers("eval", {"name": "x", "execution": execution, "evalcases": [{**OLD, "execution": execution}]}) == []


@pytest.mark.parametrize(
    ("name", "said", "problem"),
    [
        ("eval", {"tests": []}, "tests: must not be empty"),
        ("eval", {"tests": [{"criteria": "a", "input": "b"}]}, "tests[0]: the key 'id' is missing"),
        ("eval", {"tests": [{"id": "a", "criteria": "b"}]}, "tests[0]: one of these keys is needed: input, "),
        ("eval", {"tests": [{"id": "a", "input": "b"}]}, "tests[0]: one of these keys is needed: criteria, "),
        ("eval", {"tests": [TEST | {"critera": "b"}]}, "tests[0].critera: unknown key; did you mean 'criteria'?"),
        ("eval", {"name": "My Eval"}, "name: 'My Eval' does not match "),
        ("eval", {"name": "my--eval"}, "name: 'my--eval' does not match "),
        ("eval", {"assert": [{"type": "llm_juge"}]}, 'assert[0].type: "llm_juge" is not one of the allowed values'),
        (
            "eval",
            {"tests": [TEST | {"assert": [{"type": "contains"}]}]},
            "tests[0].assert[0]: the key 'value' is missing",
        ),
        ("eval", {"assert": [{"type": "is_json", "weight": -1}]}, "assert[0].weight: must be at least 0, not -1"),
        (
            "eval",
            {"tests": [TEST | {"rubrics": [{"id": "a", "wight": 2}]}]},
            "tests[0].rubrics[0].wight: unknown key; did",
        ),
        ("eval", {"tests": [TEST | {"input": [{"role": "human"}]}]}, 'tests[0].input[0].role: "human" is not one of '),
        ("eval", {"execution": {"timeout_seconds": 0}}, "execution.timeout_seconds: must be at least 1, not 0"),
        ("agentv", {"tests": [{"criteria": "a"}]}, "tests[0]: the key 'id' is missing"),
        ("agentv", {"tests": [{"id": "a", "input": "b"}]}, "tests[0]: one of these keys is needed: criteria, "),
        ("agentv", {"tests": [{"include": "a.yaml"}]}, "tests[0]: the key 'type' is missing"),
        ("agentv", {"tests": [{"include": "a.yaml", "type": "suites"}]}, 'tests[0].type: "suites" is not one of '),
        ("agentv", {"assertions": [{"type": "contians"}]}, 'assertions[0].type: "contians" is not one of the allowed '),
        ("agentv", {"assertions": [{"type": "rubrics"}]}, "assertions[0]: one of these keys is needed: criteria, rubr"),
        ("agentv", {"assertions": [{"include": "a", "x": 1}]}, "assertions[0].x: unknown key; known: include"),
        ("agentv", {"execution": {"trials": {"count": 0}}}, "execution.trials.count: must be at least 1, not 0"),
        (
            "agentv",
            {"workspace": {"repos": [{"path": "a"}]}},
            "workspace.repos[0]: one of these keys is needed: repo, url",
        ),
        ("agentv", {"experimnt": {}}, "experimnt: unknown key; did you mean 'experiment'?"),
    ],
)
def test_mistakes_are_refused(name: str, said: dict[str, Any], problem: str) -> None:
    (found,) = problems(**said) if name == "eval" else agentv_problems(**said)
    assert found.startswith(problem)


def test_a_file_needs_tests() -> None:
    assert answers("eval", {"name": "x"}) == [": one of these keys is needed: tests, evalcases, eval_cases, cases"]


@pytest.mark.parametrize("name", ["eval", "agentv"])
def test_every_key_of_a_file_and_a_test_says_what_it_means(name: str) -> None:
    assert described_everywhere(name) == []


def test_a_suite_or_a_wrapper_is_accepted() -> None:
    graders = [
        "It is kind.",
        {"include": "safe"},
        {"type": "icontains-any", "value": ["a"], "negate": True},
        {"type": "code-grader", "command": ["bun", "a.ts"], "target": {"max_calls": 3}, "extra": 1},
        {"type": "execution-metrics", "maxToolCalls": 3, "max_cost_usd": 0.1},
        {"type": "llm-grader", "prompt": {"command": ["a"]}, "preprocessors": [{"type": "xlsx"}]},
        {"type": "composite", "aggregator": {"type": "code-grader", "path": "a"}, "assertions": [{"type": "is-json"}]},
    ]
    test = {
        **TEST,
        "input": [{"role": "user", "content": [{"type": "file", "value": "a.md"}]}],
        "expected_output": {"a": 1},
        "assertions": graders,
        "execution": {"skip_defaults": True},
        "run": {"threshold": 0.7, "repeat": {"count": 2, "strategy": "pass_all"}},
    }
    hooks, repos = {"before_all": {"command": ["a"]}}, [{"repo": "a/b", "base_commit": "c"}]
    include = {"include": "a.eval.yaml", "type": "suite", "select": {"test_ids": ["a*"]}, "run": {"threshold": 0.5}}
    assert (
        agentv_problems(
            tests=[test, "./cases/*.yaml", include],
            workspace={"template": "./w", "repos": repos, "hooks": hooks},
            experiment={"name": "x", "target": "a", "targets": [{"name": "b"}, "c"], "repeat": 3, "threshold": 0.5},
            input="Be kind.",
            **{"x-owner": {"a": 1}, "$schema": "a"},
        )
        == []
    )
    assert agentv_problems(tests="./cases/", experiment={"repeat": {"count": 2}}) == []


EXAMPLE = "patterns__multi-turn__09.yaml"
REFUSED = {
    EXAMPLE: ": the key 'name' is missing",
    "trace-file-demo.eval.yaml": "input: unknown key",
    "docs__graders__custom-assertions__02.yaml": '"word-count" is not one of',
    "docs__guides__agent-eval-layers__05.yaml": "sidebar: unknown key",
    "docs__guides__eval-authoring__04.yaml": "one of these keys is needed",
}
"""What is wrong in files of others: keys that nothing reads, a program that is not there, a test without a goal."""


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of eval files is not here")
@pytest.mark.parametrize(
    ("name", "part", "refused"),
    [
        ("eval", "agentevals*", {EXAMPLE}),
        ("agentv", "agentv/v4.42.4", {*REFUSED} - {EXAMPLE}),
        ("agentv", "agentv/seed-9022d87", {*REFUSED} - {EXAMPLE}),
        ("agentv", "agentv-docs-seed/files", {*REFUSED} - {EXAMPLE}),
    ],
)
def test_the_files_of_the_corpus_are_accepted(name: str, part: str, refused: set[str]) -> None:
    files = [file for file in files_below(part) if name == "agentv" or file.parent.name != "tests"]
    found = {file.name: said for file in files if (said := answers(name, file))}
    assert len(files) > 20
    assert set(found) <= refused, found
    for file, said in found.items():
        assert REFUSED[file] in said[0]
