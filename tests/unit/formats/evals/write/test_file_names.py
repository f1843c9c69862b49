"""Names of files for tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.formats.evals.write.files import file_names


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
