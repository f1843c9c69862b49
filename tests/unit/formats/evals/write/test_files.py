import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.evals.write.files import (
    eval_document,
    eval_text,
    file_names,
    lines_texts,
    suite_name,
    yaml_text,
)
from tests.unit.formats.evals.write.test_tests import TASK

CHARACTERS = st.sampled_from(list(" \n\t'\"#:-?|>&*!%@`{}[],.x0~é\u2028\x85\r\x07\ufeff=<yn1e")) | st.characters(
    exclude_categories=["Cs"]
)
TEXTS = st.text(CHARACTERS, max_size=10)
VALUES: st.SearchStrategy[Any] = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("task_id", "name"),
    [
        ("plain_1", "plain_1"),
        ("a/b c", "a-b-c"),
        ("../../etc/passwd", "etc-passwd"),
        (".hidden", "hidden"),
        ("_shared", "shared"),
        ("漢字", "task"),
        ("eval", "eval-task"),
        ("Case", "Case-task"),
        ("gates", "gates-task"),
        ("x.eval", "x.eval-task"),
        ("dataset-1", "dataset-1-task"),
        ("x" * 300, "x" * 120),
    ],
)
def test_a_name_is_like_the_id_and_safe(task_id: str, name: str) -> None:
    assert file_names([task_id]) == [name]


def test_no_two_have_the_same_name_in_any_file_system() -> None:
    assert file_names(["a/b", "a b", "A-B", "a-b-2"]) == ["a-b", "a-b-2", "A-B-3", "a-b-2-2"]


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


def test_texts_of_several_lines_are_literal_blocks() -> None:
    assert yaml_text({"a": ["one\n\n  two\n"]}) == "a:\n  - |\n    one\n\n      two\n"


def test_a_long_line_stays_one_line() -> None:
    assert yaml_text({"a": "word " * 100 + "end"}).count("\n") == 1


@pytest.mark.parametrize("text", ["yes", "y", "null", "1e3", "0o17", "0x1f", "1_000", ".5", "12:30", "2026-01-31", "~"])
def test_what_looks_like_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"a": text}) == f"a: '{text}'\n"


def test_the_same_value_twice_is_written_twice() -> None:
    shared = {"x": [1]}
    assert yaml_text({"a": shared, "b": shared}) == "a:\n  x:\n    - 1\nb:\n  x:\n    - 1\n"


def test_keys_stay_in_their_order(tmp_path: Path) -> None:
    assert list(yaml.safe_load(yaml_text({"b": 1, "a": 2}))) == ["b", "a"]


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
