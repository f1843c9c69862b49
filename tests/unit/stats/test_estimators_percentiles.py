"""Percentiles by the nearest rank."""

import pytest

from passgate.tasks.stats.estimators import percentile


@pytest.mark.parametrize(
    ("count", "percent", "rank"),
    [(1, 95, 1), (2, 95, 2), (19, 95, 19), (20, 95, 19), (21, 95, 20), (100, 95, 95), (100, 50, 50), (3, 50, 2)],
)
def test_the_nearest_rank(count: int, percent: float, rank: int) -> None:
    assert percentile([float(value) for value in range(1, count + 1)], percent) == rank


def test_the_ends_and_any_order() -> None:
    assert percentile([3.0, 1.0, 2.0], 0) == 1.0
    assert percentile([3.0, 1.0, 2.0], 100) == 3.0
    assert percentile([30.0, 10.0, 20.0], 50) == 20.0
    assert percentile([], 95) is None
