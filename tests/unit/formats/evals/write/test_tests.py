"""Tasks as tests of eval files."""

from typing import Any

from passgate.tasks.formats.evals.write.tests import written_test

TASK: dict[str, Any] = {
    "task_id": "t",
    "suite": "golden",
    "description": "",
    "inputs": {"prompt": "Hi"},
    "graders": [{"type": "contains", "value": "x"}],
    "tracked_metrics": ["tokens", "latency", "cost", "tool_use"],
    "scoring": {"rule": "weighted_average"},
}


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
