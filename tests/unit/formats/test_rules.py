import json
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.rules import findings, sandbox_names
from passgate.tasks.model.task import TaskFile
from tests.builders import SHIPPED, task_document

YES = {"type": "contains", "value": "yes"}
WEIGHTED = {"rule": "weighted_average"}


@pytest.fixture
def found(tmp_path: Path):
    """The findings of a task, as `path: message`."""
    (tmp_path / "template").mkdir()

    def _found(**changes: Any) -> list[tuple[tuple[str | int, ...], str]]:
        task = TaskFile.model_validate(task_document(**changes))
        return list(findings(task, tmp_path / "task.yaml", tmp_path, SHIPPED))

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
        (("graders", 0, "expect", 0, key), f"{name!r} is outside the workspace")
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


def a_tool(**changes: Any) -> dict[str, Any]:
    return {"name": "look", "description": "Looks.", "command": "ls"} | changes


def recorded(tmp_path: Path, *tools: str) -> dict[str, Any]:
    """A recording that calls these tools."""
    calls = [{"tool": tool} for tool in tools]
    (tmp_path / "recorded.json").write_text(json.dumps({"messages": [{"role": "assistant", "tool_calls": calls}]}))
    return {"transcript": "recorded.json"}


def test_tools_of_a_task_are_fine_unless_two_have_the_same_name(found, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("def add(a): ...\nasync def wait(): ...\n")
    tools = [
        a_tool(),
        a_tool(name="add", command=None, function="tools.py:add"),
        a_tool(name="wait", command=None, function="tools.py:wait", parameters={"type": "object"}),
    ]
    assert found(environment={"tools": tools}) == []
    ((where, message),) = found(environment={"tools": [a_tool(), a_tool(name="see"), a_tool()]})
    assert where == ("environment", "tools", 2, "name")
    assert "another name" in message


@pytest.mark.parametrize(
    ("parameters", "path", "message"),
    [
        ({"type": "object", "properties": {"a": {"type": "txt"}}}, ("properties", "a", "type"), "not a JSON Schema"),
        (
            {"type": "object", "properties": {"a": {"pattern": "("}}},
            ("properties", "a", "pattern"),
            "not a JSON Schema",
        ),
        ({}, (), "write `type: object`"),
        ({"type": "string"}, (), "write `type: object`"),
    ],
)
def test_parameters_of_a_tool_are_a_schema_of_an_object(
    found, parameters: dict[str, Any], path: tuple[str, ...], message: str
) -> None:
    ((where, said),) = found(environment={"tools": [a_tool(parameters=parameters)]})
    assert where == ("environment", "tools", 0, "parameters", *path)
    assert message in said


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("tools.py:ad", "tools.py defines no function 'ad'; did you mean 'add'?"),
        ("tools.py:Class", "tools.py defines no function 'Class'"),
        ("tools.py:", "not of the form FILE.py:NAME"),
        ("tools.py", "not of the form FILE.py:NAME"),
        ("tools.txt:add", "not of the form FILE.py:NAME"),
        ("tools.py:a b", "not of the form FILE.py:NAME"),
        ("tool.py:add", "no file 'tool.py' in the suites folder; did you mean 'tools.py'?"),
        ("../tools.py:add", "leaves the suites folder"),
        ("broken.py:add", "not a Python file that can be read"),
        ("folder.py:add", "not a Python file that can be read"),
        ("bytes.py:add", "not a Python file that can be read"),
    ],
)
def test_a_function_of_a_tool_is_defined_in_a_file_of_the_suites(
    found, tmp_path: Path, function: str, message: str
) -> None:
    (tmp_path / "tools.py").write_text("def add(a): ...\nclass Class: ...\n")
    (tmp_path / "broken.py").write_text("def add(a:")
    (tmp_path / "bytes.py").write_bytes(b"\xff\0")
    (tmp_path / "folder.py").mkdir()
    ((where, said),) = found(environment={"tools": [a_tool(command=None, function=function)]})
    assert where == ("environment", "tools", 0, "function")
    assert message in said


def test_a_recording_answers_declared_tools(found, tmp_path: Path) -> None:
    replay = recorded(tmp_path, "look", "lok", "lok")
    ((where, message),) = found(environment={"tools": [a_tool()], "replay": replay})
    assert where == ("environment", "replay", "transcript")
    assert message == "it calls 'lok', which `environment.tools` does not declare; did you mean 'look'?"
    ((where, message),) = found(environment={"replay": replay})
    assert where == ("environment", "replay")
    assert "declare them under `environment.tools`" in message
    environment = {"tools": [a_tool()], "replay": recorded(tmp_path, "look"), "user": {"persona": "A customer."}}
    ((where, message),) = found(environment=environment)
    assert where == ("environment", "user", "persona")
    assert "under `says`" in message
    replay = recorded(tmp_path, "look", "look")
    assert found(environment={"tools": [a_tool()], "replay": replay}) == []
    assert found(environment={"tools": [a_tool()], "replay": replay, "user": {"says": ["And now?"]}}) == []


@pytest.mark.parametrize("content", ["", "[]", "{", '{"messages": [{"role": "robot"}]}', '{"mesages": []}', "\xff"])
def test_a_recording_that_cannot_be_read_is_refused(found, tmp_path: Path, content: str) -> None:
    (tmp_path / "recorded.json").write_bytes(content.encode("latin-1"))
    ((where, message),) = found(environment={"tools": [a_tool()], "replay": {"transcript": "recorded.json"}})
    assert where == ("environment", "replay", "transcript")
    assert message.startswith("not a recorded transcript: ")


@pytest.mark.parametrize("name", ["gone.json", "../recorded.json"])
def test_a_recording_lies_in_the_suites_folder(found, name: str) -> None:
    ((where, _),) = found(environment={"tools": [a_tool()], "replay": {"transcript": name}})
    assert where == ("environment", "replay", "transcript")


@pytest.mark.parametrize("inputs", [{}, {"prompt": ""}, {"prompt": None}, {"question": "How?"}])
def test_a_conversation_begins_with_a_prompt(found, inputs: dict[str, Any]) -> None:
    ((where, message),) = found(inputs=inputs, environment={"user": {"persona": "A customer."}})
    assert where == ("environment", "user")
    assert "`inputs.prompt`" in message


@pytest.mark.parametrize("schema", [{"type": 3}, "object", []])
def test_the_schema_of_the_answer_is_one(found, schema: Any) -> None:
    ((where, message),) = found(inputs={"prompt": "Answer.", "output_schema": schema})
    assert where[:2] == ("inputs", "output_schema")
    assert message.startswith("not a JSON Schema")
    assert found(inputs={"prompt": "Answer.", "output_schema": {"type": "object"}}) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"scoring": WEIGHTED, "graders": [YES | {"weight": 2}, YES | {"weight": 0}]},
        {"scoring": WEIGHTED, "trials": {"metric": "mean"}},
        {"scoring": WEIGHTED, "trials": {"metric": "confidence_interval", "k": 2}},
        {"graders": [{"type": "composite", "assertions": [YES | {"weight": 3}]}]},
    ],
)
def test_scores_with_a_rule_are_fine(found, changes: dict[str, Any]) -> None:
    assert found(**changes) == []


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"graders": [YES | {"weight": 2}]}, ("graders", 0, "weight"), "a weight needs"),
        ({"trials": {"metric": "mean"}}, ("trials", "metric"), "mean is of scores: it needs"),
        (
            {"trials": {"metric": "confidence_interval", "k": 1}, "scoring": WEIGHTED},
            ("trials", "k"),
            "needs 2 trials or more",
        ),
        ({"scoring": WEIGHTED | {"threshold": 0}}, ("scoring", "threshold"), "nothing can fail"),
        ({"scoring": WEIGHTED, "graders": [YES | {"weight": 0}]}, ("graders",), "there is no score"),
    ],
)
def test_scores_that_mean_nothing_are_found(
    found, changes: dict[str, Any], path: tuple[str | int, ...], message: str
) -> None:
    ((where, what),) = found(**changes)
    assert where == path
    assert message in what


@pytest.mark.parametrize(
    ("workspace", "path", "message"),
    [
        ({"template": "gone"}, ("template",), "no file 'gone'"),
        ({"template": "../.."}, ("template",), "leaves the suites folder"),
        ({"repos": [{"repo": "a/b", "path": "../x"}]}, ("repos", 0, "path"), "is outside the workspace"),
        ({"repos": [{"repo": "./gone"}]}, ("repos", 0, "repo"), "no file './gone'"),
        ({"after_all": {"command": ["ls"], "cwd": "gone"}}, ("after_all", "cwd"), "no file 'gone'"),
    ],
)
def test_a_workspace_that_cannot_be_made_is_found(
    found, workspace: dict[str, Any], path: tuple[str | int, ...], message: str
) -> None:
    ((where, what),) = found(environment={"workspace": workspace})
    assert where == ("environment", "workspace", *path)
    assert message in what


def test_a_workspace_goes_instead_of_a_sandbox(found, tmp_path: Path) -> None:
    (tmp_path / "_shared/sandboxes/notes").mkdir(parents=True)
    ((where, what),) = found(environment={"sandbox": "notes", "workspace": {"template": "template"}})
    assert (where, what) == (("environment", "workspace"), "give either `sandbox` or `workspace`")
