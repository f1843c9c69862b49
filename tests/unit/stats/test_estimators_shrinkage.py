"""Pass rates of many tasks from a few trials of each."""

import pytest

from passgate.tasks.stats.estimators import shrunk_rates


def test_tasks_that_never_failed_share_one_half_failure() -> None:
    rates = shrunk_rates([(60, 60)] * 20)
    assert rates == [pytest.approx(1200.5 / 1201)] * 20
    assert 1 - rates[0] ** 60 == pytest.approx(0.025, abs=0.001)


def test_tasks_that_differ_by_chance_alone_have_one_rate() -> None:
    rates = shrunk_rates([(59, 60)] * 10 + [(60, 60)] * 10)
    assert len(set(rates)) == 1
    assert rates[0] == pytest.approx(1190.5 / 1201)


def test_a_task_that_stands_out_keeps_most_of_its_own_rate_and_none_is_0_or_1() -> None:
    worst, *others = shrunk_rates([(30, 60), *[(60, 60)] * 19])
    assert 0.5 < worst < 0.53
    assert all(0.999 < rate < 1 for rate in others)
    assert all(0.01 < rate < 0.99 for rate in shrunk_rates([(0, 10), (10, 10)]))


def test_a_task_without_trials_has_the_rate_of_all_and_one_alone_jeffreys_mean() -> None:
    known, unknown = shrunk_rates([(60, 60), (0, 0)])
    assert unknown == known
    assert shrunk_rates([(3, 3)]) == [pytest.approx(3.5 / 4)]
    assert shrunk_rates([(0, 3)]) == [pytest.approx(0.5 / 4)]


@pytest.mark.parametrize(
    ("counts", "message"), [([], "trials"), ([(0, 0)], "trials"), ([(2, 1)], "passed"), ([(-1, 1)], "passed")]
)
def test_counts_that_cannot_be_are_refused(counts: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shrunk_rates(counts)
