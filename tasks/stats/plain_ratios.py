"""Is the plain figure of a whole run (its total cost, its P95 latency) more than the baseline's runs explain?

A few tasks or trials that take far more move it, and hardly move the paired ratio.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.ratios import CONFIDENCE, Figures, Ratios
from passgate.tasks.stats.run_effects import Floats, RunEffects

PLAIN_ALPHA = 0.001
"""How often the plain figure may take an unchanged agent for a slower one."""
_RUNS: Final = 1000
"""So many runs are drawn that `PLAIN_ALPHA` is the chance to exceed all of them."""
_SEED: Final = 20260131  # The same trials give the same verdict

Statistic = Callable[[Floats], Floats]
"""From figures by run, task and trial, padded with NaN, that of each run."""


def total(figures: Floats) -> Floats:
    """Return the sum over the tasks of a trial's mean."""
    known = ~np.isnan(figures)
    sums = np.where(known, figures, 0.0).sum(-1)
    found: Floats = (sums / np.maximum(known.sum(-1), 1)).sum(-1)
    return found


def p95(figures: Floats) -> Floats:
    """Return the 95th percentile of all trials, by the nearest rank."""
    flat = figures.reshape(len(figures), -1)
    size = int((~np.isnan(flat[0])).sum())
    # What is missing counts as the greatest, and every run misses the same trials.
    rank = max(-(-size * 95 // 100) - 1, 0)
    found: Floats = np.partition(flat, rank, axis=-1)[:, rank]
    return found


def plain_ratios(statistic: Statistic, figures: Figures, effects: RunEffects, seed: int = _SEED) -> Ratios:
    """Of each gate: the figure now / that of unchanged runs, and the value that it exceeds with 90 % confidence.

    Unchanged runs are drawn by bootstrap (Efron 1979, Annals of Statistics 7): each task gets the trials that it had in
    one of the baseline's runs, chosen at random and without the effect of that whole run, which stands in all tasks
    alike. A whole run's effect is drawn for each from Student's t with the variance that `run_effects` has measured.
    """
    draws = np.random.default_rng(seed)
    found = [_of_a_gate(statistic, figures, effects, gate, draws) for gate in range(len(figures.now))]
    return Ratios(*(np.array(column) for column in zip(*found, strict=True)))


def _of_a_gate(
    statistic: Statistic, figures: Figures, effects: RunEffects, gate: int, draws: np.random.Generator
) -> tuple[float, float]:
    now, runs = np.exp(figures.now[gate]), effects.runs
    before = np.exp(figures.before[gate] - effects.by_run[gate][:, None])
    drawn = np.log(statistic(_drawn(now, before, draws)))
    centre = drawn.mean()
    # The spread of R runs is too small by a factor of (R - 1) / R, and their centre is uncertain by 1 / R of it.
    deviations = (drawn - centre) * np.sqrt((runs + 1) / (runs - 1))
    whole = draws.standard_t(effects.degrees[gate], _RUNS) * np.sqrt(effects.of_comparison[gate])
    usual, rare = np.quantile(deviations + whole, [CONFIDENCE, 1 - PLAIN_ALPHA], method="higher")
    change = float(np.log(statistic(now[None])[0]) - centre)
    bound = change - usual if change > rare else min(change - usual, 0.0)
    return float(np.exp(change)), float(np.exp(bound))


def _drawn(now: Floats, before: Floats, draws: np.random.Generator) -> Floats:
    """By drawn run, task and trial: as many trials as the task has now, of one of the baseline's runs."""
    counts, wanted = (~np.isnan(before)).sum(-1), (~np.isnan(now)).sum(-1)
    tasks = np.arange(len(now))
    runs = _chosen_runs(counts > 0, draws)
    sizes = counts[tasks, runs]
    ordered = np.sort(before, axis=-1)  # What is missing comes last
    if (sizes == wanted).all():
        return ordered[tasks, runs][:, :, : now.shape[1]]
    places = (draws.random((*runs.shape, now.shape[1])) * sizes[..., None]).astype(int)
    found: Floats = ordered[tasks[:, None], runs[..., None], places]
    return np.where(np.arange(now.shape[1]) < wanted[:, None], found, np.nan)


def _chosen_runs(known: npt.NDArray[np.bool_], draws: np.random.Generator) -> npt.NDArray[np.int64]:
    """By drawn run and task, the place of a run that has the task."""
    order = np.argsort(~known, axis=1, kind="stable")
    places = (draws.random((_RUNS, len(known))) * known.sum(1)).astype(int)
    found: npt.NDArray[np.int64] = order[np.arange(len(known)), places]
    return found
