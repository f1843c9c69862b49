"""The total and the P95 of a run beside those of the runs of a baseline."""

import numpy as np
import pytest

from passgate.tasks.stats.plain_ratios import p95, plain_ratios, total
from passgate.tasks.stats.ratios import Figures, Ratios
from passgate.tasks.stats.run_effects import cells_of, run_effects

GATES, TASKS, RUNS, K = 40, 12, 10, 3


def figures(*, drift: float = 0.0, seed: int = 1) -> Figures:
    draws = np.random.default_rng(seed)
    noise = draws.normal(0, 0.3, (GATES, TASKS, RUNS + 1, K)) + draws.normal(0, drift, (GATES, 1, RUNS + 1, 1))
    levels = np.linspace(0, 2, TASKS)[:, None, None] + noise
    return Figures(tuple(f"t{task}" for task in range(TASKS)), levels[:, :, -1], levels[:, :, :-1])


def compared(of: Figures, statistic: str) -> Ratios:
    return plain_ratios({"total": total, "p95": p95}[statistic], of, run_effects(cells_of(of.before)))


def test_the_figures_are_those_of_the_reports() -> None:
    trials = np.array([[[1.0, 3.0, np.nan], [2.0, 4.0, 9.0]]])
    assert total(trials) == pytest.approx(2 + 5)
    assert p95(trials) == 9.0
    assert p95(np.arange(1.0, 41).reshape(1, 10, 4)) == 38.0


@pytest.mark.parametrize("statistic", ["total", "p95"])
@pytest.mark.parametrize("drift", [0.0, 0.2])
def test_an_unchanged_run_is_hardly_ever_more(statistic: str, drift: float) -> None:
    assert (compared(figures(drift=drift), statistic).bounds > 1.1).mean() <= 1 / GATES


def test_dear_tasks_are_seen_in_the_total_and_trials_that_hang_in_the_p95() -> None:
    dear = figures()
    dear.now[:, -1] += np.log(8)
    found = compared(dear, "total")
    assert (found.bounds > 1.1).mean() > 0.9
    assert (found.bounds < found.ratios).all()
    slow = figures()
    slow.now[:, ::4, 0] += np.log(20)
    assert (compared(slow, "p95").bounds > 1.15).mean() > 0.9


@pytest.mark.parametrize("statistic", ["total", "p95"])
def test_runs_may_lack_tasks_and_trials(statistic: str) -> None:
    some = figures()
    some.before[:, 0, :5] = np.nan
    some.before[:, 1, 2, 1:] = np.nan
    some.now[:, 2, 2] = np.nan
    found = compared(some, statistic)
    assert np.isfinite(found.bounds).all()
    assert (found.bounds > 1.1).mean() <= 1 / GATES
    assert np.array_equal(found.bounds, compared(some, statistic).bounds)
