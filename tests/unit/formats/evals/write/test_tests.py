import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.write.tests import (
    eval_document,
    eval_text,
    file_names,
    lines_texts,
    only_passgates,
    suite_name,
    written_criteria,
    written_grader,
    written_test,
    yaml_text,
)
from tests.builders import task_document
from tests.property.documents import nested

TASK = task_document(
    task_id="t",
    description="",
    inputs={"prompt": "Hi"},
    graders=[{"type": "contains", "value": "x"}],
    tracked_metrics=["tokens", "latency", "cost", "tool_use"],
    scoring={"rule": "weighted_average"},
)


def written(**said: Any) -> dict[str, Any]:
    return written_test(TASK | said)


def a_task(task_id: str, **said: Any) -> dict[str, Any]:
    return {**TASK, "task_id": task_id, **said}


def test_messages_are_written_with_their_calls() -> None:
    asks = {"role": "user", "content": [{"type": "file", "value": "./a.md"}]}
    calls = {"role": "assistant", "tool_calls": [{"tool": "get", "arguments": {"x": 1}, "result": "y"}]}
    test = written(inputs={"messages": [asks, calls]}, expected_messages=[calls])
    called = {"role": "assistant", "tool_calls": [{"tool": "get", "input": {"x": 1}, "output": "y"}]}
    assert (test["input"], test["expected_output"]) == ([asks, called], [called])


def test_a_conversation_is_turns_unless_nobody_says_them() -> None:
    a, c = [{"type": "contains", "value": "a"}], [{"type": "contains", "value": "c"}]
    turns = {"type": "turns", "turns": [{"assertions": a}, {"expected_output": "b"}]}
    whole = turns | {"conversation": c, "on_turn_failure": "stop"}
    test = written(environment={"user": {"says": ["And then?"]}}, graders=[whole])
    assert (test["mode"], test["assert"], test["on_turn_failure"]) == ("conversation", c, "stop")
    assert test["turns"] == [{"input": "Hi", "assert": a}, {"input": "And then?", "expected_output": "b"}]
    assert "input" not in test
    turns = {"type": "turns", "turns": [{"assertions": [{"type": "llm_grader"}]}, {}]}
    assert written(graders=[turns])["assert"] == [
        {"type": "turns", "turns": [{"assertions": [{"type": "llm_judge"}]}, {}]}
    ]


def test_everything_that_other_tools_do_not_know_is_in_it() -> None:
    own = {
        "tracked_metrics": ["tokens"],
        "gates": {"nightly": False},
        "reference": {"solution": {"script": "./s.sh"}},
        "trials": {"metric": "pass@k"},
    }
    environment = {"sandbox": "shop", "budgets": {"max_steps": 3, "max_seconds": 9}, "workspace": {}}
    said = {**TASK, **own, "environment": environment, "inputs": {"prompt": "Hi", "files": ["a"]}, "scoring": {}}
    kept = {"inputs": {"files": ["a"]}, "environment": {"sandbox": "shop", "budgets": {"max_steps": 3}}}
    assert only_passgates(said, is_conversation=False) == {"passgate": {**kept, **own, "scoring": {"rule": "all"}}}
    assert only_passgates(TASK, is_conversation=False) == {}


def test_a_workspace_has_its_hooks_and_its_requirements_apart() -> None:
    cleans = {"command": ["rm", "x"], "cwd": "./t", "timeout_seconds": 5}
    hooks = {"before_all": {"command": ["sh", "-c", "make"]}, "after_each": cleans}
    workspace = {"template": "./t", **hooks, "required_commands": ["git"], "environment": {"A": "b"}}
    test = written(environment={"workspace": workspace})
    assert test["workspace"] == {
        "template": "./t",
        "hooks": {"before_all": "make", "after_each": cleans},
        "env": {"required_commands": ["git"]},
    }
    assert test["environment"] == {"type": "host", "env": {"A": "b"}}
    assert written(environment={"workspace": {}})["workspace"] == {"repos": []}


def test_what_is_not_said_is_not_written() -> None:
    graders = [{"type": "contains", "value": "x"}]
    assert written() == {"id": "t", "suite": "golden", "input": "Hi", "assert": graders}
    judge = [{"type": "llm_grader"}]
    assert "assert" not in written(criteria="Is kind.", graders=judge)
    assert written(graders=judge)["assert"] == [{"type": "llm_judge"}]


@pytest.mark.parametrize(
    ("said", "execution", "run"),
    [
        ({"target": "azure"}, {"target": "azure"}, None),
        ({"environment": {"budgets": {"max_seconds": 30}}}, {"timeout_seconds": 30}, None),
        ({"environment": {"budgets": {"max_seconds": 0.5}}}, None, {"timeout_seconds": 0.5}),
        ({"environment": {"budgets": {"max_seconds": 7200}}}, None, {"timeout_seconds": 7200}),
        ({"scoring": {"rule": "weighted_average", "threshold": 0.5}}, {"threshold": 0.5}, None),
        ({"trials": {"k": 3}}, None, {"repeat": 3}),
        ({"trials": {"k": 3, "metric": "pass^k"}}, None, {"repeat": {"count": 3, "strategy": "pass_all"}}),
    ],
)
def test_target_time_and_threshold_stand_under_execution_and_what_it_cannot_say_under_run(
    said: dict[str, Any], execution: Any, run: Any
) -> None:
    test = written(**said)
    assert (test.get("execution"), test.get("run")) == (execution, run)


def test_a_rubric_that_comes_first_is_that_of_the_test() -> None:
    rubric = {"type": "rubrics", "criteria": [{"id": "rubric-1", "outcome": "is kind"}]}
    test = written(graders=[rubric, *TASK["graders"]])
    assert (test["rubrics"], test["assert"]) == (["is kind"], TASK["graders"])
    assert "rubrics" not in written(graders=[{**rubric, "weight": 2}])


@pytest.mark.parametrize(
    ("said", "read_as"),
    [
        ("type: contains, value: x, weight: 2, name: says-x", "type: contains, name: says-x, value: x, weight: 2"),
        ("type: code_grader, command: [python, a.py], cwd: ./b", "type: code_judge, script: [python, a.py], cwd: ./b"),
        ("type: code_grader, command: [sh, -c, a | b]", "type: code_judge, script: a | b"),
        ("type: llm_grader, prompt_file: ./p.md", "type: llm_judge, prompt: ./p.md"),
        (
            "type: rubrics, criteria: [{id: rubric-1, outcome: is kind}], required: true",
            "type: rubric, rubrics: [is kind], required: true",
        ),
        (
            "type: composite, assertions: [{type: llm_grader}], aggregator: {type: code_grader, command: [agg]}",
            "type: composite, assertions: [{type: llm_judge}], aggregator: {type: code_judge, command: [agg]}",
        ),
        ("type: tool_trajectory, mode: subset", "type: tool_trajectory, expected: [], mode: subset"),
        (
            "type: tool_used, tools: [a], min: 2, negate: true",
            "type: trajectory:tool-used, value: {name: [a], min: 2}, negate: true",
        ),
        ("type: step_count, kind: tool, max: 3", "type: trajectory:step-count, value: {type: tool, max: 3}"),
        ("type: unavailable, kind: not-similar, options: {value: x}, negate: true", "type: not-similar, value: x"),
        ("type: unavailable, kind: include, options: {include: a}", "include: a"),
        ("type: llm_rubric, rubric: Is kind", "type: passgate:llm_rubric, rubric: Is kind"),
    ],
)
def test_a_grader_has_the_names_of_agentevals(said: str, read_as: str) -> None:
    found = written_grader(yaml.safe_load(f"{{{said}}}"))
    assert list(found.items()) == list(yaml.safe_load(f"{{{read_as}}}").items())


def test_an_item_of_a_rubric_that_is_more_than_a_text_is_a_mapping() -> None:
    spans = [{"low": 0, "high": 4, "outcome": "bad"}, {"low": 5, "high": 10, "outcome": "good"}]
    ranges = [{"score_range": [0, 4], "outcome": "bad"}, {"score_range": [5, 10], "outcome": "good"}]
    plain = [{"id": "own", "outcome": "is kind"}, {"id": "rubric-2", "outcome": "is short", "weight": 2}]
    items = [*plain, {"id": "rubric-3", "score_ranges": spans}]
    assert written_criteria(items) == [*plain, {"id": "rubric-3", "score_ranges": ranges}]


CHARACTERS = st.sampled_from(list(" \n\t'\"#:-?|>&*!%@`{}[],.x0~é\u2028\x85\r\x07\ufeff=<yn1e")) | st.characters(
    exclude_categories=["Cs"]
)
TEXTS = st.text(CHARACTERS, max_size=10)
VALUES = nested(
    TEXTS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False), TEXTS
)


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["plain_1"], ["plain_1"]),
        (["a/b c"], ["a-b-c"]),
        (["../../etc/passwd"], ["etc-passwd"]),
        ([".hidden"], ["hidden"]),
        (["_shared"], ["shared"]),
        (["漢字"], ["task"]),
        (["eval"], ["eval-task"]),
        (["Case"], ["Case-task"]),
        (["gates"], ["gates-task"]),
        (["x.eval"], ["x.eval-task"]),
        (["dataset-1"], ["dataset-1-task"]),
        (["x" * 300], ["x" * 120]),
        # No two have the same name in any file system.
        (["a/b", "a b", "A-B", "a-b-2"], ["a-b", "a-b-2", "A-B-3", "a-b-2-2"]),
    ],
)
def test_a_name_is_like_the_id_and_safe(ids: list[str], names: list[str]) -> None:
    assert file_names(ids) == names


@given(st.lists(st.text(), unique=True))
def test_names_are_safe_and_unlike_each_other(ids: list[str]) -> None:
    names = file_names(ids)
    assert len({name.lower() for name in names}) == len(ids)
    assert all(name and name.isascii() and name[0] not in "._-" and "/" not in name for name in names)


@given(value=VALUES)
def test_reading_a_document_gives_what_was_written(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = tmp_path_factory.mktemp("yaml") / "x.yaml"
    file.write_text(yaml_text({"a": value}), encoding="utf-8")
    document = read_document(file, "x.yaml")
    assert document.problems == []
    assert document.data == {"a": value}


def test_texts_are_literal_blocks_or_one_line_and_values_stand_as_they_are(tmp_path: Path) -> None:
    assert yaml_text({"a": ["one\n\n  two\n"]}) == "a:\n  - |\n    one\n\n      two\n"
    assert yaml_text({"a": "word " * 100 + "end"}).count("\n") == 1
    shared = {"x": [1]}
    assert yaml_text({"a": shared, "b": shared}) == "a:\n  x:\n    - 1\nb:\n  x:\n    - 1\n"
    assert list(yaml.safe_load(yaml_text({"b": 1, "a": 2}))) == ["b", "a"]


@pytest.mark.parametrize("text", ["yes", "y", "null", "1e3", "0o17", "0x1f", "1_000", ".5", "12:30", "2026-01-31", "~"])
def test_what_looks_like_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"a": text}) == f"a: '{text}'\n"


def test_what_all_tests_say_stands_above_them_and_what_some_say_with_them() -> None:
    trials = {"trials": {"k": 2}}
    document = eval_document("Some Suite", [a_task("a", **trials), a_task("b", **trials)])
    assert (document["name"], document["suite"], document["run"]) == ("some-suite", "golden", {"repeat": 2})
    assert [list(test) for test in document["tests"]] == [["id", "input", "assert"]] * 2
    document = eval_document("x", [a_task("a", **trials), a_task("b")])
    assert "run" not in document
    assert document["tests"][0]["run"] == {"repeat": 2}


def test_suites_in_metadata_are_not_those_of_the_file() -> None:
    document = eval_document("x", [a_task("a", metadata={"suite": "adversarial"})])
    assert "suite" not in document
    assert document["tests"][0]["suite"] == "golden"


def test_the_schema_for_editors_is_named_first() -> None:
    assert eval_text({"name": "x"}, "../s.json") == "# yaml-language-server: $schema=../s.json\nname: x\n"
    assert eval_text({"name": "x"}, None) == "name: x\n"


def test_lines_hold_one_test_each_and_the_sidecar_what_they_share() -> None:
    lines, sidecar = lines_texts("some", [a_task("a", inputs={"prompt": "1\n2 é"}), a_task("b")])
    first, second = map(json.loads, lines.splitlines())
    assert first == {"id": "a", "input": "1\n2 é", "assert": [{"type": "contains", "value": "x"}]}
    assert second["id"] == "b"
    assert "é" in lines
    assert yaml.safe_load(sidecar) == {"name": "some", "suite": "golden"}


@pytest.mark.parametrize(
    ("name", "written_as"),
    [
        ("Code Review", "code-review"),
        ("9 lives", "tests-9-lives"),
        ("_", "tests"),
        ("x", "tests"),
        ("a" * 99, "a" * 64),
    ],
)
def test_names_are_as_agentevals_has_them(name: str, written_as: str) -> None:
    assert suite_name(name) == written_as


def test_extensions_and_hooks_of_targets_are_written_where_eval_files_have_them() -> None:
    extensions = [
        {"hook": "beforeEach", "module": "hooks.ts"},
        {"hook": "beforeAll", "agent_rules": {"skills": ["skills"]}},
    ]
    targets = [{"target": "a"}, {"target": "b", "after_each": {"command": ["ls"], "cwd": "x"}}]
    test = written(environment={"workspace": {"extensions": extensions, "target_hooks": targets}}, target="a")
    assert test["extensions"] == [
        "file://hooks.ts:beforeEach",
        {"id": "agentv:agent-rules", "hook": "beforeAll", "skills": ["skills"]},
    ]
    assert test["execution"] == {
        "targets": [{"name": "a"}, {"name": "b", "hooks": {"after_each": {"command": ["ls"], "cwd": "x"}}}]
    }
