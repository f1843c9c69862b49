"""How whole runs differ, and for how long."""

import numpy as np
import pytest

from passgate.tasks.stats.ratios import Figures, paired_ratios, task_ratios
from passgate.tasks.stats.run_effects import Cells, effects_of_shifts, pad_cells, run_effects

GATES, TASKS, K = 300, 12, 3


def chains(runs: int, *, persistence: float, drift: float, seed: int = 1) -> np.ndarray:
    """By gate and run: an autoregression of first order."""
    draws = np.random.default_rng(seed)
    found = draws.normal(0, 1, (GATES, runs))
    for run in range(1, runs):
        found[:, run] = persistence * found[:, run - 1] + np.sqrt(1 - persistence**2) * found[:, run]
    return drift * found


def unchanged(runs: int, *, persistence: float, drift: float, spread: float = 0.3) -> Figures:
    """The run under test is the next of the chain."""
    shifts = chains(runs + 1, persistence=persistence, drift=drift)
    trials = np.random.default_rng(2).normal(0, spread, (GATES, TASKS, runs + 1, K)) + shifts[:, None, :, None]
    return Figures(tuple(f"t{task}" for task in range(TASKS)), trials[:, :, -1], trials[:, :, :-1])


def cells(runs: int, *, persistence: float, drift: float) -> Cells:
    return pad_cells(unchanged(runs, persistence=persistence, drift=drift).before)


@pytest.mark.parametrize("drift", [0.1, 0.3])
def test_the_variance_of_runs_is_found(drift: float) -> None:
    found = run_effects(cells(20, persistence=0.0, drift=drift))
    assert np.sqrt(found.variance.mean()) == pytest.approx(drift, rel=0.05)
    assert found.runs == 20


def test_effects_that_persist_are_told_and_say_less() -> None:
    persistence = [run_effects(cells(20, persistence=one, drift=0.2)).persistence.mean() for one in (0.0, 0.5, 0.8)]
    assert persistence[0] < 0.4 < persistence[1] < 0.75 < persistence[2]
    short, long = (run_effects(cells(20, persistence=one, drift=0.2)) for one in (0.0, 0.8))
    assert long.degrees.mean() < short.degrees.mean() / 1.5
    assert np.median(long.of_comparison / long.variance) > 1.2 * np.median(short.of_comparison / short.variance)


@pytest.mark.parametrize("runs", [3, 20])
@pytest.mark.parametrize("persistence", [0.0, 0.5, 0.9])
def test_an_unchanged_run_is_hardly_ever_slower(runs: int, persistence: float) -> None:
    figures = unchanged(runs, persistence=persistence, drift=0.15)
    of_cells = pad_cells(figures.before)
    effects = run_effects(of_cells)
    assert (paired_ratios(figures, of_cells, effects).bounds > 1.1).mean() <= 4 / GATES
    assert (task_ratios(figures, of_cells).bounds > 2).any(axis=1).mean() <= 1 / GATES


def test_the_same_is_found_of_the_shifts_alone() -> None:
    shifts = chains(20, persistence=0.5, drift=0.2)
    of_cells = Cells(shifts[:, None].repeat(TASKS, axis=1), np.ones((TASKS, 20)), np.zeros((GATES, TASKS)))
    for one, other in zip(run_effects(of_cells), effects_of_shifts(shifts, 0.0, 0.0), strict=True):
        assert np.allclose(one, other)


def test_a_slower_task_is_found_and_a_faster_run_makes_none_slower() -> None:
    figures = unchanged(20, persistence=0.5, drift=0.3)
    figures.now[:, 4] += np.log(10)
    found = task_ratios(figures, pad_cells(figures.before))
    assert (found.bounds[:, 4] > 2).mean() > 0.95
    assert found.bounds.shape == (GATES, TASKS)
    figures = unchanged(20, persistence=0.0, drift=0.0)
    figures.now[:, 1:] -= np.log(5)
    assert (task_ratios(figures, pad_cells(figures.before)).bounds <= 1).all()
