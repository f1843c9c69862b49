from typing import Any

import pytest

from passgate.tasks.formats.evals.write.tests import only_passgates, written_criteria, written_grader, written_test

TASK: dict[str, Any] = {
    "task_id": "t",
    "suite": "golden",
    "description": "",
    "inputs": {"prompt": "Hi"},
    "graders": [{"type": "contains", "value": "x"}],
    "tracked_metrics": ["tokens", "latency", "cost", "tool_use"],
    "scoring": {"rule": "weighted_average"},
}


def test_messages_are_written_with_their_calls() -> None:
    messages = [
        {"role": "user", "content": [{"type": "file", "value": "./a.md"}]},
        {"role": "assistant", "tool_calls": [{"tool": "get", "arguments": {"x": 1}, "result": "y"}]},
    ]
    test = written_test({**TASK, "inputs": {"messages": messages}, "expected_messages": messages[1:]})
    calls = [{"tool": "get", "input": {"x": 1}, "output": "y"}]
    assert test["input"] == [
        {"role": "user", "content": [{"type": "file", "value": "./a.md"}]},
        {"role": "assistant", "tool_calls": calls},
    ]
    assert test["expected_output"] == [{"role": "assistant", "tool_calls": calls}]


def test_a_conversation_is_turns() -> None:
    turns = {
        "type": "turns",
        "turns": [{"assertions": [{"type": "contains", "value": "a"}]}, {"expected_output": "b"}],
        "conversation": [{"type": "contains", "value": "c"}],
        "on_turn_failure": "stop",
    }
    test = written_test({**TASK, "environment": {"user": {"says": ["And then?"]}}, "graders": [turns]})
    assert test["mode"] == "conversation"
    assert test["turns"] == [
        {"input": "Hi", "assert": [{"type": "contains", "value": "a"}]},
        {"input": "And then?", "expected_output": "b"},
    ]
    assert test["assert"] == [{"type": "contains", "value": "c"}]
    assert test["on_turn_failure"] == "stop"
    assert "input" not in test


def test_turns_that_nobody_says_are_a_grader() -> None:
    turns = {"type": "turns", "turns": [{"assertions": [{"type": "llm_grader"}]}, {}]}
    assert written_test({**TASK, "graders": [turns]})["assert"] == [
        {"type": "turns", "turns": [{"assertions": [{"type": "llm_judge"}]}, {}]}
    ]


def test_a_test_that_says_all_without_it_has_no_such_key() -> None:
    assert only_passgates(TASK, is_conversation=False) == {}


def test_everything_that_other_tools_do_not_know_is_in_it() -> None:
    own = {
        "tracked_metrics": ["tokens"],
        "gates": {"nightly": False},
        "reference": {"solution": {"script": "./s.sh"}},
        "trials": {"metric": "pass@k"},
    }
    environment = {"sandbox": "shop", "budgets": {"max_steps": 3, "max_seconds": 9}, "workspace": {}}
    said = {**TASK, **own, "environment": environment, "inputs": {"prompt": "Hi", "files": ["a"]}, "scoring": {}}
    written = {
        "inputs": {"files": ["a"]},
        "environment": {"sandbox": "shop", "budgets": {"max_steps": 3}},
        **own,
        "scoring": {"rule": "all"},
    }
    assert only_passgates(said, is_conversation=False) == {"passgate": written}


def test_a_workspace_has_its_hooks_and_its_requirements_apart() -> None:
    workspace = {
        "template": "./t",
        "before_all": {"command": ["sh", "-c", "make"]},
        "after_each": {"command": ["rm", "x"], "cwd": "./t", "timeout_seconds": 5},
        "required_commands": ["git"],
        "environment": {"A": "b"},
    }
    test = written_test({**TASK, "environment": {"workspace": workspace}})
    assert test["workspace"] == {
        "template": "./t",
        "hooks": {"before_all": "make", "after_each": {"command": ["rm", "x"], "cwd": "./t", "timeout_seconds": 5}},
        "env": {"required_commands": ["git"]},
    }
    assert test["environment"] == {"type": "host", "env": {"A": "b"}}


def test_a_workspace_of_which_nothing_is_said_is_one_all_the_same() -> None:
    assert written_test({**TASK, "environment": {"workspace": {}}})["workspace"] == {"repos": []}


def test_what_is_not_said_is_not_written() -> None:
    assert written_test(TASK) == {
        "id": "t",
        "suite": "golden",
        "input": "Hi",
        "assert": [{"type": "contains", "value": "x"}],
    }


def test_target_time_and_threshold_stand_under_execution() -> None:
    said = {
        **TASK,
        "target": "azure",
        "environment": {"budgets": {"max_seconds": 30}},
        "scoring": {"rule": "weighted_average", "threshold": 0.5},
    }
    assert written_test(said)["execution"] == {"target": "azure", "timeout_seconds": 30, "threshold": 0.5}


def test_trials_are_repeats() -> None:
    assert written_test({**TASK, "trials": {"k": 3}})["run"] == {"repeat": 3}
    both = written_test({**TASK, "trials": {"k": 3, "metric": "pass^k"}})
    assert both["run"] == {"repeat": {"count": 3, "strategy": "pass_all"}}


def test_the_judge_of_the_criteria_need_not_be_said() -> None:
    judge = [{"type": "llm_grader"}]
    assert "assert" not in written_test({**TASK, "criteria": "Is kind.", "graders": judge})
    assert written_test({**TASK, "graders": judge})["assert"] == [{"type": "llm_judge"}]


def test_a_rubric_that_comes_first_is_that_of_the_test() -> None:
    rubric = {"type": "rubrics", "criteria": [{"id": "rubric-1", "outcome": "is kind"}]}
    test = written_test({**TASK, "graders": [rubric, *TASK["graders"]]})
    assert test["rubrics"] == ["is kind"]
    assert [grader["type"] for grader in test["assert"]] == ["contains"]
    weighted = written_test({**TASK, "graders": [{**rubric, "weight": 2}]})
    assert "rubrics" not in weighted


def test_a_time_that_execution_cannot_say_stands_under_run() -> None:
    for seconds in (0.5, 7200):
        written = written_test({**TASK, "environment": {"budgets": {"max_seconds": seconds}}})
        assert (written["run"], "execution" in written) == ({"timeout_seconds": seconds}, False)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (
            {"type": "contains", "value": "x", "weight": 2, "name": "says-x"},
            {"type": "contains", "name": "says-x", "value": "x", "weight": 2},
        ),
        (
            {"type": "code_grader", "command": ["python", "judge.py"], "cwd": "./graders"},
            {"type": "code_judge", "script": ["python", "judge.py"], "cwd": "./graders"},
        ),
        ({"type": "code_grader", "command": ["sh", "-c", "a | b"]}, {"type": "code_judge", "script": "a | b"}),
        ({"type": "llm_grader", "prompt_file": "./p.md"}, {"type": "llm_judge", "prompt": "./p.md"}),
        (
            {"type": "rubrics", "criteria": [{"id": "rubric-1", "outcome": "is kind"}], "required": True},
            {"type": "rubric", "rubrics": ["is kind"], "required": True},
        ),
        (
            {
                "type": "composite",
                "assertions": [{"type": "llm_grader", "name": "a"}],
                "aggregator": {"type": "code_grader", "command": ["agg"]},
            },
            {
                "type": "composite",
                "assertions": [{"type": "llm_judge", "name": "a"}],
                "aggregator": {"type": "code_judge", "command": ["agg"]},
            },
        ),
        ({"type": "tool_trajectory", "mode": "subset"}, {"type": "tool_trajectory", "expected": [], "mode": "subset"}),
        (
            {"type": "tool_used", "tools": ["a"], "min": 2, "negate": True},
            {"type": "trajectory:tool-used", "value": {"name": ["a"], "min": 2}, "negate": True},
        ),
        (
            {"type": "step_count", "kind": "tool", "max": 3},
            {"type": "trajectory:step-count", "value": {"type": "tool", "max": 3}},
        ),
        (
            {"type": "unavailable", "kind": "not-similar", "options": {"value": "x"}, "negate": True},
            {"type": "not-similar", "value": "x"},
        ),
        (
            {"type": "unavailable", "kind": "include", "options": {"include": "a"}},
            {"include": "a"},
        ),
        (
            {"type": "llm_rubric", "rubric": "Is it kind?"},
            {"type": "passgate:llm_rubric", "rubric": "Is it kind?"},
        ),
    ],
)
def test_a_grader_has_the_names_of_agentevals(said: dict[str, Any], written: dict[str, Any]) -> None:
    assert written_grader(said) == written
    assert list(written_grader(said)) == list(written)


def test_an_item_of_a_rubric_that_is_more_than_a_text_is_a_mapping() -> None:
    spans = [{"low": 0, "high": 4, "outcome": "bad"}, {"low": 5, "high": 10, "outcome": "good"}]
    items = [
        {"id": "own", "outcome": "is kind"},
        {"id": "rubric-2", "outcome": "is short", "weight": 2},
        {"id": "rubric-3", "score_ranges": spans},
    ]
    assert written_criteria(items) == [
        {"id": "own", "outcome": "is kind"},
        {"id": "rubric-2", "outcome": "is short", "weight": 2},
        {
            "id": "rubric-3",
            "score_ranges": [
                {"score_range": [0, 4], "outcome": "bad"},
                {"score_range": [5, 10], "outcome": "good"},
            ],
        },
    ]
