from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.errors import UsageError
from passgate.tasks.formats.conversion import eval_file_texts, file_names, staging, task_files, yaml_text
from passgate.tasks.formats.document import read_document
from passgate.tasks.formats.four_suite import Origin
from passgate.tasks.formats.loading import SourceTask
from passgate.tasks.model.task import TaskFile
from tests.builders import task_document
from tests.property.documents import nested


def test_files_are_not_there_before_they_are_published(tmp_path: Path) -> None:
    one, two = tmp_path / "a/b/one.yaml", tmp_path / "two.yaml"
    with staging({one: "1", two: "2"}) as staged:
        assert not one.exists()
        assert sorted(written.read_text() for written in staged.places) == ["1", "2"]
        assert {written.parent for written in staged.places} == {one.parent, two.parent}
        staged.publish()
    assert (one.read_text(), two.read_text()) == ("1", "2")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["one.yaml", "two.yaml"]


def test_nothing_is_left_of_what_is_not_published_or_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(KeyError), staging({tmp_path / "a/b/one.yaml": "1"}):
        raise KeyError
    with pytest.raises(UnicodeEncodeError), staging({tmp_path / "a/one.yaml": "1", tmp_path / "a/two.yaml": "\ud800"}):
        pass
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").mkdir()
    with staging({tmp_path / "a/one.yaml": "1"}):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_paths_of_task_files_are_relative_to_their_suites_folder_and_stay_in_it(tmp_path: Path) -> None:
    root = tmp_path / "suites"
    (root / "graders").mkdir(parents=True)
    task = task_document(task_id="t", graders=[{"type": "code_grader", "command": ["judge"], "cwd": "graders"}])
    source = SourceTask(TaskFile.model_validate(task), root, Origin("t", "t.yaml", 1))
    output, file = task_files([source], tmp_path), tmp_path / "golden/t.yaml"
    assert (output.root, [*output.texts]) == (tmp_path, [file])
    assert output.expected[0]["graders"][0]["cwd"] == "suites/graders"
    assert "cwd: suites/graders\n" in output.texts[file]
    output = task_files([source], root / "inner")
    assert output.expected[0]["graders"] == []
    assert [loss.path for loss in output.losses[0]] == ["graders[0]"]


def test_an_eval_file_is_the_same_in_yaml_and_in_lines(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    document = {"name": "shop", "tests": [{"id": "a", "input": "Say ${{ X }}"}, "./more.yaml"], "threshold": 0.5}
    source, lines = tmp_path / "shop.eval.yaml", tmp_path / "shop.jsonl"
    source.write_text(yaml_text(document))
    texts = eval_file_texts(source, lines)
    assert texts == {
        lines: '{"id": "a", "input": "Say ${{ X }}"}\n"./more.yaml"\n',
        tmp_path / "shop.yaml": "name: shop\nthreshold: 0.5\n",
    }
    for file, text in texts.items():
        file.write_text(text)
    (text,) = eval_file_texts(lines, tmp_path / "back.yaml").values()
    assert yaml.safe_load(text) == document
    source.write_text("tests: ./more.yaml\n")
    with pytest.raises(UsageError, match="no list of tests of its own"):
        eval_file_texts(source, lines)


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


CHARACTERS = st.sampled_from(list(" \n\t'\"#:-?|>&*!%@`{}[],.x0~é\u2028\x85\r\x07\ufeff=<yn1e")) | st.characters(
    exclude_categories=["Cs"]
)
TEXTS = st.text(CHARACTERS, max_size=10)
VALUES = nested(
    TEXTS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False), TEXTS
)


@given(value=VALUES)
def test_reading_a_document_gives_what_was_written(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    file = tmp_path_factory.mktemp("yaml") / "x.yaml"
    file.write_text(yaml_text({"a": value}), encoding="utf-8")
    document = read_document(file, "x.yaml")
    assert document.problems == []
    assert document.data == {"a": value}


def test_texts_are_literal_blocks_or_one_line_and_values_stand_as_they_are() -> None:
    assert yaml_text({"a": ["one\n\n  two\n"]}) == "a:\n  - |\n    one\n\n      two\n"
    assert yaml_text({"a": "word " * 100 + "end"}).count("\n") == 1
    shared = {"x": [1]}
    assert yaml_text({"a": shared, "b": shared}) == "a:\n  x:\n    - 1\nb:\n  x:\n    - 1\n"
    assert list(yaml.safe_load(yaml_text({"b": 1, "a": 2}))) == ["b", "a"]


@pytest.mark.parametrize("text", ["yes", "y", "null", "1e3", "0o17", "0x1f", "1_000", ".5", "12:30", "2026-01-31", "~"])
def test_what_looks_like_something_else_is_quoted(text: str) -> None:
    assert yaml_text({"a": text}) == f"a: '{text}'\n"
