"""The schema of EVAL.yaml."""

from typing import Any

import pytest

from tests.unit.formats.evals.schema_answers import CORPUS, answers, described_everywhere, files_below

TEST = {"id": "a", "criteria": "b", "input": "c"}
OLD = {"id": "a", "expected_outcome": "b", "input_messages": [{"role": "user", "content": "c"}]}


def problems(**said: Any) -> list[str]:
    return answers("eval", {"name": "my-eval", **said})


@pytest.mark.parametrize("key", ["tests", "evalcases", "eval_cases", "cases"])
def test_the_tests_have_several_names(key: str) -> None:
    assert problems(**{key: [TEST, OLD, "./more.yaml"]}) == []
    assert problems(**{key: "./cases.jsonl"}) == []


def test_graders_of_both_generations_are_known() -> None:
    judge = {"name": "a", "type": "llm_judge", "prompt": "./a.md", "weight": 2.0}
    code = {"name": "b", "type": "code_judge", "script": ["python", "a.py"], "anything": 1}
    item = {"id": "a", "expected_outcome": "b", "score_ranges": {"0": "c", "10": "d"}}
    gate = {
        "name": "g",
        "type": "composite",
        "evaluators": [judge, code],
        "aggregator": {"type": "safety_gate", "required": ["a"]},
    }
    rest = [
        {"type": "rubric", "rubrics": ["a", item]},
        {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "a", "args": "any"}]},
        {"type": "field_accuracy", "fields": [{"path": "a", "match": "regex"}], "aggregation": "minimum"},
        {"type": "execution_metrics", "max_input_tokens": 3},
        {"type": "skill-trigger", "skill": "a", "should_trigger": False},
        {"type": "contains", "value": "a", "required": 0.5},
        {"type": "equals", "value": 42},
        "It is kind.",
    ]
    assert problems(**{"assert": [judge, code, gate, *rest]}, tests=[TEST]) == []
    execution = {"target": "default", "timeout_seconds": 300, "evaluators": [judge, code, gate, *rest]}
    assert problems(execution=execution, evalcases=[{**OLD, "execution": execution}]) == []


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, ": one of these keys is needed: tests, evalcases, eval_cases, cases"),
        ({"tests": []}, "tests: must not be empty"),
        ({"tests": [{"criteria": "a", "input": "b"}]}, "tests[0]: the key 'id' is missing"),
        ({"tests": [{"id": "a", "criteria": "b"}]}, "tests[0]: one of these keys is needed: input, input_messages"),
        ({"tests": [{"id": "a", "input": "b"}]}, "tests[0]: one of these keys is needed: criteria, expected_outcome, "),
        ({"tests": [{**TEST, "critera": "b"}]}, "tests[0].critera: unknown key; did you mean 'criteria'?"),
        ({"tests": [TEST], "name": "My Eval"}, "name: 'My Eval' does not match "),
        ({"tests": [TEST], "name": "my--eval"}, "name: 'my--eval' does not match "),
        (
            {"tests": [{**TEST, "assert": [{"type": "llm_juge", "prompt": "a"}]}]},
            "tests[0].assert[0].type: \"llm_juge\" is not one of the allowed values; did you mean 'llm_judge'?",
        ),
        ({"tests": [{**TEST, "assert": [{"type": "contains"}]}]}, "tests[0].assert[0]: the key 'value' is missing"),
        (
            {"tests": [{**TEST, "assert": [{"type": "is_json", "weight": -1}]}]},
            "tests[0].assert[0].weight: must be at least 0, not -1",
        ),
        (
            {"tests": [{**TEST, "rubrics": [{"id": "a", "outcome": "b", "wight": 2}]}]},
            "tests[0].rubrics[0].wight: unknown key; did you mean 'weight'?",
        ),
        ({"tests": [{**TEST, "input": [{"role": "human"}]}]}, 'tests[0].input[0].role: "human" is not one of '),
        (
            {"tests": [TEST], "execution": {"timeout_seconds": 0}},
            "execution.timeout_seconds: must be at least 1, not 0",
        ),
    ],
)
def test_mistakes_are_refused(said: dict[str, Any], problem: str) -> None:
    (found,) = problems(**said)
    assert found.startswith(problem)


def test_graders_of_the_file_are_enough_for_a_test() -> None:
    assert problems(tests=[{"id": "a", "input": "b"}], **{"assert": [{"type": "is_json"}]}) == []


def test_every_key_of_a_file_and_a_test_says_what_it_means() -> None:
    assert described_everywhere("eval") == []


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of eval files is not here")
def test_the_files_of_the_corpus_are_accepted() -> None:
    files = [file for file in files_below("agentevals*") if file.parent.name != "tests"]
    refused = {file.name: found for file in files if (found := answers("eval", file))}
    assert len(files) > 20
    assert set(refused) == {"patterns__multi-turn__09.yaml"}, refused
    assert refused["patterns__multi-turn__09.yaml"] == [": the key 'name' is missing"]
