"""How much figures of trials vary, within a run and from run to run."""

import random
from math import exp
from statistics import fmean

import pytest

from passgate.tasks.stats.noise import Figure, Noise, noise_of


def drawn(*, spread: float, drift: float, tasks: int = 30, runs: int = 60, k: int = 3) -> list[Figure]:
    """Figures of tasks whose usual ones lie far apart."""
    seed = random.Random(5)
    shifts = [seed.gauss(0, drift) for _ in range(runs)]
    return [
        Figure(f"t{task}", f"r{run}", exp(task + shift + seed.gauss(0, spread)))
        for task in range(tasks)
        for run, shift in enumerate(shifts)
        for _ in range(k)
    ]


@pytest.mark.parametrize(("spread", "drift"), [(0.3, 0.0), (0.3, 0.2), (0.05, 0.5)])
def test_spread_and_drift_are_told_apart(spread: float, drift: float) -> None:
    noise = noise_of(drawn(spread=spread, drift=drift))
    assert fmean(noise.spreads.values()) == pytest.approx(spread, rel=0.05)
    assert noise.drift == pytest.approx(drift, rel=0.2, abs=0.02)


def test_one_run_has_no_drift_and_one_figure_no_spread() -> None:
    assert noise_of([Figure("a", "r", 1.0), Figure("a", "r", 2.0), Figure("b", "r", 9.0)]).drift == 0
    assert noise_of([Figure("a", "r", 1.0), Figure("a", "s", 2.0)]).spreads == {}


def test_runs_of_one_figure_each_drift() -> None:
    assert noise_of([Figure("a", "r", 1.0), Figure("a", "s", exp(1.0))]).drift == pytest.approx(0.5**0.5)


def test_figures_that_are_not_positive_are_left_out() -> None:
    assert noise_of([Figure("a", "r", 0.0), Figure("a", "r", -1.0)]) == Noise({}, 0.0)
