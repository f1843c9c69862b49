from typing import Any

import pytest

from passgate.tasks.formats.evals.write.serialise import LeavesError, Serialisation, differences, serialised_task
from passgate.tasks.model.task import TaskFile

PLAIN: dict[str, Any] = {
    "task_id": "t",
    "suite": "golden",
    "description": "",
    "inputs": {"prompt": "Hi"},
    "graders": [{"type": "contains", "value": "x"}],
    "tracked_metrics": ["cost"],
}


def said(task: dict[str, Any], allowed: str = "") -> tuple[dict[str, Any], list[str]]:
    """A task with paths in `there/`; only those that begin with `allowed` can be written."""

    def place(path: str) -> str:
        if not path.startswith(allowed):
            raise LeavesError("too far")
        return f"there/{path}"

    saying = Serialisation(place)
    return serialised_task(TaskFile.model_validate({**PLAIN, **task}), saying), [str(loss) for loss in saying.losses]


def test_defaults_are_left_out_but_not_a_value_that_is_checked_for() -> None:
    assert said({})[0] == PLAIN
    check = {"type": "state_check", "expect": [{"json_file": "a.json", "equals": None}]}
    assert said({"graders": [check]})[0]["graders"] == [check]


def test_every_path_is_written_for_its_new_place() -> None:
    graders = [
        {"type": "deterministic_tests", "tests": ["a.py"]},
        {"type": "static_analysis", "tools": ["ruff"], "configuration": {"ruff": "ruff.toml"}},
        {"type": "llm_rubric", "rubric": "kind.md"},
        {"type": "llm_rubric", "rubric": "Is it kind?"},
        {"type": "code_grader", "command": ["judge"]},
        {"type": "composite", "assertions": [{"type": "python", "value": "1", "cwd": "scripts"}]},
        {
            "type": "composite",
            "assertions": [{"type": "contains", "value": "x"}],
            "aggregator": {"type": "code_grader", "command": ["a"]},
        },
        {"type": "turns", "turns": [{"assertions": [{"type": "llm_grader", "prompt": "P", "prompt_file": "p.md"}]}]},
    ]
    written, losses = said({"graders": graders})
    assert losses == []
    assert written["graders"] == [
        {"type": "deterministic_tests", "tests": ["there/a.py"]},
        {"type": "static_analysis", "tools": ["ruff"], "configuration": {"ruff": "there/ruff.toml"}},
        {"type": "llm_rubric", "rubric": "there/kind.md"},
        {"type": "llm_rubric", "rubric": "Is it kind?"},
        {"type": "code_grader", "command": ["judge"], "cwd": "there/."},
        {"type": "composite", "assertions": [{"type": "python", "value": "1", "cwd": "there/scripts"}]},
        {
            "type": "composite",
            "assertions": [{"type": "contains", "value": "x"}],
            "aggregator": {"type": "code_grader", "command": ["a"], "cwd": "there/."},
        },
        {"type": "turns", "turns": [{"assertions": [{"type": "llm_grader", "prompt_file": "there/p.md"}]}]},
    ]


def test_the_paths_of_messages_environment_and_reference_too() -> None:
    block = {"type": "file", "value": "a.md", "text": "read at load"}
    task = {
        "inputs": {"messages": [{"role": "user", "content": [block, {"type": "image", "value": "https://x/y.png"}]}]},
        "environment": {
            "tools": [{"name": "t", "description": "d", "function": "tools.py:run"}],
            "workspace": {"template": "w", "before_all": {"command": ["x"]}, "repos": [{"repo": "r"}]},
        },
        "reference": {"solution": {"script": "s.sh"}, "counterexamples": [{"name": "c", "patch": "c.patch"}]},
    }
    written = said(task)[0]
    assert written["inputs"]["messages"][0]["content"] == [
        {"type": "file", "value": "there/a.md"},
        {"type": "image", "value": "https://x/y.png"},
    ]
    assert written["environment"]["tools"][0]["function"] == "there/tools.py:run"
    assert written["environment"]["workspace"] == {
        "template": "there/w",
        "repos": [{"repo": "there/r"}],
        "before_all": {"command": ["x"], "cwd": "there/."},
    }
    assert written["reference"] == {
        "solution": {"script": "there/s.sh"},
        "counterexamples": [{"patch": "there/c.patch", "name": "c"}],
    }


def test_what_holds_a_path_that_cannot_be_written_is_left_out_and_told() -> None:
    task = {
        "environment": {"workspace": {"template": "far/w"}},
        "graders": [
            {"type": "contains", "value": "x"},
            {"type": "code_grader", "command": ["judge"], "cwd": "far"},
            {
                "type": "composite",
                "assertions": [{"type": "contains", "value": "x"}],
                "aggregator": {"command": ["a"], "cwd": "far"},
            },
        ],
    }
    written, losses = said(task, allowed="near")
    assert [grader["type"] for grader in written["graders"]] == ["contains"]
    assert losses == ["environment.workspace (too far)", "graders[1] (too far)", "graders[2] (too far)"]
    assert "environment" not in written
    judge = {"type": "llm_grader", "prompt": "Is it?", "prompt_file": "far/p.md"}
    written, losses = said({"graders": [judge]}, allowed="near")
    assert written["graders"] == [{"type": "llm_grader", "prompt": "Is it?"}]
    assert losses == ["graders[0].prompt_file (too far)"]


@pytest.mark.parametrize(
    ("left", "right", "paths"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ["a[1].b"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": {"b": 1, "c": {"d": 2}}}, {}, ["a.b", "a.c.d"]),
        ({}, {"a": {"b": 1}}, ["a.b"]),
        ({"a": {}}, {}, ["a"]),
        ({"a": "x"}, {"a": {"x": 1}}, ["a"]),
    ],
)
def test_every_difference_has_its_path(left: Any, right: Any, paths: list[str]) -> None:
    assert list(differences(left, right)) == paths
