"""The places of what charts draw."""

import pytest

from passgate.tasks.model.verdict import EarlierRun
from passgate.tasks.reports.page.charts import BIN_HEIGHT, BIN_WIDTH, BINS, histogram, spark


def test_a_spark_goes_from_the_oldest_run_to_the_newest() -> None:
    line = spark([EarlierRun("a", 0, 4), EarlierRun("b", 2, 4), EarlierRun("c", 4, 4)])
    assert line is not None
    assert line.points == "3.0,17.0 44.0,10.0 85.0,3.0"
    assert line.label == "last 3 runs, trials passed, newest last: 0/4, 2/4, 4/4"
    assert spark([]) is None


@pytest.mark.parametrize(
    ("now", "before"),
    [([1.0, 2.0, 4.0], [2.0, 8.0]), ([3.0], []), ([3.0, 3.0], [3.0]), ([1e-9, 1e9], [float("inf"), 0.0, -1.0])],
)
def test_every_bar_lies_within_the_chart(now: list[float], before: list[float]) -> None:
    shape = histogram(now, before)
    assert shape is not None
    for x, _, height in (*shape.now.bars, *shape.before.bars):
        assert 0 <= x <= (BINS - 1) * BIN_WIDTH
        assert 0 < height <= BIN_HEIGHT


def test_the_quantiles_are_those_of_the_figures() -> None:
    shape = histogram([float(value) for value in range(1, 101)], [5.0])
    assert shape is not None
    assert shape.now.quantiles == (("median", 50.5), ("P95", 95.0))
    assert shape.before.quantiles == (("median", 5.0), ("P95", 5.0))


def test_without_figures_there_is_no_chart() -> None:
    assert histogram([], [1.0]) is None
    assert histogram([0.0], [1.0]) is None
