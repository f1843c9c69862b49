"""Figures of two runs, paired by task, and the noise in them."""

import random
from math import exp
from statistics import fmean

import numpy as np
import pytest

from passgate.tasks.stats.ratios import (
    LEAST_PAIRS,
    Figures,
    Noise,
    Pair,
    Ratios,
    estimate_noise,
    p95,
    plain_ratios,
    simulated_bounds,
    total,
)
from passgate.tasks.stats.run_effects import pad_cells, run_effects
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


def compared(now: Trials, before: Trials, *others: Trials) -> Answer:
    answer = paired_ratio(now, before, *others)
    assert answer is not None
    return answer


def figures(tasks: int, *, seed: int, trials: int = 5, factor: float = 1.0) -> Trials:
    """Per task a level of its own and trials that scatter around it by a tenth."""
    levels = np.geomspace(0.5, 500, tasks)
    noise = np.random.default_rng(seed).lognormal(0, 0.1, size=(tasks, trials))
    return [list(row) for row in levels[:, None] * noise * factor]


def test_an_unchanged_agent_is_about_as_dear_and_its_bound_is_below_one() -> None:
    answer = compared(figures(12, seed=1), figures(12, seed=2))
    assert (answer.ratio, answer.pairs) == (pytest.approx(1.0, abs=0.06), 12)
    assert answer.lower_bound < 1.0
    same = figures(9, seed=1)
    answer = compared(same, same)
    assert answer.ratio == pytest.approx(1.0)
    assert 0.95 < answer.lower_bound <= 1.0
    assert compared(same, same) == answer


def test_a_dearer_agent_is_found() -> None:
    answer = compared(figures(12, seed=1, factor=1.5), figures(12, seed=2))
    assert answer.ratio == pytest.approx(1.5, rel=0.06)
    assert 1.3 < answer.lower_bound < answer.ratio


@pytest.mark.parametrize("noisy_side", [0, 1])
def test_trials_that_scatter_prove_less(noisy_side: int) -> None:
    sides = [[[1.2] * 4] * 8, [[1.0] * 4] * 8]
    steady = compared(*sides)
    noise = np.random.default_rng(5).lognormal(0, 0.5, size=(8, 4))
    sides[noisy_side] = [list(row) for row in np.array(sides[noisy_side]) * noise]
    noisy = compared(*sides)
    assert steady.lower_bound == pytest.approx(steady.ratio) == pytest.approx(1.2)
    assert noisy.lower_bound < noisy.ratio - 0.05


def test_the_bound_is_students() -> None:
    """Ratios of e^1 to e^8: their logarithms have the mean 4.5 and the standard error sqrt(6 / 8)."""
    answer = compared([[np.exp(power)] for power in range(1, 9)], [[1.0]] * 8)
    assert np.log(answer.ratio) == pytest.approx(4.5)
    assert np.log(answer.lower_bound) == pytest.approx(4.5 - 1.414923928 * np.sqrt(6 / 8))


def test_one_slow_task_is_no_proof() -> None:
    before = figures(10, seed=2)
    answer = compared([[value * 10 for value in before[0]], *before[1:]], before)
    assert answer.ratio == pytest.approx(10**0.1)
    assert answer.lower_bound < 1.01


@pytest.mark.parametrize("tasks", [0, 1, 7])
def test_fewer_than_eight_pairs_are_not_compared(tasks: int) -> None:
    assert paired_ratio(figures(tasks, seed=1), figures(tasks, seed=2)) is None


def test_tasks_without_figures_on_both_sides_are_no_pairs() -> None:
    now, before = figures(10, seed=1), figures(10, seed=2)
    now[0], before[1], now[2] = [], [], [0.0, 0.0]
    assert paired_ratio(now, before) is None
    assert paired_ratio(figures(8, seed=1), figures(7, seed=2)) is None
    assert compared(figures(8, seed=1), figures(12, seed=2)).pairs == 8
    assert compared(figures(8, seed=1), figures(8, seed=2)).pairs == 8


def test_a_single_trial_that_cost_nothing_breaks_nothing_and_numbers_may_differ() -> None:
    now = [[0.0, 1.0, 1.0], *figures(8, seed=1)]
    assert np.isfinite(compared(now, figures(9, seed=2)).lower_bound)
    answer = compared(figures(9, seed=1, trials=2), figures(9, seed=2, trials=30))
    assert answer.ratio == pytest.approx(1.0, abs=0.15)


class TestWholeRuns:
    def drifting(self, *factors: float) -> list[Trials]:
        return [[[factor * level] * 3 for level in range(1, 13)] for factor in factors]

    def test_that_differ_widen_the_bound(self) -> None:
        answer = compared(*self.drifting(1.3, 1.0, 1.1, 0.9, 1.1, 0.9))
        drift = np.std(np.log([1.0, 1.1, 0.9, 1.1, 0.9]), ddof=1)
        assert (answer.ratio, answer.drift) == (pytest.approx(1.3, rel=0.01), pytest.approx(drift))
        assert np.log(answer.ratio / answer.lower_bound) > drift * np.sqrt(6 / 5)

    def test_that_differ_no_more_than_their_trials_explain_do_not(self) -> None:
        assert compared(*(figures(12, seed=seed) for seed in range(4))).drift < 0.03

    def test_of_which_there_is_one_or_that_share_no_task_cannot_be_compared(self) -> None:
        now = {f"t{place}": [2.0, 2.0] for place in range(12)}
        assert ratio_of_tasks(now, {task: {"r": [1.0]} for task in now}) is None
        assert ratio_of_tasks(now, {task: {f"r{task}": [1.0, 1.0]} for task in now}) is None

    def test_in_which_a_task_is_missing_count_for_the_others(self) -> None:
        now, first, second = self.drifting(1.0, 1.0, 1.2)
        second[0] = []
        answer = compared(now, first, second)
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


class TestPlainFigures:
    """The total and the P95 of a run beside those of the runs of a baseline, in 40 gates of 12 tasks."""

    def gates(self, *, drift: float = 0.0) -> Figures:
        draws = np.random.default_rng(1)
        noise = draws.normal(0, 0.3, (40, 12, 11, 3)) + draws.normal(0, drift, (40, 1, 11, 1))
        levels = np.linspace(0, 2, 12)[:, None, None] + noise
        return Figures(tuple(f"t{task}" for task in range(12)), levels[:, :, -1], levels[:, :, :-1])

    def compared(self, gates: Figures, statistic: str) -> Ratios:
        cells = pad_cells(gates.before)
        return plain_ratios({"total": total, "p95": p95}[statistic], gates, cells, run_effects(cells))

    def test_are_those_of_the_reports(self) -> None:
        trials = np.array([[[1.0, 3.0, np.nan], [2.0, 4.0, 9.0]]])
        assert total(trials) == pytest.approx(2 + 5)
        assert p95(trials) == 9.0
        assert p95(np.arange(1.0, 41).reshape(1, 10, 4)) == 38.0

    @pytest.mark.parametrize("statistic", ["total", "p95"])
    def test_of_an_unchanged_run_are_hardly_ever_more_whatever_it_lacks(self, statistic: str) -> None:
        some = self.gates()
        some.before[:, 0, :5] = np.nan
        some.before[:, 1, 2, 1:] = np.nan
        some.now[:, 2, 2] = np.nan
        for gates in (self.gates(), self.gates(drift=0.2), some):
            assert (self.compared(gates, statistic).bounds > 1.1).mean() <= 1 / 40

    def test_show_dear_tasks_in_the_total_and_trials_that_hang_in_the_p95(self) -> None:
        dear = self.gates()
        dear.now[:, -1] += np.log(8)
        found = self.compared(dear, "total")
        assert (found.bounds > 1.1).mean() > 0.9
        assert (found.bounds < found.ratios).all()
        slow = self.gates()
        slow.now[:, ::4, 0] += np.log(20)
        assert (self.compared(slow, "p95").bounds > 1.15).mean() > 0.9


Drawn = dict[str, dict[str, list[float]]]


class TestNoise:
    def drawn(
        self, *, spread: float, drift: float, tasks: int = 30, runs: int = 60, k: int = 3, seed: int = 5
    ) -> Drawn:
        """Figures of tasks whose usual ones lie far apart."""
        draws = random.Random(seed)
        shifts = [(f"r{run}", draws.gauss(0, drift)) for run in range(runs)]
        return {
            f"t{task}": {run: [exp(task + shift + draws.gauss(0, spread)) for _ in range(k)] for run, shift in shifts}
            for task in range(tasks)
        }

    @pytest.mark.parametrize(("spread", "drift"), [(0.3, 0.0), (0.3, 0.2), (0.05, 0.5)])
    def test_spread_and_drift_are_told_apart(self, spread: float, drift: float) -> None:
        noise = estimate_noise(self.drawn(spread=spread, drift=drift))
        assert fmean(noise.spreads.values()) == pytest.approx(spread, rel=0.05)
        assert noise.drift == pytest.approx(drift, rel=0.2, abs=0.02)

    def test_what_has_no_drift_or_no_spread(self) -> None:
        one = estimate_noise({"a": {"r": [1.0, 2.0]}, "b": {"r": [9.0]}})
        assert (one.drift, one.runs, one.spreads.keys()) == (0, 0, {"a"})
        noise = estimate_noise({"a": {"r": [1.0], "s": [exp(1.0)]}})
        assert (noise.drift, noise.runs, noise.spreads) == (pytest.approx(0.5**0.5), 2, {})
        assert estimate_noise({"a": {"r": [0.0, -1.0], "s": []}}) == Noise({}, 0.0, 0)

    @pytest.mark.parametrize("of_each", [2, 3, 20])
    def test_the_drift_is_found_whichever_tasks_a_run_has(self, of_each: int) -> None:
        squares = []
        for seed in range(60):
            draws, some = random.Random(seed), {}
            for task, runs in self.drawn(spread=0.3, drift=0.2, runs=20, seed=seed).items():
                some[task] = {run: runs[run] for run in draws.sample(sorted(runs), of_each)}
            squares.append(estimate_noise(some).drift ** 2)
        assert fmean(squares) == pytest.approx(0.2**2, rel=0.12)

    def test_runs_that_share_no_task_say_nothing_of_drift(self) -> None:
        noise = estimate_noise({f"t{number}": {f"r{number}": [1.0 + number, 2.0 + number]} for number in range(20)})
        assert (noise.drift, noise.runs, len(noise.spreads)) == (0, 0, 20)
        shared = self.drawn(spread=0.1, drift=0.3, runs=3)
        alone = {f"alone{number}": {f"r{number % 5}": [5.0, 6.0]} for number in range(100)}
        noise = estimate_noise({**shared, **alone})
        assert (noise.drift, noise.runs) == (pytest.approx(estimate_noise(shared).drift), 3)


class TestSimulatedBounds:
    """Gates whose latency or cost has not changed."""

    PAIRS = [Pair(60, 3, 0.5)] * 20

    def shares(self, bounds: np.ndarray | None, limit: float) -> float:
        assert bounds is not None
        return float(np.mean(bounds > limit))

    @pytest.mark.slow
    @pytest.mark.parametrize(("runs", "drift"), [(20, 0.0), (20, 0.2), (3, 0.2), (2, 0.05)])
    def test_are_those_of_the_comparison_that_the_gate_makes(self, runs: int, drift: float) -> None:
        seed, found = random.Random(3), []
        for _ in range(400):
            shifts = [seed.gauss(0, drift) for _ in range(runs + 1)]
            now, *before = [[[exp(seed.gauss(shift, 0.5)) for _ in range(3)] for _ in range(20)] for shift in shifts]
            found.append(compared(now, *before).lower_bound)
        bounds = simulated_bounds([Pair(3 * runs, 3, 0.5)] * 20, 20_000, seed=1, drift=drift, runs=runs)
        for limit in (0.8, 1.0, 1.1):
            assert self.shares(bounds, limit) == pytest.approx(self.shares(np.array(found), limit), abs=0.05)

    def test_are_red_more_often_where_runs_drift(self) -> None:
        steady, drifting = (simulated_bounds(self.PAIRS, 5000, 1, drift=drift, runs=20) for drift in (0.0, 0.2))
        assert self.shares(steady, 1.0) < 0.002 < self.shares(drifting, 1.0) + 0.001 < 0.006

    def test_are_the_same_with_the_same_seed(self) -> None:
        first, second, other = (simulated_bounds(self.PAIRS, 100, seed) for seed in (1, 1, 2))
        assert np.array_equal(first, second)
        assert not np.array_equal(first, other)

    @pytest.mark.parametrize(
        ("pairs", "runs", "is_compared"), [(LEAST_PAIRS - 1, 2, False), (LEAST_PAIRS, 2, True), (LEAST_PAIRS, 1, False)]
    )
    def test_are_none_of_too_few_tasks_and_of_a_single_run(self, pairs: int, runs: int, is_compared: bool) -> None:
        assert (simulated_bounds(self.PAIRS[:pairs], 10, 1, runs=runs) is not None) is is_compared

    def test_of_a_task_whose_spread_is_not_known_go_by_that_of_the_others(self) -> None:
        unknown = [Pair(60, 3, None)] * 10
        known = simulated_bounds(self.PAIRS, 50, 1)
        assert np.array_equal(simulated_bounds([*self.PAIRS[:10], *unknown], 50, 1), known)
        assert simulated_bounds(unknown, 10, 1) is None
