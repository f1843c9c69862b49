"""New files, put into their places all or none."""

from pathlib import Path

import pytest

from passgate.tasks.formats.conversion import staging


def test_files_are_not_there_before_they_are_published(tmp_path: Path) -> None:
    one, two = tmp_path / "a/b/one.yaml", tmp_path / "two.yaml"
    with staging({one: "1", two: "2"}) as staged:
        assert not one.exists()
        assert sorted(written.read_text() for written in staged.places) == ["1", "2"]
        assert {written.parent for written in staged.places} == {one.parent, two.parent}
        staged.publish()
    assert (one.read_text(), two.read_text()) == ("1", "2")
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["one.yaml", "two.yaml"]


def test_nothing_is_left_of_what_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(KeyError), staging({tmp_path / "a/b/one.yaml": "1"}):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_what_cannot_be_written(tmp_path: Path) -> None:
    texts = {tmp_path / "a/one.yaml": "1", tmp_path / "a/two.yaml": "\ud800"}
    with pytest.raises(UnicodeEncodeError), staging(texts):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with staging({tmp_path / "a/one.yaml": "1"}):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
