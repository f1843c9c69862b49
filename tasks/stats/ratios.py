"""Is this run slower or more expensive than the baseline? It is compared task by task, so that tasks of unlike size do
not hide the difference: all tasks together (`paired_ratios`) and each by itself (`task_ratios`).

Figures of trials (seconds, dollars) vary within a run and from run to run. `estimate_noise` measures by how much;
`simulated_bounds` simulates how often the comparison is red for an agent that has not changed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from passgate.tasks.stats.estimators import student_t_quantiles
from passgate.tasks.stats.run_effects import (
    PRIOR_DEGREES,
    Cells,
    Floats,
    RunEffects,
    effects_of_shifts,
    pad_cells,
    run_effects,
    usual_variance,
)

FiguresOfTasks = Mapping[str, Mapping[str, Sequence[float]]]  # By task and run, a figure of every trial
LEAST_PAIRS = 8
"""With fewer tasks, a single one that is much slower by chance makes the gate red more than 2 % of the time."""
LEAST_RUNS = 2  # Runs at the baseline that share tasks. A single run does not show by how much whole runs differ.
CONFIDENCE = 0.9
"""Of the one-sided bounds. docs/statistics.md has what it costs in false reds and in falls that are missed."""
PAIRED_ALPHA = 0.002  # How often the paired ratio may take an unchanged agent for a slower one
PLAIN_ALPHA = 0.001  # How often the plain figure may
TASK_ALPHA = 0.002  # How often the ratios of single tasks may, over all tasks together
_VARIANCE_OF_P95 = 4.5
"""Of the logarithm of the 95th percentile of n lognormal trials: so many times the variance of one, divided by n."""
_PRIOR_DEGREES = 6.0  # How many runs the mean of all tasks counts as, in what a task varies from run to run


class Figures(NamedTuple):
    """Logarithms of the trials of the tasks that are compared, of one gate or of many that have the same cells.

    Arrays are padded with NaN.
    """

    tasks: tuple[str, ...]
    now: Floats  # By gate, task and trial
    before: Floats  # By gate, task, run (the oldest first) and trial

    @property
    def comparable(self) -> bool:
        """Return whether there are enough tasks, and enough runs that share them, to judge anything."""
        known = ~np.isnan(self.before[0]).all(-1)
        shared = known[known.sum(1) > 1].any(0).sum() if len(known) else 0
        return len(self.tasks) >= LEAST_PAIRS and bool(shared >= LEAST_RUNS)


def paired_figures(current: Mapping[str, Sequence[float]], baseline: FiguresOfTasks) -> Figures:
    """Return the tasks with positive figures (seconds, dollars) on both sides; other figures are left out. Runs are in
    the order of their names, which are run ids and so sort by time.
    """
    tasks = [task for task, values in current.items() if _any([values]) and _any(baseline.get(task, {}).values())]
    if not tasks:
        return Figures((), np.empty((1, 0, 0)), np.empty((1, 0, 0, 0)))
    now = _logarithms([{"now": current[task]} for task in tasks])[:, 0]
    return Figures(tuple(tasks), now[None], _logarithms([baseline[task] for task in tasks])[None])


def _any(runs: Iterable[Sequence[float]]) -> bool:
    return any(value > 0 for run in runs for value in run)


def _logarithms(tasks: Sequence[Mapping[str, Sequence[float]]]) -> Floats:
    """Return the logarithms of the positive figures by task, run and trial, padded with NaN."""
    runs = sorted({run for task in tasks for run, values in task.items() if _any([values])})
    most = max(len(values) for task in tasks for values in task.values())
    figures = np.full((len(tasks), len(runs), most), np.nan)
    for row, task in zip(figures, tasks, strict=True):
        for cell, run in zip(row, runs, strict=True):
            cell[: len(task.get(run, ()))] = task.get(run, ())
    figures[~(figures > 0)] = np.nan
    return np.asarray(np.log(figures))


class Noise(NamedTuple):
    """Standard deviations of logarithms."""

    spreads: Mapping[str, float]
    """Of the trials of a task within a run. A task of which no run has two figures is absent."""
    drift: float
    """Of a whole run: how much all its tasks are slower or faster together, as on a day when the provider is slow."""
    runs: int
    """Runs from which the drift was measured: those that share a task with another run. Where there are none, the drift
    is unknown and given as 0."""


def estimate_noise(figures: FiguresOfTasks) -> Noise:
    """Return the noise of the positive figures, by analysis of variance; other figures are left out."""
    tasks = [task for task, runs in figures.items() if _any(runs.values())]
    if not tasks:
        return Noise({}, 0.0, 0)
    cells = pad_cells(_logarithms([figures[task] for task in tasks])[None])
    effects = run_effects(cells)
    spreads = np.sqrt(cells.variances[0]).tolist()
    known = {task: spread for task, spread in zip(tasks, spreads, strict=True) if not np.isnan(spread)}
    return Noise(known, float(np.sqrt(effects.variance[0])), effects.runs if effects.runs >= LEAST_RUNS else 0)


class Ratios(NamedTuple):
    """Of each gate, or of each gate and task: current / baseline and the value that it exceeds with 90 % confidence.

    The bound is at most 1 where an unchanged agent would show such a rise too often by chance.
    """

    ratios: Floats
    bounds: Floats


def paired_ratios(figures: Figures, cells: Cells, effects: RunEffects) -> Ratios:
    """Return the geometric mean over the tasks, of each gate. A task's ratio is that of the geometric means of its
    trials. The bound is Student's: the mean of the ratios' logarithms minus t times its standard error. The standard
    error has two parts: how the tasks' ratios differ, and how whole runs differ, because this run is one more of them.
    t has the degrees of freedom of a sum of two variances (Satterthwaite 1946, Biometrics Bulletin 2).
    """
    centres = (cells.means * cells.counts).sum(-1) / cells.counts.sum(-1)
    changes = np.nanmean(figures.now, axis=-1) - centres
    pairs = changes.shape[1]
    return _student(changes.mean(-1), changes.var(-1, ddof=1) / pairs, pairs - 1, effects, PAIRED_ALPHA)


def _student(mean: Floats, own: Floats, degrees: float, effects: RunEffects, alpha: float) -> Ratios:
    """Return the ratio of a mean of logarithms, whose variance is its `own` and that of whole runs."""
    whole = own + effects.of_comparison
    parts = own**2 / degrees + effects.of_comparison**2 / effects.degrees
    # Without any noise the degrees do not matter.
    of_sum = np.divide(whole**2, parts, out=np.full_like(whole, 3.0), where=parts > 0)
    return _ratios(mean, mean, np.sqrt(whole), of_sum, alpha)


def total(figures: Floats) -> Floats:
    """Return the sum over the tasks of a trial's mean, from figures by run, task and trial, padded with NaN."""
    return np.asarray(np.nanmean(figures, axis=-1).sum(-1))


def p95(figures: Floats) -> Floats:
    """Return the 95th percentile of all trials of a run, by the nearest rank, from the same figures."""
    flat = figures.reshape(len(figures), -1)
    # What is missing counts as the greatest, and every run misses the same trials.
    rank = max(-(-int((~np.isnan(flat[0])).sum()) * 95 // 100) - 1, 0)
    return np.asarray(np.partition(flat, rank, axis=-1)[:, rank])


def plain_ratios(statistic: Callable[[Floats], Floats], figures: Figures, cells: Cells, effects: RunEffects) -> Ratios:
    """Return the plain figure of a run, such as its total cost, over that of the baseline's runs, of each gate.

    A few tasks or trials that take far more move it, and hardly move the paired ratio. It is compared with that of the
    same tasks in each run; Student's t of the logarithms, whose error allows for the drift of whole runs once more,
    because it may persist. Where few runs tell how their figures vary, they are taken to vary as a 95th percentile of
    trials does.
    """
    known = cells.counts > 0
    now, before = np.exp(figures.now), np.exp(figures.before)
    in_runs = ((run, tasks) for run, tasks in enumerate(known.T) if tasks.any())
    changes = np.log([statistic(now[:, tasks]) / statistic(before[:, tasks, run]) for run, tasks in in_runs])
    degrees = len(changes) - 1.0
    usual = _VARIANCE_OF_P95 * usual_variance(cells.variances) * known.any(0).sum() / cells.counts.sum()
    variance = (PRIOR_DEGREES * usual + degrees * changes.var(0, ddof=1)) / (PRIOR_DEGREES + degrees)
    own = variance * (1 + 1 / len(changes))
    return _student(changes.mean(0), own, PRIOR_DEGREES + degrees, effects, PLAIN_ALPHA)


def task_ratios(figures: Figures, cells: Cells) -> Ratios:
    """Return the ratio of each gate and task, beside the other tasks of the run. What slows all of them is in the
    paired ratio.

    The lower quartile of a task's trials is compared, so that a few trials that hang are no slower task. It deviates
    from the median task of its run; how much it does so from run to run is the error, moderated by that of all tasks
    (as Smyth 2004, Statistical Applications in Genetics 3:3, but with fixed degrees). Each of m tasks has the level
    1 - (1 - alpha)^(1/m): the chance that any unchanged task is found is at most alpha (Šidák 1967).
    """
    known, runs = cells.counts > 0, (cells.counts > 0).sum(-1)
    usual = np.where(known, _lower_quartiles(figures.before), 0.0)
    centres = usual.sum(-1) / runs
    deviations = np.where(known, usual - centres[..., None], np.nan)
    deviations = np.where(known, deviations - np.nanmedian(deviations, axis=1, keepdims=True), 0.0)
    squares = ((deviations - (deviations.sum(-1) / runs)[..., None]) ** 2 * known).sum(-1)
    degrees = runs - 1.0
    of_all = squares.sum(-1, keepdims=True) / max(degrees.sum(), 1.0)
    variances = (_PRIOR_DEGREES * of_all + squares) / (_PRIOR_DEGREES + degrees)
    changes = _lower_quartiles(figures.now) - centres
    # A run that is faster as a whole makes no task slower.
    beside = changes - np.maximum(np.median(changes, axis=1, keepdims=True), 0.0)
    fewer = np.maximum(cells.counts.sum(-1) / runs / (~np.isnan(figures.now[0])).sum(-1), 1.0)
    errors = np.sqrt(variances * (fewer + 1 / runs))
    alpha = 1 - (1 - TASK_ALPHA) ** (1 / len(figures.tasks))
    return _ratios(changes, beside, errors, np.broadcast_to(_PRIOR_DEGREES + degrees, errors.shape), alpha)


def _lower_quartiles(figures: Floats) -> Floats:
    """Return along the last axis the greatest figure that at least three quarters of the others are not below."""
    places = np.maximum((~np.isnan(figures)).sum(-1, keepdims=True) - 1, 0) // 4
    return np.asarray(np.take_along_axis(np.sort(figures, axis=-1), places, axis=-1)[..., 0])


def _ratios(changes: Floats, tested: Floats, errors: Floats, degrees: Floats, alpha: float) -> Ratios:
    bounds = tested - student_t_quantiles(degrees, CONFIDENCE) * errors
    beyond_chance = tested - student_t_quantiles(degrees, 1 - alpha) * errors > 0
    return Ratios(np.exp(changes), np.exp(np.where(beyond_chance, bounds, np.minimum(bounds, 0.0))))


class Pair(NamedTuple):
    """One task that is compared with its baseline."""

    before: int  # Its number of figures at the baseline
    now: int  # Its number of figures in a gate to come
    spread: float | None
    """Standard deviation of their logarithms within a run; where it is unknown, the mean of the other tasks' is used.
    """


def simulated_bounds(
    pairs: Sequence[Pair], gates: int, seed: int, *, drift: float = 0.0, runs: int = LEAST_RUNS
) -> Floats | None:
    """Return the lower bounds of the paired ratio (`paired_ratios`) in a number of gates whose agent has not changed.

    Figures vary lognormally, by the spread of their task and by the drift of the whole run. Each gate gets a new
    baseline of `runs` runs, and with it the drift as that gate would measure it. `None` with fewer than eight pairs or
    two runs, which are not compared, and where no spread is known.
    """
    known = [pair.spread for pair in pairs if pair.spread is not None]
    if len(pairs) < LEAST_PAIRS or runs < LEAST_RUNS or not known:
        return None
    count = len(pairs)
    spreads = np.array([fmean(known) if pair.spread is None else pair.spread for pair in pairs])
    numbers = np.array([(pair.now, pair.before) for pair in pairs], dtype=float)
    draws = np.random.default_rng(seed)
    changes = draws.normal(0.0, 1.0, (gates, count)) * spreads * np.sqrt((1 / numbers).sum(1))
    # The spreads leave a part of their variance in the means of whole runs. `run_effects` subtracts it.
    left = float((spreads**2 * runs / numbers[:, 1]).sum()) / count**2
    own = draws.normal(0.0, drift, (gates, runs + 1))
    seen = own[:, 1:] + draws.normal(0.0, math.sqrt(left), (gates, runs))
    effects = effects_of_shifts(seen, left, float((spreads**2).mean()))
    shift = own[:, 0] - own[:, 1:].mean(1)
    return _student(changes.mean(1) + shift, changes.var(1, ddof=1) / count, count - 1, effects, PAIRED_ALPHA).bounds
