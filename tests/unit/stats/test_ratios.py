"""Figures of two runs, paired by task, and the noise in them."""

import numpy as np
import pytest

from passgate.tasks.stats.ratios import (
    LEAST_PAIRS,
    P95,
    PAIRED,
    TOTAL,
    Figures,
    Statistic,
    estimate_noise,
    run_ratios,
    simulated_bounds,
    task_ratios,
)
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


def test_the_bound_is_students_by_what_runs_of_the_baseline_differ() -> None:
    """Runs of 1, e and 1 / e, of which none has two trials: their noise is unknown, and three runs count for it."""
    answer = compared([[np.exp(4.5)]] * 8, [[1.0]] * 8, [[np.exp(1.0)]] * 8, [[np.exp(-1.0)]] * 8)
    assert np.log(answer.ratio) == pytest.approx(4.5)
    assert answer.drift == pytest.approx(1.0)
    error = np.sqrt(2 / (3 + 2) * (1 + 1 / 3))
    assert np.log(answer.lower_bound) == pytest.approx(4.5 - 1.475884 * error)


def test_one_slow_task_counts_as_one_of_all() -> None:
    before = figures(10, seed=2)
    answer = compared([[value * 10 for value in before[0]], *before[1:]], before)
    assert answer.ratio == pytest.approx(10**0.1)
    assert 1.2 < answer.lower_bound < answer.ratio


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


GATES, TASKS = 300, 12


def gates(
    runs: int = 10, *, drift: float = 0.0, persistence: float = 0.0, levels: float = 0.0, seed: int = 1
) -> Figures:
    """Unchanged gates, whose run is the next of the baseline's; the tasks' levels lie apart."""
    draws = np.random.default_rng(seed)
    shifts = draws.normal(0, 1, (GATES, runs + 1))
    for run in range(1, runs + 1):
        shifts[:, run] = persistence * shifts[:, run - 1] + np.sqrt(1 - persistence**2) * shifts[:, run]
    trials = draws.normal(0, 0.3, (GATES, TASKS, runs + 1, 3)) + drift * shifts[:, None, :, None]
    trials += np.linspace(0, levels, TASKS)[:, None, None]
    return Figures(tuple(f"t{task}" for task in range(TASKS)), trials[:, :, -1], trials[:, :, :-1])


@pytest.mark.parametrize("runs", [3, 20])
@pytest.mark.parametrize("persistence", [0.0, 0.5, 0.9])
def test_an_unchanged_run_is_hardly_ever_slower(runs: int, persistence: float) -> None:
    unchanged = gates(runs, drift=0.15, persistence=persistence)
    assert (run_ratios(PAIRED, unchanged).bounds > 1.1).mean() <= 4 / GATES
    assert (task_ratios(unchanged) > 2).any(axis=1).mean() <= 1 / GATES


def test_drift_and_its_persistence_are_told() -> None:
    found = [run_ratios(PAIRED, gates(20, drift=0.2, persistence=one)) for one in (0.0, 0.5, 0.8)]
    assert found[0].drift.mean() == pytest.approx(0.2, rel=0.1)
    none, some, much = (one.persistence.mean() for one in found)
    assert none < 0.15 < some < much


def test_runs_that_are_like_the_ones_before_them_prove_less() -> None:
    ups_and_downs, shift = ([1.0, 1.2] * 4, [1.0] * 4 + [1.2] * 4)
    steady, lasting = (compared([[2.0]] * 8, *([[one]] * 8 for one in runs)) for runs in (ups_and_downs, shift))
    assert (steady.ratio, steady.drift) == pytest.approx((lasting.ratio, lasting.drift))
    assert lasting.lower_bound < steady.lower_bound - 0.05


def test_a_task_of_which_only_one_trial_was_measured_proves_less() -> None:
    whole = gates(20)
    whole.now[:, 4] = np.log(3)
    less = whole._replace(now=whole.now.copy())
    less.now[:, 4, 1:] = np.nan
    assert (task_ratios(less)[:, 4] < task_ratios(whole)[:, 4] - 0.1).mean() > 0.95


def test_a_slower_task_is_found_and_a_faster_run_makes_none_slower() -> None:
    slower = gates(20, drift=0.3, persistence=0.5)
    slower.now[:, 4] += np.log(10)
    bounds = task_ratios(slower)
    assert (bounds[:, 4] > 2).mean() > 0.95
    assert bounds.shape == (GATES, TASKS)
    faster = gates(20)
    faster.now[:, 1:] -= np.log(5)
    assert (task_ratios(faster) <= 1).all()


class TestPlainFigures:
    """The total and the P95 of a run beside those of the runs of a baseline."""

    def test_are_those_of_the_reports(self) -> None:
        trials = np.log([[[1.0, 3.0, np.nan], [2.0, 4.0, 9.0]]])
        assert np.exp(TOTAL.logarithm(trials)) == pytest.approx(2 + 5)
        assert np.exp(P95.logarithm(trials)) == pytest.approx(9.0)
        assert np.exp(P95.logarithm(np.log(np.arange(1.0, 41).reshape(1, 10, 4)))) == pytest.approx(38.0)

    @pytest.mark.parametrize("statistic", [TOTAL, P95], ids=["total", "p95"])
    def test_of_an_unchanged_run_are_hardly_ever_more_whatever_it_lacks(self, statistic: Statistic) -> None:
        some = gates(levels=2)
        some.before[:, 0, :5] = np.nan
        some.before[:, 1, 2, 1:] = np.nan
        some.now[:, 2, 2] = np.nan
        for figures in (gates(levels=2), gates(drift=0.2, levels=2), some):
            assert (run_ratios(statistic, figures).bounds > 1.1).mean() <= 1 / 40

    def test_show_dear_tasks_in_the_total_and_trials_that_hang_in_the_p95(self) -> None:
        dear = gates(levels=2)
        dear.now[:, -1] += np.log(8)
        found = run_ratios(TOTAL, dear)
        assert (found.bounds > 1.1).mean() > 0.9
        assert (found.bounds < found.ratios).all()
        slow = gates(levels=2)
        slow.now[:, ::4, 0] += np.log(20)
        assert (run_ratios(P95, slow).bounds > 1.15).mean() > 0.9


Drawn = dict[str, dict[str, list[float]]]


class TestSimulatedBounds:
    """Gates whose latency or cost has not changed."""

    def drawn(self, *, drift: float = 0.0, tasks: int = 20, runs: int = 20, seed: int = 5) -> Drawn:
        """Figures of tasks whose usual ones lie far apart."""
        draws = np.random.default_rng(seed)
        shifts = draws.normal(0, drift, runs)
        levels = np.arange(tasks)[:, None, None] + shifts[:, None] + draws.normal(0, 0.5, (tasks, runs, 3))
        return {
            f"t{task}": {f"r{run:03}": trials for run, trials in enumerate(of_task)}
            for task, of_task in enumerate(np.exp(levels).tolist())
        }

    def bounds(self, figures: Drawn, count: int = 5_000, seed: int = 1) -> np.ndarray:
        noise = estimate_noise(figures)
        assert noise is not None
        return simulated_bounds(noise, count, seed)

    @pytest.mark.parametrize("drift", [0.0, 0.2, 0.5])
    def test_are_of_the_noise_of_runs_that_have_some_of_the_tasks_each(self, drift: float) -> None:
        figures = self.drawn(drift=drift, tasks=40, runs=200)
        for place, runs in enumerate(figures.values()):
            runs[f"r{place:03}"] = []
        noise = estimate_noise(figures)
        assert noise is not None
        assert noise.deviation**2 == pytest.approx(drift**2 + 0.5**2 / (40 * 3), rel=0.2)
        assert noise.usual == pytest.approx(0.5**2 * (1 / (40 * 3) + 1 / 36), rel=0.05)

    @pytest.mark.slow
    @pytest.mark.parametrize(("runs", "drift"), [(20, 0.0), (20, 0.2), (3, 0.2), (2, 0.05)])
    def test_are_those_of_the_comparison_that_the_gate_makes(self, runs: int, drift: float) -> None:
        found = []
        for seed in range(800):
            drawn = self.drawn(drift=drift, runs=runs + 1, seed=seed)
            answer = ratio_of_tasks({task: of_task.pop(f"r{runs:03}") for task, of_task in drawn.items()}, drawn)
            assert answer is not None
            found.append(answer.lower_bound)
        noise = estimate_noise(self.drawn(drift=drift, runs=2_000))
        assert noise is not None
        bounds = simulated_bounds(noise._replace(runs=runs), 20_000, seed=1)
        for limit in (0.8, 1.0, 1.1):
            assert (bounds > limit).mean() == pytest.approx((np.array(found) > limit).mean(), abs=0.05)

    def test_are_red_more_often_where_runs_drift(self) -> None:
        steady, drifting = ((self.bounds(self.drawn(drift=drift)) > 1.01).mean() for drift in (0.0, 0.2))
        assert steady < 0.001 < drifting < 0.006

    def test_are_the_same_with_the_same_seed(self) -> None:
        first, second, other = (self.bounds(self.drawn(), 100, seed) for seed in (1, 1, 2))
        assert np.array_equal(first, second)
        assert not np.array_equal(first, other)

    @pytest.mark.parametrize(
        ("tasks", "runs", "is_compared"), [(LEAST_PAIRS - 1, 2, False), (LEAST_PAIRS, 2, True), (LEAST_PAIRS, 1, False)]
    )
    def test_are_none_of_too_few_tasks_and_of_a_single_run(self, tasks: int, runs: int, is_compared: bool) -> None:
        assert (estimate_noise(self.drawn(tasks=tasks, runs=runs)) is not None) is is_compared

    def test_are_none_of_runs_that_share_no_task_and_of_figures_of_0(self) -> None:
        alone = {f"t{number}": {f"r{number}": [1.0 + number, 2.0 + number]} for number in range(20)}
        assert estimate_noise(alone) is None
        assert estimate_noise({task: {"r": [0.0, -1.0], "s": []} for task in alone}) is None
        assert estimate_noise({}) is None
