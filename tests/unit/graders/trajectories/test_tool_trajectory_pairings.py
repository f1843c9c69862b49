"""Pairing expectations with things: as many as possible."""

import pytest

from passgate.tasks.graders.trajectories.tool_trajectory import most_in_order, most_paired


@pytest.mark.parametrize(
    ("fits", "count"),
    [
        ([], 0),
        ([[]], 0),
        ([[0], [0]], 1),
        ([[0, 1], [0]], 2),
        ([[0, 1], [0, 2], [0]], 3),
        ([[0], [0, 1], [1, 2], [2]], 3),
        ([[5], [], [3]], 2),
    ],
)
def test_as_many_as_possible_have_one_of_their_own(fits: list[list[int]], count: int) -> None:
    pairs = most_paired(fits)
    assert len(pairs) == count
    assert len(set(pairs.values())) == count


@pytest.mark.parametrize(
    ("fits", "count"),
    [
        ([], 0),
        ([[0], [0]], 1),
        ([[1], [0]], 1),
        ([[0, 1], [0, 1]], 2),
        ([[3], [0], [1], [2]], 3),
        ([[0, 4], [1], [], [2]], 3),
        ([[2], [0, 3], [1, 4]], 3),
    ],
)
def test_as_many_as_possible_are_found_in_order(fits: list[list[int]], count: int) -> None:
    pairs = most_in_order(fits)
    assert len(pairs) == count
    assert list(pairs.values()) == sorted(set(pairs.values()))


def test_many_are_paired_in_time() -> None:
    fits = [list(range(300)) for _ in range(200)]
    assert len(most_paired(fits)) == 200
    assert len(most_in_order(fits)) == 200
