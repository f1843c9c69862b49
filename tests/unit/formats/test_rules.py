"""What a schema cannot say of a task."""

from pathlib import Path
from typing import Any

import pytest
from tests.builders import SHIPPED, task_document

from passgate.tasks.formats.rules import Surroundings, findings, sandbox_names
from passgate.tasks.model.task import TaskFile


@pytest.fixture
def found(tmp_path: Path):
    """The findings of a task, as `path: message`."""

    def _found(**changes: Any) -> list[tuple[tuple[str | int, ...], str]]:
        task = TaskFile.model_validate(task_document(**changes))
        return list(findings(task, Surroundings(tmp_path / "task.yaml", tmp_path, SHIPPED)))

    return _found


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "output_check", "equals": ""},
        {"type": "output_check", "not_contains": ["a"]},
        {"type": "output_check", "json_schema": {}},
        {"type": "tool_calls", "forbidden": ["a"]},
        {"type": "tool_calls", "required": ["a"]},
        {"type": "trajectory_metrics", "max_steps": 0},
        {"type": "trajectory_metrics", "max_loop_rate": 0.0},
        {"type": "policy_check", "secrets": True},
        {"type": "policy_check", "canaries": ["a"]},
        {"type": "policy_check", "arguments": [{"tool": "a", "param": "b", "deny": ["c"]}]},
        {"type": "state_check", "expect": [{"file": "a"}]},
        {"type": "state_check", "expect": [{"file": "a/b/..c"}]},
        {"type": "state_check", "expect": [{"json_file": "a", "equals": None}]},
        {"type": "state_check", "expect": [{"json_file": "a", "absent": False}]},
        {"type": "state_check", "expect": [{"sqlite": "a", "query": "b", "value": None}]},
        {"type": "state_check", "expect": [{"sqlite": "a", "query": "b", "rows": []}]},
        {"type": "state_check", "expect": [{"command": "true"}]},
        {"type": "llm_rubric", "rubric": "Is it kind?"},
    ],
)
def test_a_grader_that_can_fail_is_fine(found, grader: dict[str, Any]) -> None:
    assert found(graders=[grader]) == []


@pytest.mark.parametrize(
    ("grader", "path"),
    [
        ({"type": "output_check"}, ()),
        ({"type": "output_check", "contains": [], "not_contains": []}, ()),
        ({"type": "output_check", "ignore_case": True}, ()),
        ({"type": "tool_calls"}, ()),
        ({"type": "tool_calls", "in_order": True, "required": []}, ()),
        ({"type": "trajectory_metrics"}, ()),
        ({"type": "policy_check"}, ()),
        ({"type": "policy_check", "secrets": False, "deny_tools": []}, ()),
        ({"type": "policy_check", "arguments": [{"tool": "a", "param": "b"}]}, ("arguments", 0)),
        ({"type": "state_check", "expect": [{"file": "a"}, {"json_file": "a"}]}, ("expect", 1)),
        ({"type": "state_check", "expect": [{"sqlite": "a", "query": "b"}]}, ("expect", 0)),
    ],
)
def test_a_grader_that_cannot_fail_is_refused(found, grader: dict[str, Any], path: tuple[str | int, ...]) -> None:
    ((where, message),) = found(graders=[{"type": "policy_check", "secrets": True}, grader])
    assert where == ("graders", 1, *path)
    assert "cannot fail" in message


@pytest.mark.parametrize(
    ("grader", "path"),
    [
        ({"type": "output_check", "matches": "("}, ("matches",)),
        ({"type": "output_check", "matches": "a{99999999999999}"}, ("matches",)),
        ({"type": "output_check", "matches": "(" * 5000}, ("matches",)),
        ({"type": "policy_check", "deny_output": ["a", "["]}, ("deny_output", 1)),
        ({"type": "state_check", "expect": [{"file": "a", "matches": "*"}]}, ("expect", 0, "matches")),
        ({"type": "state_check", "expect": [{"command": "a", "stdout_matches": "+"}]}, ("expect", 0, "stdout_matches")),
    ],
)
def test_a_pattern_that_is_none_is_refused(found, grader: dict[str, Any], path: tuple[str | int, ...]) -> None:
    ((where, message),) = found(graders=[grader])
    assert where == ("graders", 0, *path)
    assert message.startswith("not a regular expression: ")


def test_a_json_schema_that_is_none_is_refused_where_it_is_wrong(found) -> None:
    schema = {"properties": {"a": {"type": 3}}}
    ((where, message),) = found(graders=[{"type": "output_check", "json_schema": schema}])
    assert where == ("graders", 0, "json_schema", "properties", "a", "type")
    assert message.startswith("not a JSON Schema: ")


@pytest.mark.parametrize("name", ["/etc/passwd", "..", "../x", "a/../../x", "a/.."])
@pytest.mark.parametrize(
    ("check", "key"),
    [
        ({"exists": True}, "file"),
        ({"equals": 1}, "json_file"),
        ({"query": "a", "value": 1}, "sqlite"),
    ],
)
def test_the_state_is_looked_at_inside_the_workspace(found, check: dict[str, Any], key: str, name: str) -> None:
    assert found(graders=[{"type": "state_check", "expect": [{key: name, **check}]}]) == [
        (("graders", 0, "expect", 0, key), f"{name!r} leaves the workspace")
    ]


@pytest.mark.parametrize(
    "place",
    [
        lambda name: {"graders": [{"type": "deterministic_tests", "tests": [name]}]},
        lambda name: {"graders": [{"type": "static_analysis", "tools": ["mypy"], "configuration": {"mypy": name}}]},
        lambda name: {"graders": [{"type": "llm_rubric", "rubric": f"{name}.md"}]},
        lambda name: {"reference": {"solution": {"patch": name}}},
        lambda name: {"reference": {"solution": {"script": name}}},
        lambda name: {"reference": {"solution": {"transcript": name}}},
    ],
)
def test_every_file_of_a_task_must_lie_in_the_suites_folder(found, tmp_path: Path, place) -> None:
    (tmp_path / "there").write_text("")
    (tmp_path / "there.md").write_text("")
    outside = tmp_path.parent / "outside"
    outside.with_suffix(".md").write_text("")
    outside.write_text("")
    assert found(**place("there")) == []
    assert "no file" in found(**place("gone"))[0][1]
    assert "leaves the suites folder" in found(**place("../outside"))[0][1]
    assert "leaves the suites folder" in found(**place(str(outside)))[0][1]
    assert "is not a path" in found(**place("a\0b"))[0][1]
    assert "is not a path" in found(**place("x" * 300))[0][1]


def test_the_nearest_file_is_named(found, tmp_path: Path) -> None:
    (tmp_path / "test_login.py").write_text("")
    ((_, message),) = found(graders=[{"type": "deterministic_tests", "tests": ["test_logn.py"]}])
    assert message == "no file 'test_logn.py' in the suites folder; did you mean 'test_login.py'?"


def test_the_names_of_sandboxes(tmp_path: Path) -> None:
    assert sandbox_names(tmp_path) == []
    for name in ("b", "a"):
        (tmp_path / "_shared/sandboxes" / name).mkdir(parents=True)
    (tmp_path / "_shared/sandboxes/README.md").write_text("")
    assert sandbox_names(tmp_path) == ["a", "b"]


def test_a_reference_must_do_something(found) -> None:
    reference = {"solution": {}, "counterexamples": [{"name": "a"}]}
    assert [path for path, _ in found(reference=reference)] == [
        ("reference", "solution"),
        ("reference", "counterexamples", 0),
    ]
