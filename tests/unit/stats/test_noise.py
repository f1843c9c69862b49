"""How much figures of trials vary, within a run and from run to run."""

import random
from math import exp
from statistics import fmean

import pytest

from passgate.tasks.stats.noise import Noise, noise_of


def drawn(
    *, spread: float, drift: float, tasks: int = 30, runs: int = 60, k: int = 3
) -> dict[str, dict[str, list[float]]]:
    """Figures of tasks whose usual ones lie far apart."""
    seed = random.Random(5)
    shifts = [seed.gauss(0, drift) for _ in range(runs)]
    return {
        f"t{task}": {
            f"r{run}": [exp(task + shift + seed.gauss(0, spread)) for _ in range(k)] for run, shift in enumerate(shifts)
        }
        for task in range(tasks)
    }


@pytest.mark.parametrize(("spread", "drift"), [(0.3, 0.0), (0.3, 0.2), (0.05, 0.5)])
def test_spread_and_drift_are_told_apart(spread: float, drift: float) -> None:
    noise = noise_of(drawn(spread=spread, drift=drift))
    assert fmean(noise.spreads.values()) == pytest.approx(spread, rel=0.05)
    assert noise.drift == pytest.approx(drift, rel=0.2, abs=0.02)


def test_one_run_has_no_drift_and_one_figure_no_spread() -> None:
    one = noise_of({"a": {"r": [1.0, 2.0]}, "b": {"r": [9.0]}})
    assert (one.drift, one.runs, one.spreads.keys()) == (0, 1, {"a"})
    assert noise_of({"a": {"r": [1.0], "s": [2.0]}}).spreads == {}


def test_runs_of_one_figure_each_drift() -> None:
    noise = noise_of({"a": {"r": [1.0], "s": [exp(1.0)]}})
    assert (noise.drift, noise.runs) == (pytest.approx(0.5**0.5), 2)


def test_figures_that_are_not_positive_are_left_out() -> None:
    assert noise_of({"a": {"r": [0.0, -1.0], "s": []}}) == Noise({}, 0.0, 0)
