"""When series change: found, dated, told of at a known rate of false alarms."""

import numpy as np
import pytest
from bench.change_points import LONG, NIGHTS, PLANTED, Planted, by_passgate, found_by_passgate, generated, hits
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.stats.change_points import Levels, PassRates, change_points, threshold
from tests.searches import costly


def a_task(*rates: tuple[float, int], without: slice = slice(0, 0)) -> PassRates:
    """A task of 10 trials a run: each rate for so many runs; runs `without` trials."""
    chance = np.concatenate([np.full(runs, rate) for rate, runs in rates])
    n = np.full((1, len(chance)), 10.0)
    n[:, without] = 0.0
    return PassRates(np.random.default_rng(1).binomial(10, chance)[None, :] / 10, n)


@pytest.mark.slow
def test_every_planted_change_is_found_named_and_dated_within_3_runs() -> None:
    for seed in (1, 2):
        changes = found_by_passgate(generated(LONG, 10_000 + seed, PLANTED))
        assert hits(changes) == [True] * len(PLANTED), changes


@pytest.mark.slow
def test_of_100_clean_histories_at_most_2_have_an_alarm() -> None:
    assert sum(any(by_passgate(generated(NIGHTS, seed)).values()) for seed in range(100)) <= 2


def test_a_regression_of_one_task_is_found_in_it_and_nowhere_else() -> None:
    planted = Planted("", "passed", 12, 40, 0.5)
    found = by_passgate(generated(NIGHTS, 7, (planted,)))
    tasks = [change for change in found["passed"] if change.series < 33]
    assert [(change.series, abs(change.at - 40) <= 1, change.until) for change in tasks] == [(12, True, None)]
    assert tasks[0].before > 0.9 > 0.7 > tasks[0].after
    assert tasks[0].at <= tasks[0].alarm <= 43
    assert not found["latency"]
    assert not found["cost"]


def test_a_slow_change_has_a_beginning_and_an_end() -> None:
    planted = Planted("", "cost", 33 + 3, 60, 0.6, nights=32)
    (change,) = [one for one in by_passgate(generated(130, 3, (planted,)))["cost"] if one.series == 36]
    assert abs(change.at - 60) <= 3
    assert abs((change.until or 0) - 91) <= 8
    assert change.after - change.before == pytest.approx(0.6, abs=0.1)


def test_what_falls_and_rises_again_has_two_changes_and_the_newest_is_told() -> None:
    (changes,) = change_points([a_task((0.95, 40), (0.3, 6), (0.95, 40))])
    assert [change.at for change in changes] == [40, 46]
    assert changes[0].after < 0.5 < changes[1].after
    (changes,) = change_points([a_task((1.0, 30), (0.0, 1))])
    assert [(change.at, change.alarm) for change in changes] == [(30, 30)]
    assert change_points([a_task((0.5, 200))]) == [[]]


def test_runs_without_trials_say_nothing() -> None:
    (changes,) = change_points([a_task((1.0, 30), (0.2, 10), without=slice(5, 20))])
    assert [change.at for change in changes] == [30]
    values = np.random.default_rng(1).normal(0, 0.1, (1, 60))
    values[:, 40:] += 1
    values[:, 10:25] = np.nan
    assert [change.at for change in change_points([Levels(values, 0.1)])[0]] == [40]


@pytest.mark.parametrize("runs", [0, 1, 7, 9])
def test_short_histories_have_no_changes_and_no_mistakes(runs: int) -> None:
    rows = np.zeros((3, runs))
    assert change_points([PassRates(rows, rows), Levels(rows * np.nan, 0.1)]) == [[], []]


def test_one_slow_night_and_small_steps_are_no_changes_of_level() -> None:
    values = np.random.default_rng(2).normal(0, 0.05, (2, 60))
    values[0, 30:32] += 3
    values[1, 30:] += 0.06
    assert change_points([Levels(values, float(np.log(1.1)))]) == [[]]


def test_runs_that_are_like_the_ones_before_them_need_more_evidence() -> None:
    noise = np.random.default_rng(5).normal(0, 0.1, (20, 120))
    for run in range(1, 120):
        noise[:, run] += 0.7 * noise[:, run - 1]
    assert len(change_points([Levels(noise, 0.1)])[0]) <= 2


@costly
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.02, 0.98), st.integers(1, 12))
def test_the_bound_holds_whatever_the_rate(before: int, after: int, rate: float, trials: int) -> None:
    """Minus the logarithm of how often chance alone makes such a difference is at least the evidence of it."""
    random = np.random.default_rng(before * 1000 + after)
    n = np.full((400, before + after), float(trials))
    series = PassRates(random.binomial(trials, rate, n.shape) / trials, n)
    evidence = np.sort([series.confirmation(task, 0, before, before + after) for task in range(400)])[::-1]
    for rank in (4, 16, 64):
        chance = rank / 400
        assert evidence[rank - 1] <= np.log(4 / chance) + 1.5  # four sides, and the luck of 400 draws


def test_more_series_need_more_evidence_and_none_are_no_mistake() -> None:
    assert threshold(100) == pytest.approx(threshold(1) + np.log(100))
    assert change_points([]) == []
