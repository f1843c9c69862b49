from pathlib import Path

import pytest

from passgate.tasks.formats.conversion import eval_output, four_suite_output, lines_output, staging
from passgate.tasks.formats.loading import SourceTask
from passgate.tasks.formats.normalise import Origin
from passgate.tasks.model.task import TaskFile
from tests.builders import task_document


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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "suites/graders").mkdir(parents=True)
    return tmp_path / "suites"


def a_source(root: Path, cwd: str = "graders") -> SourceTask:
    task = task_document(task_id="t", graders=[{"type": "code_grader", "command": ["judge"], "cwd": cwd}])
    return SourceTask(TaskFile.model_validate(task), root, Origin("t", "t.yaml", 1))


def test_paths_of_task_files_are_relative_to_their_suites_folder_and_stay_in_it(root: Path) -> None:
    output = four_suite_output([a_source(root)], root.parent)
    file = root.parent / "golden/t.yaml"
    assert (output.root, [*output.texts]) == (root.parent, [file])
    assert output.expected[0]["graders"][0]["cwd"] == "suites/graders"
    assert "cwd: suites/graders\n" in output.texts[file]
    output = four_suite_output([a_source(root)], root / "inner")
    assert output.expected[0]["graders"] == []
    assert [loss.path for loss in output.losses[0]] == ["graders[0]"]


def test_paths_of_eval_files_are_relative_to_their_own_folder_unless_they_lead_nowhere(root: Path) -> None:
    file = root / "golden/shop/EVAL.yaml"
    output = eval_output([a_source(root)], file)
    assert output.root == root
    assert output.expected[0]["graders"][0]["cwd"] == "graders"
    assert output.texts[file].startswith("name: shop\n")
    assert "cwd: ../../graders\n" in output.texts[file]
    assert "cwd: nowhere\n" in eval_output([a_source(root, "nowhere")], file).texts[file]


def test_lines_and_sidecar_stand_beside_each_other(root: Path) -> None:
    file = root / "golden/shop.jsonl"
    output = lines_output([a_source(root)], file)
    assert [*output.texts] == [file, root / "golden/shop.yaml"]
    assert '"cwd": "../graders"' in output.texts[file]
