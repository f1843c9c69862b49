"""How much figures of trials vary, within a run and from run to run."""

import random
from math import exp
from statistics import fmean
from typing import Any

import pytest

from passgate.tasks.stats.ratios import Noise, noise_of


def drawn(
    *, spread: float, drift: float, tasks: int = 30, runs: int = 60, k: int = 3, seed: int = 5
) -> dict[str, dict[str, list[float]]]:
    """Figures of tasks whose usual ones lie far apart."""
    draws = random.Random(seed)
    shifts = [draws.gauss(0, drift) for _ in range(runs)]
    return {
        f"t{task}": {
            f"r{run}": [exp(task + shift + draws.gauss(0, spread)) for _ in range(k)]
            for run, shift in enumerate(shifts)
        }
        for task in range(tasks)
    }


@pytest.mark.parametrize(("spread", "drift"), [(0.3, 0.0), (0.3, 0.2), (0.05, 0.5)])
def test_spread_and_drift_are_told_apart(spread: float, drift: float) -> None:
    noise = noise_of(drawn(spread=spread, drift=drift))
    assert fmean(noise.spreads.values()) == pytest.approx(spread, rel=0.05)
    assert noise.drift == pytest.approx(drift, rel=0.2, abs=0.02)


def test_what_has_no_drift_or_no_spread() -> None:
    one = noise_of({"a": {"r": [1.0, 2.0]}, "b": {"r": [9.0]}})
    assert (one.drift, one.runs, one.spreads.keys()) == (0, 0, {"a"})
    assert noise_of({"a": {"r": [1.0], "s": [2.0]}}).spreads == {}
    noise = noise_of({"a": {"r": [1.0], "s": [exp(1.0)]}})
    assert (noise.drift, noise.runs) == (pytest.approx(0.5**0.5), 2)
    assert noise_of({"a": {"r": [0.0, -1.0], "s": []}}) == Noise({}, 0.0, 0)


def in_some_runs(figures: dict[str, dict[str, list[float]]], *, of_each: int, seed: int) -> dict[str, Any]:
    """With each task in some of the runs alone."""
    draws = random.Random(seed)
    return {
        task: {run: runs[run] for run in draws.sample(sorted(runs), min(of_each, len(runs)))}
        for task, runs in figures.items()
    }


@pytest.mark.parametrize("of_each", [2, 3, 20])
def test_the_drift_is_found_whichever_tasks_a_run_has(of_each: int) -> None:
    every = [
        noise_of(in_some_runs(drawn(spread=0.3, drift=0.2, runs=20, seed=seed), of_each=of_each, seed=seed))
        for seed in range(60)
    ]
    assert fmean(noise.drift**2 for noise in every) == pytest.approx(0.2**2, rel=0.12)


def test_runs_that_share_no_task_say_nothing_of_drift() -> None:
    figures = {f"t{number}": {f"r{number}": [1.0 + number, 2.0 + number]} for number in range(20)}
    noise = noise_of(figures)
    assert (noise.drift, noise.runs, len(noise.spreads)) == (0, 0, 20)


def test_a_task_of_one_run_alone_leaves_the_drift_as_it_is() -> None:
    shared = drawn(spread=0.1, drift=0.3, runs=3)
    more = {f"alone{number}": {f"r{number % 5}": [5.0, 6.0]} for number in range(100)}
    noise = noise_of({**shared, **more})
    assert (noise.drift, noise.runs) == (pytest.approx(noise_of(shared).drift), 3)
