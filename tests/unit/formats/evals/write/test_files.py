"""Tests as the documents of files."""

import json
from typing import Any

import pytest
import yaml

from passgate.tasks.formats.evals.write.files import eval_document, eval_text, lines_texts, suite_name
from tests.unit.formats.evals.write.test_tests import TASK


def a_task(task_id: str, **said: Any) -> dict[str, Any]:
    return {**TASK, "task_id": task_id, **said}


def test_what_all_tests_say_stands_above_them() -> None:
    trials = {"trials": {"k": 2}}
    document = eval_document("Some Suite", [a_task("a", **trials), a_task("b", **trials)])
    assert document["name"] == "some-suite"
    assert document["suite"] == "golden"
    assert document["run"] == {"repeat": 2}
    assert [list(test) for test in document["tests"]] == [["id", "input", "assert"]] * 2


def test_what_some_tests_say_stands_with_them() -> None:
    document = eval_document("x", [a_task("a", trials={"k": 2}), a_task("b")])
    assert "run" not in document
    assert document["tests"][0]["run"] == {"repeat": 2}


def test_a_suite_in_the_metadata_does_not_go_before_the_tests_own() -> None:
    document = eval_document("x", [a_task("a", metadata={"suite": "adversarial"})])
    assert "suite" not in document
    assert document["tests"][0]["suite"] == "golden"


def test_the_mode_of_all_tests_is_that_of_the_file() -> None:
    compatible = {"scoring": {"rule": "weighted_average", "compat": "agentv"}}
    assert eval_document("x", [a_task("a", **compatible)])["compat"] == "agentv"
    assert "compat" not in eval_document("x", [a_task("a", **compatible), a_task("b")])


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
    ("name", "written"),
    [
        ("Code Review", "code-review"),
        ("9 lives", "tests-9-lives"),
        ("_", "tests"),
        ("x", "tests"),
        ("a" * 99, "a" * 64),
    ],
)
def test_names_are_as_agentevals_has_them(name: str, written: str) -> None:
    assert suite_name(name) == written
