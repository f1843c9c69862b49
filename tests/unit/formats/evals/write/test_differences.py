"""Where two tasks differ."""

from typing import Any

import pytest

from passgate.tasks.formats.evals.write.serialise import differences


@pytest.mark.parametrize(
    ("left", "right", "paths"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ["a[1].b"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({"a": {"b": 1, "c": {"d": 2}}}, {}, ["a.b", "a.c.d"]),
        ({}, {"a": {"b": 1}}, ["a.b"]),
        ({"a": {}}, {}, ["a"]),
        ({"a": "x"}, {"a": {"x": 1}}, ["a"]),
    ],
)
def test_every_difference_has_its_path(left: Any, right: Any, paths: list[str]) -> None:
    assert list(differences(left, right)) == paths
