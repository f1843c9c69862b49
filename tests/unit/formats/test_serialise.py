from typing import Any

import pytest

from passgate.tasks.formats.serialise import LeavesError, Serialisation, differences, serialised_task
from passgate.tasks.model.task import TaskFile
from tests.builders import task_document


def said(task: dict[str, Any], allowed: str = "") -> tuple[dict[str, Any], list[str]]:
    """A task with paths in `there/`; only those that begin with `allowed` can be written."""

    def place(path: str) -> str:
        if not path.startswith(allowed):
            raise LeavesError("too far")
        return f"there/{path}"

    saying = Serialisation(place)
    return serialised_task(TaskFile.model_validate(task_document(**task)), saying), [
        str(loss) for loss in saying.losses
    ]


def test_defaults_are_left_out_but_not_a_value_that_is_checked_for() -> None:
    assert said({}) == (task_document(), [])
    check = {"type": "state_check", "expect": [{"json_file": "a.json", "equals": None}]}
    assert said({"graders": [check]})[0]["graders"] == [check]


CODE = {"type": "code_grader", "command": ["judge"]}


@pytest.mark.parametrize(
    ("grader", "written"),
    [
        ({"type": "deterministic_tests", "tests": ["a.py"]}, {"tests": ["there/a.py"]}),
        (
            {"type": "static_analysis", "tools": ["ruff"], "configuration": {"ruff": "ruff.toml"}},
            {"configuration": {"ruff": "there/ruff.toml"}},
        ),
        ({"type": "llm_rubric", "rubric": "kind.md"}, {"rubric": "there/kind.md"}),
        ({"type": "llm_rubric", "rubric": "Is it kind?"}, {}),
        (CODE, {"cwd": "there/."}),
        (
            {"type": "composite", "assertions": [{"type": "python", "value": "1", "cwd": "a"}], "aggregator": CODE},
            {
                "assertions": [{"type": "python", "value": "1", "cwd": "there/a"}],
                "aggregator": {**CODE, "cwd": "there/."},
            },
        ),
        (
            {
                "type": "turns",
                "turns": [{"assertions": [{"type": "llm_grader", "prompt": "P", "prompt_file": "p.md"}]}],
            },
            {"turns": [{"assertions": [{"type": "llm_grader", "prompt_file": "there/p.md"}]}]},
        ),
    ],
)
def test_every_path_of_a_grader_is_written_for_its_new_place(grader: dict[str, Any], written: dict[str, Any]) -> None:
    task, losses = said({"graders": [grader]})
    assert (task["graders"], losses) == ([grader | written], [])


def test_the_paths_of_messages_environment_and_reference_too() -> None:
    block = {"type": "file", "value": "a.md", "text": "read at load"}
    image = {"type": "image", "value": "https://x/y.png"}
    tool = {"name": "t", "description": "d"}
    workspace = {"template": "w", "before_all": {"command": ["x"]}, "repos": [{"repo": "r"}]}
    task = {
        "inputs": {"messages": [{"role": "user", "content": [block, image]}]},
        "environment": {"tools": [{**tool, "function": "tools.py:run"}], "workspace": workspace},
        "reference": {"solution": {"script": "s.sh"}, "counterexamples": [{"name": "c", "patch": "c.patch"}]},
    }
    written = said(task)[0]
    assert written["inputs"]["messages"][0]["content"] == [{"type": "file", "value": "there/a.md"}, image]
    assert written["environment"] == {
        "tools": [{**tool, "function": "there/tools.py:run"}],
        "workspace": {
            "template": "there/w",
            "repos": [{"repo": "there/r"}],
            "before_all": {"command": ["x"], "cwd": "there/."},
        },
    }
    assert written["reference"] == {
        "solution": {"script": "there/s.sh"},
        "counterexamples": [{"patch": "there/c.patch", "name": "c"}],
    }


def test_what_holds_a_path_that_cannot_be_written_is_left_out_and_told() -> None:
    yes, far = {"type": "contains", "value": "x"}, {**CODE, "cwd": "far"}
    composite = {"type": "composite", "assertions": [yes], "aggregator": far}
    judge = {"type": "llm_grader", "prompt": "Is it?", "prompt_file": "far/p.md"}
    task = {"environment": {"workspace": {"template": "far/w"}}, "graders": [yes, far, composite, judge]}
    written, losses = said(task, allowed="near")
    assert written["graders"] == [yes, {"type": "llm_grader", "prompt": "Is it?"}]
    assert losses == [
        *("environment.workspace (too far)", "graders[1] (too far)", "graders[2] (too far)"),
        "graders[3].prompt_file (too far)",
    ]
    assert "environment" not in written


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
