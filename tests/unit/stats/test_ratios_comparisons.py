"""Figures of two runs, paired by task."""

import numpy as np
import pytest

from tests.unit.stats.paired import Answer, ratio_of_tasks

Trials = list[list[float]]
"""Per task, the figures of its trials."""


def paired_ratio(now: Trials, before: Trials, *others: Trials) -> Answer | None:
    """The same run of the baseline twice, so that runs do not differ, where there is no other."""
    runs = (before, *(others or (before,)))
    return ratio_of_tasks(
        {f"t{place}": values for place, values in enumerate(now)},
        {f"t{place}": {f"r{number}": run[place] for number, run in enumerate(runs)} for place in range(len(before))},
    )


def figures(tasks: int, *, seed: int, trials: int = 5, factor: float = 1.0) -> Trials:
    """Per task a level of its own and trials that scatter around it by a tenth."""
    levels = np.geomspace(0.5, 500, tasks)
    noise = np.random.default_rng(seed).lognormal(0, 0.1, size=(tasks, trials))
    return [list(row) for row in levels[:, None] * noise * factor]


def test_an_unchanged_agent_is_about_as_dear_and_its_bound_is_below_one() -> None:
    answer = paired_ratio(figures(12, seed=1), figures(12, seed=2))
    assert answer is not None
    assert answer.ratio == pytest.approx(1.0, abs=0.06)
    assert answer.lower_bound < 1.0
    assert answer.pairs == 12


def test_the_very_same_figures_are_one_and_give_the_same_bound() -> None:
    same = figures(9, seed=1)
    answer = paired_ratio(same, same)
    assert answer is not None
    assert answer.ratio == pytest.approx(1.0)
    assert 0.95 < answer.lower_bound <= 1.0
    sides = figures(10, seed=3), figures(10, seed=4)
    assert paired_ratio(*sides) == paired_ratio(*sides)


def test_a_dearer_agent_is_found() -> None:
    answer = paired_ratio(figures(12, seed=1, factor=1.5), figures(12, seed=2))
    assert answer is not None
    assert answer.ratio == pytest.approx(1.5, rel=0.06)
    assert 1.3 < answer.lower_bound < answer.ratio


def test_the_unit_does_not_matter() -> None:
    now, before = figures(8, seed=1, factor=1.2), figures(8, seed=2)
    milliseconds = [[[value * 1000 for value in task] for task in side] for side in (now, before)]
    plain, scaled = paired_ratio(now, before), paired_ratio(*milliseconds)
    assert plain is not None
    assert scaled is not None
    assert scaled.ratio == pytest.approx(plain.ratio)
    assert scaled.lower_bound == pytest.approx(plain.lower_bound)


@pytest.mark.parametrize("noisy_side", [0, 1])
def test_trials_that_scatter_prove_less(noisy_side: int) -> None:
    sides = [[[1.2] * 4] * 8, [[1.0] * 4] * 8]
    steady = paired_ratio(*sides)
    noise = np.random.default_rng(5).lognormal(0, 0.5, size=(8, 4))
    sides[noisy_side] = [list(row) for row in np.array(sides[noisy_side]) * noise]
    noisy = paired_ratio(*sides)
    assert steady is not None
    assert noisy is not None
    assert steady.lower_bound == pytest.approx(steady.ratio) == pytest.approx(1.2)
    assert noisy.lower_bound < noisy.ratio - 0.05


def test_the_bound_is_students() -> None:
    """Ratios of e^1 to e^8: their logarithms have the mean 4.5 and the standard error sqrt(6 / 8)."""
    answer = paired_ratio([[np.exp(power)] for power in range(1, 9)], [[1.0]] * 8)
    assert answer is not None
    assert np.log(answer.ratio) == pytest.approx(4.5)
    assert np.log(answer.lower_bound) == pytest.approx(4.5 - 1.414923928 * np.sqrt(6 / 8))


def test_one_slow_task_is_no_proof() -> None:
    before = figures(10, seed=2)
    now = [[value * 10 for value in before[0]], *before[1:]]
    answer = paired_ratio(now, before)
    assert answer is not None
    assert answer.ratio == pytest.approx(10**0.1)
    assert answer.lower_bound < 1.01


@pytest.mark.parametrize("tasks", [0, 1, 7])
def test_fewer_than_eight_pairs_are_not_compared(tasks: int) -> None:
    assert paired_ratio(figures(tasks, seed=1), figures(tasks, seed=2)) is None


def test_fewer_than_eight_pairs_are_none() -> None:
    now, before = figures(10, seed=1), figures(10, seed=2)
    now[0], before[1], now[2] = [], [], [0.0, 0.0]
    assert paired_ratio(now, before) is None
    assert paired_ratio(figures(8, seed=1), figures(7, seed=2)) is None
    answer = paired_ratio(figures(8, seed=1), figures(12, seed=2))
    assert answer is not None
    assert answer.pairs == 8
    assert paired_ratio(figures(8, seed=1), figures(8, seed=2)) is not None


def test_a_single_trial_that_cost_nothing_breaks_nothing_and_numbers_may_differ() -> None:
    now = [[0.0, 1.0, 1.0], *figures(8, seed=1)]
    answer = paired_ratio(now, figures(9, seed=2))
    assert answer is not None
    assert np.isfinite(answer.lower_bound)
    answer = paired_ratio(figures(9, seed=1, trials=2), figures(9, seed=2, trials=30))
    assert answer is not None
    assert answer.ratio == pytest.approx(1.0, abs=0.15)


class TestWholeRuns:
    def drifting(self, *factors: float) -> list[Trials]:
        return [[[factor * level] * 3 for level in range(1, 13)] for factor in factors]

    def test_that_differ_widen_the_bound(self) -> None:
        now, *before = self.drifting(1.3, 1.0, 1.1, 0.9, 1.1, 0.9)
        answer = paired_ratio(now, *before)
        assert answer is not None
        assert answer.ratio == pytest.approx(1.3, rel=0.01)
        drift = np.std(np.log([1.0, 1.1, 0.9, 1.1, 0.9]), ddof=1)
        assert answer.drift == pytest.approx(drift)
        assert np.log(answer.ratio / answer.lower_bound) > drift * np.sqrt(6 / 5)

    def test_that_differ_no_more_than_their_trials_explain_do_not(self) -> None:
        now, *before = (figures(12, seed=seed) for seed in range(4))
        answer = paired_ratio(now, *before)
        assert answer is not None
        assert answer.drift < 0.03

    def test_of_which_there_is_one_or_that_share_no_task_cannot_be_compared(self) -> None:
        now = {f"t{place}": [2.0] for place in range(12)}
        assert ratio_of_tasks(now, {task: {"r": [1.0]} for task in now}) is None
        now = {f"t{place}": [2.0, 2.0] for place in range(12)}
        assert ratio_of_tasks(now, {task: {f"r{task}": [1.0, 1.0]} for task in now}) is None

    def test_in_which_a_task_is_missing_count_for_the_others(self) -> None:
        now, first, second = self.drifting(1.0, 1.0, 1.2)
        second[0] = []
        answer = paired_ratio(now, first, second)
        assert answer is not None
        assert answer.pairs == 12
        assert answer.drift == pytest.approx(np.std(np.log([1.0, 1.2]), ddof=1), rel=0.1)

    def test_that_share_some_tasks_rarely_make_an_unchanged_agent_dearer(self) -> None:
        """Every task is in two of twenty runs, which differ by a fifth; so does the run under test."""
        draws, exceeded, gates = np.random.default_rng(3), 0, 200
        for _ in range(gates):
            shifts = draws.normal(0, 0.2, 21)
            now = {f"t{task}": list(np.exp(shifts[20] + draws.normal(0, 0.3, 3))) for task in range(20)}
            before = {
                task: {f"r{run}": list(np.exp(shifts[run] + draws.normal(0, 0.3, 3))) for run in runs}
                for task, runs in zip(now, (draws.choice(20, 2, replace=False) for _ in now), strict=True)
            }
            answer = ratio_of_tasks(now, before)
            exceeded += answer is not None and answer.lower_bound > 1.15
        assert exceeded / gates < 0.08
