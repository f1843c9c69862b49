"""What a schema cannot say of task files; the examples of invalid tasks say more."""

import json
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.document import format_path
from passgate.tasks.formats.rules import findings, sandbox_names
from passgate.tasks.model.task import TaskFile
from tests.builders import SHIPPED, task_document

YES = {"type": "contains", "value": "yes"}
WEIGHTED = {"rule": "weighted_average"}
NO_FUNCTION, NO_FORM = ": tools.py defines no function", "is not of the form FILE.py:NAME"


def findings_of(root: Path, **changes: Any) -> list[str]:
    """What is found in a task of this suites folder, as `path: message`."""
    task = TaskFile.model_validate(task_document(**changes))
    return [f"{format_path(path)}: {text}" for path, text in findings(task, root / "task.yaml", root, SHIPPED)]


@pytest.fixture
def found(tmp_path: Path):
    """What is found beside a template, some Python files and a recording that calls `look`."""
    (tmp_path / "template").mkdir()
    (tmp_path / "_shared/sandboxes/notes").mkdir(parents=True)
    (tmp_path / "tools.py").write_text("def add(a): ...\nasync def wait(): ...\nclass Class: ...\n")
    (tmp_path / "broken.py").write_text("def add(a:")
    (tmp_path / "bytes.py").write_bytes(b"\xff\0")
    (tmp_path / "folder.py").mkdir()
    record(tmp_path, "look", "look")
    return lambda **changes: findings_of(tmp_path, **changes)


def record(folder: Path, *tools: str) -> None:
    calls = [{"tool": tool} for tool in tools]
    text = json.dumps({"messages": [{"role": "assistant", "tool_calls": calls}]})
    (folder / "recorded.json").write_text(text)


def a_tool(**changes: Any) -> dict[str, Any]:
    return {"name": "look", "description": "Looks.", "command": "ls"} | changes


def a_function(function: str, **changes: Any) -> dict[str, Any]:
    return {"environment": {"tools": [a_tool(command=None, function=function, **changes)]}}


def takes(**parameters: Any) -> dict[str, Any]:
    return {"environment": {"tools": [a_tool(parameters=parameters)]}}


def replayed(transcript: str = "recorded.json", **environment: Any) -> dict[str, Any]:
    return {"environment": {"tools": [a_tool()], "replay": {"transcript": transcript}, **environment}}


def in_workspace(**workspace: Any) -> dict[str, Any]:
    return {"environment": {"workspace": workspace}}


def answered(schema: Any) -> dict[str, Any]:
    return {"inputs": {"prompt": "Answer.", "output_schema": schema}}


def talk(**inputs: Any) -> dict[str, Any]:
    return {"inputs": inputs, "environment": {"user": {"persona": "A customer."}}}


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": {"tools": [a_tool(), a_tool(name="see")]}},
        a_function("tools.py:add"),
        a_function("tools.py:wait", parameters={"type": "object"}),
        replayed(),
        replayed(user={"says": ["And now?"]}),
        answered({"type": "object"}),
        {"scoring": WEIGHTED, "graders": [YES | {"weight": 2}, YES | {"weight": 0}]},
        {"scoring": WEIGHTED, "trials": {"metric": "mean"}},
        {"scoring": WEIGHTED, "trials": {"metric": "confidence_interval", "k": 2}},
        {"graders": [{"type": "composite", "assertions": [YES | {"weight": 3}]}]},
    ],
)
def test_what_can_be_run_and_scored_is_fine(found, changes: dict[str, Any]) -> None:
    assert found(**changes) == []


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        (takes(properties={"a": {"type": "b"}}), "tools[0].parameters.properties.a.type", "not a JSON Schema"),
        (takes(properties={"a": {"pattern": "("}}), "tools[0].parameters.properties.a.pattern", "not a JSON Sch"),
        (takes(**{"$schema": "draft-7"}), "tools[0].parameters.$schema", "names no known draft"),
        (takes(), "tools[0].parameters", "write `type: object`"),
        (a_function("tools.py:ad"), "tools[0].function", f"{NO_FUNCTION} 'ad'; did you mean 'add'?"),
        (a_function("tools.py:Class"), "tools[0].function", f"{NO_FUNCTION} 'Class'"),
        (a_function("tools.py:"), "tools[0].function", NO_FORM),
        (a_function("tools.py"), "tools[0].function", NO_FORM),
        (a_function("tools.txt:add"), "tools[0].function", NO_FORM),
        (a_function("tools.py:a b"), "tools[0].function", NO_FORM),
        (a_function("../tools.py:add"), "tools[0].function", "leaves the suites folder"),
        (a_function("broken.py:add"), "tools[0].function", "not a Python file that can be read"),
        (a_function("folder.py:add"), "tools[0].function", "not a Python file that can be read"),
        (a_function("bytes.py:add"), "tools[0].function", "not a Python file that can be read"),
        (replayed(tools=[a_tool(name="lok")]), "replay.transcript", "does not declare; did you mean 'lok'?"),
        (replayed(tools=[]), "replay", "declare them under `environment.tools`"),
        (replayed(user={"persona": "A customer."}), "user.persona", "under `says`"),
        (replayed("gone.json"), "replay.transcript", "no file 'gone.json'"),
        (replayed("../recorded.json"), "replay.transcript", "leaves the suites folder"),
        (talk(prompt=""), "user", "`inputs.prompt`"),
        (talk(question="How?"), "user", "`inputs.prompt`"),
        (in_workspace(template="gone"), "workspace.template", "no file 'gone'"),
        (in_workspace(template="../.."), "workspace.template", "leaves the suites folder"),
        (in_workspace(repos=[{"repo": "a/b", "path": "../x"}]), "workspace.repos[0].path", "is outside the workspace"),
        (in_workspace(repos=[{"repo": "./gone"}]), "workspace.repos[0].repo", "no file './gone'"),
        (in_workspace(after_all={"command": ["ls"], "cwd": "gone"}), "workspace.after_all.cwd", "no file 'gone'"),
        ({"environment": {"sandbox": "notes", "workspace": {}}}, "workspace", "give either `sandbox` or `workspace`"),
    ],
)
def test_an_environment_that_cannot_be_made_is_found(found, changes: dict[str, Any], path: str, message: str) -> None:
    (only,) = found(**changes)
    assert only.startswith(f"environment.{path}: ")
    assert message in only


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        (answered({"type": 3}), "inputs.output_schema.type", "not a JSON Schema"),
        (answered("object"), "inputs.output_schema", "not a JSON Schema"),
        ({"graders": [YES | {"weight": 2}]}, "graders[0].weight", "a weight needs"),
        ({"trials": {"metric": "mean"}}, "trials.metric", "mean is of scores: it needs"),
        (
            {"trials": {"metric": "confidence_interval", "k": 1}, "scoring": WEIGHTED},
            "trials.k",
            "needs 2 trials or more",
        ),
        ({"scoring": WEIGHTED | {"threshold": 0}}, "scoring.threshold", "nothing can fail"),
        ({"scoring": WEIGHTED, "graders": [YES | {"weight": 0}]}, "graders", "there is no score"),
    ],
)
def test_scores_and_schemas_that_mean_nothing_are_found(
    found, changes: dict[str, Any], path: str, message: str
) -> None:
    (only,) = found(**changes)
    assert only.startswith(f"{path}: ")
    assert message in only


@pytest.mark.parametrize("content", ["", "[]", "{", '{"messages": [{"role": "robot"}]}', '{"mesages": []}', "\xff"])
def test_a_recording_that_cannot_be_read_is_refused(found, tmp_path: Path, content: str) -> None:
    (tmp_path / "recorded.json").write_bytes(content.encode("latin-1"))
    (problem,) = found(**replayed())
    assert problem.startswith("environment.replay.transcript: not a recorded transcript: ")


def test_a_recording_may_begin_with_a_byte_order_mark(found, tmp_path: Path) -> None:
    record(tmp_path, "look")
    file = tmp_path / "recorded.json"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert not found(**replayed())


def test_a_tool_that_a_recording_calls_again_and_again_is_told_once(found, tmp_path: Path) -> None:
    record(tmp_path, "look", "lok", "lok")
    (problem,) = found(**replayed())
    assert problem.endswith(": it calls 'lok', which `environment.tools` does not declare; did you mean 'look'?")


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
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    for file in (tmp_path / "there", outside):
        file.write_text("something")
        file.with_suffix(".md").touch()
    assert found(**place("there")) == []
    for name, problem in (
        ("gone", "no file"),
        (f"../{outside.name}", "leaves the suites folder"),
        (str(outside), "leaves the suites folder"),
        ("a\0b", "is not a path"),
        ("x" * 300, "is not a path"),
    ):
        assert problem in found(**place(name))[0]


def test_the_names_of_sandboxes(tmp_path: Path) -> None:
    assert sandbox_names(tmp_path) == []
    for name in ("b", "a"):
        (tmp_path / "_shared/sandboxes" / name).mkdir(parents=True)
    (tmp_path / "_shared/sandboxes/README.md").write_text("")
    assert sandbox_names(tmp_path) == ["a", "b"]


def test_a_reference_must_do_something(found) -> None:
    reference = {"solution": {}, "counterexamples": [{"name": "a"}]}
    assert found(reference=reference) == [
        f"reference.{place}: needs at least one of: patch, script, transcript"
        for place in ("solution", "counterexamples[0]")
    ]


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
LFS, EMPTY, SUBMODULE = "git lfs pull", "is empty", "git submodule update --init"
TESTED = {"graders": [{"type": "deterministic_tests", "tests": ["_shared/tests"]}]}
RECORDED = replayed("_shared/tests/it")


@pytest.mark.parametrize(
    ("file", "text", "changes", "says"),
    [
        ("sandboxes/desk/files/deep/orders.json", POINTER, {"environment": {"sandbox": "desk"}}, LFS),
        ("sandboxes/desk/files/orders.json", "", {"environment": {"sandbox": "desk"}}, EMPTY),
        ("sandboxes/desk/files/.gitkeep", "", {"environment": {"sandbox": "desk"}}, ""),
        (
            "sandboxes/desk/files/notes.txt",
            f"{POINTER[:40]} is how pointers begin",
            {"environment": {"sandbox": "desk"}},
            "",
        ),
        ("tests/test_it.py", POINTER, TESTED, LFS),
        ("tests/test_it.py", "", TESTED, EMPTY),
        ("tests/test_it.py", "def test_it(): ...", TESTED, ""),
        ("tests/it", POINTER, RECORDED, LFS),
        ("tests/it", "", RECORDED, "not a recorded transcript"),
        ("tests/it", POINTER, {"reference": {"solution": {"script": "_shared/tests/it"}}}, LFS),
    ],
)
def test_what_a_checkout_leaves_out_is_told_before_a_trial(
    found, tmp_path: Path, file: str, text: str, changes: dict[str, Any], says: str
) -> None:
    path = tmp_path / "_shared" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    problems = found(**changes)
    assert len(problems) == bool(says)
    assert says in "".join(problems)


def test_a_submodule_that_was_not_fetched_is_told_before_a_trial(found, tmp_path: Path) -> None:
    (tmp_path / "_shared/sandboxes/desk/files/module").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert found(environment={"sandbox": "desk"}) == []
    modules = '[submodule "m"]\n\tpath = _shared/sandboxes/desk/files/module\n\turl = https://x.example/m.git\n'
    (tmp_path / ".gitmodules").write_text(modules)
    (tmp_path / "_shared/sandboxes/desk").touch()
    (problem,) = found(environment={"sandbox": "desk"})
    assert f"has no contents in module, a submodule of git: fetch it with `{SUBMODULE}`" in problem


@pytest.mark.parametrize(
    ("inputs", "wrong"),
    [
        ({"promt": "Do it."}, "inputs.promt: the task asks nothing; did you mean 'prompt'?"),
        ({"Prompt": "Do it."}, "inputs.Prompt: the task asks nothing; did you mean 'prompt'?"),
        ({"mesages": []}, "inputs.mesages: the task asks nothing; did you mean 'messages'?"),
        ({"promt": "v2", "prompt": "Do it."}, ""),
        ({"message": "of its own", "order": 17}, ""),
    ],
)
def test_a_misspelt_prompt_is_found_and_other_inputs_are_the_tasks_own(found, inputs: Any, wrong: str) -> None:
    assert found(inputs=inputs) == ([wrong] if wrong else [])


SAYS_YES = {"type": "contains", "value": "yes", "name": "says-yes"}


@pytest.fixture
def found_in_grader(tmp_path: Path):
    (tmp_path / "judge.md").write_text("Is it kind?")

    def _found(**grader: Any) -> list[str]:
        return [problem.removeprefix("graders[0]") for problem in findings_of(tmp_path, graders=[grader])]

    return _found


def state(**check: Any) -> dict[str, Any]:
    return {"type": "state_check", "expect": [check]}


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "output_check", "equals": ""},
        {"type": "output_check", "not_contains": ["a"]},
        {"type": "output_check", "json_schema": {}},
        {"type": "tool_calls", "forbidden": ["a"]},
        {"type": "tool_calls", "required": ["a"]},
        {"type": "trajectory_metrics", "max_steps": 0},
        {"type": "policy_check", "canaries": ["a"]},
        {"type": "policy_check", "arguments": [{"tool": "a", "param": "b", "deny": ["c"]}]},
        state(file="a/b/..c"),
        state(json_file="a", equals=None),
        state(json_file="a", absent=False),
        state(sqlite="a", query="b", value=None),
        state(sqlite="a", query="b", rows=[]),
        state(command="true"),
        {"type": "llm_rubric", "rubric": "Is it kind?"},
        SAYS_YES,
        {"type": "regex", "value": "(?<a>x)", "flags": "i"},
        {"type": "is_json", "value": {"type": "object"}},
        {"type": "code_grader", "command": ["python", "x.py"]},
        {"type": "llm_grader", "prompt_file": "judge.md"},
        {"type": "llm_grader", "prompt_file": "judge.md", "prompt": "Is it kind?"},
        {"type": "tool_trajectory", "minimums": {"a": 1}},
        {"type": "tool_trajectory", "mode": "subset"},
        {"type": "step_count", "max": 0},
        {"type": "token_usage", "max_total": 0},
        {"type": "execution_metrics", "max_input_tokens": 0},
        {
            "type": "composite",
            "assertions": [SAYS_YES],
            "aggregator": {"type": "safety_gate", "required": ["says-yes"]},
        },
        {"type": "composite", "assertions": [SAYS_YES | {"required": True}], "aggregator": {"type": "safety_gate"}},
        {"type": "turns", "turns": [{}], "conversation": [SAYS_YES]},
    ],
)
def test_a_grader_that_can_fail_is_fine(found_in_grader, grader: dict[str, Any]) -> None:
    assert found_in_grader(**grader) == []


@pytest.mark.parametrize(
    ("grader", "problem"),
    [
        ({"type": "output_check", "matches": "a{99999999999999}"}, ".matches: not a regular expression: "),
        ({"type": "output_check", "matches": "(" * 5000}, ".matches: not a regular expression: "),
        (state(json_file="../x", equals=1), ".expect[0].json_file: '../x' is outside the workspace"),
        (state(sqlite="a/..", query="a", value=1), ".expect[0].sqlite: 'a/..' is outside the workspace"),
        (state(file="/etc/passwd"), ".expect[0].file: '/etc/passwd' is outside the workspace"),
        ({"type": "regex", "value": "("}, ".value: no regular expression as JavaScript knows them"),
        ({"type": "is_json", "value": {"type": 3}}, ".value.type: not a JSON Schema"),
        ({"type": "output_check", "json_schema": {"$schema": "draft-7"}}, ".json_schema.$schema: not a JSON Schema"),
        ({"type": "output_check", "json_schema": {"$schema": 7}}, ".json_schema.$schema: not a JSON Schema"),
        ({"type": "code_grader", "command": ["x"], "cwd": "gone"}, ".cwd: no file 'gone'"),
        ({"type": "javascript", "value": "true", "cwd": "../.."}, ".cwd: '../..' leaves the suites folder"),
        ({"type": "llm_grader", "prompt_file": "gone.md"}, ".prompt_file: no file 'gone.md'"),
        ({"type": "llm_grader", "prompt_file": "judge.md", "prompt": "x"}, ".prompt_file: the file says something"),
        ({"type": "tool_trajectory"}, ": this grader cannot fail: give at least one of expected, minimums"),
        ({"type": "step_count"}, ": this grader cannot fail: "),
        ({"type": "token_usage"}, ": this grader cannot fail: "),
        ({"type": "execution_metrics", "exploration_tolerance": 0.1}, ": this grader cannot fail: "),
        ({"type": "turns", "turns": [{}]}, ": this grader cannot fail: no turn has `assertions`"),
    ],
)
def test_one_that_cannot_fail_or_run_is_found(found_in_grader, grader: dict[str, Any], problem: str) -> None:
    (only,) = found_in_grader(**grader)
    assert only.startswith(problem)


def test_graders_inside_of_graders_are_checked_too(found_in_grader) -> None:
    wrong = {"type": "regex", "value": "("}
    inner = {"type": "composite", "assertions": [SAYS_YES, wrong]}
    outer = {"type": "turns", "turns": [{"assertions": [SAYS_YES, inner]}], "conversation": [wrong]}
    assert [problem.partition(":")[0] for problem in found_in_grader(**outer)] == [
        ".turns[0].assertions[1].assertions[1].value",
        ".conversation[0].value",
    ]
