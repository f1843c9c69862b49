"""Is this run slower or more expensive than the baseline? It is compared with each run of the baseline, on the tasks
that both have: by figures of the whole run (`run_ratios`) and by each task beside the others (`task_ratios`).

All bounds are Student's: by how much such comparisons differ from run to run of the baseline is their error, because
this run is one more of them. That holds both the noise of trials and the drift of whole runs. Where few runs tell it, a
prior takes part (as Smyth 2004, Statistical Applications in Genetics 3:3, but with fixed degrees).

`simulated_bounds` simulates how often the comparison is red for an agent that has not changed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.estimators import student_t_quantiles

Floats = npt.NDArray[np.float64]
FiguresOfTasks = Mapping[str, Mapping[str, Sequence[float]]]  # By task and run, a figure of every trial
LEAST_PAIRS: Final = 8
"""With fewer tasks, a single one that is much slower by chance moves the mean of all too far."""
LEAST_RUNS: Final = 2  # At the baseline, that share tasks: a single run does not show by how much whole runs differ
CONFIDENCE: Final = 0.9
"""Of the one-sided bounds. docs/statistics.md has what it costs in false reds and in falls that are missed."""
RUN_ALPHA: Final = 0.001  # How often a figure of the whole run may take an unchanged agent for a slower one
TASK_ALPHA: Final = 0.002  # How often the ratios of single tasks may, over all tasks together
_RUN_WEIGHT, _TASK_WEIGHT = 3.0, 6.0  # How many runs the prior counts as
_WHOLE_RUNS: Final = (1 / 6) ** 2
"""The variance by which whole runs are taken to differ before they are seen, as a share of that of a trial."""
_MOST_PERSISTENCE: Final = 0.9


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


class Statistic(NamedTuple):
    """A figure of a whole run."""

    logarithm: Callable[[Floats], Floats]  # From logarithms by gate, task and trial, padded with NaN
    variance: float
    """Of its logarithm, of lognormal trials: so many times the variance of one, divided by their number."""


def _mean(figures: Floats) -> Floats:
    return np.asarray(np.nanmean(figures, axis=-1).mean(-1))


def _total(figures: Floats) -> Floats:
    """Return the sum over the tasks of a trial's mean."""
    return np.asarray(np.log(np.nanmean(np.exp(figures), axis=-1).sum(-1)))


def _p95(figures: Floats) -> Floats:
    """Return the 95th percentile of all trials of a run, by the nearest rank."""
    flat = figures.reshape(len(figures), -1)
    # What is missing counts as the greatest, and every run misses the same trials.
    rank = max(-(-int((~np.isnan(flat[0])).sum()) * 95 // 100) - 1, 0)
    return np.asarray(np.partition(flat, rank, axis=-1)[:, rank])


PAIRED: Final = Statistic(_mean, 1.0)
"""The geometric mean over the tasks: the change of each task counts the same, whatever its trials take."""
P95, TOTAL = Statistic(_p95, 4.5), Statistic(_total, 4.5)
"""The plain figures. A few tasks or trials that take far more move them, and hardly move the paired one."""


class RunRatios(NamedTuple):
    """Of each gate: current / baseline, and the value that it exceeds with 90 % confidence.

    A bound is at most 1 where an unchanged agent would show such a rise too often by chance.
    """

    ratios: Floats
    bounds: Floats
    drift: Floats  # By how much runs of the baseline differ, as the standard deviation of logarithms
    persistence: Floats  # The correlation of that from run to run


def run_ratios(statistic: Statistic, figures: Figures) -> RunRatios:
    """Return a figure of the whole run over that of the same tasks in each run of the baseline, of each gate."""
    changes = [
        statistic.logarithm(figures.now[:, tasks]) - statistic.logarithm(figures.before[:, tasks, run])
        for run, tasks in enumerate(~np.isnan(figures.before[0]).all(-1).T)
        if tasks.any()
    ]
    return _compare_runs(np.stack(changes, axis=-1), _usual_variance(statistic, figures))


def _usual_variance(statistic: Statistic, figures: Figures) -> Floats:
    """Return by how much runs are taken to differ before that is seen: by the noise of their trials, and a little."""
    squares, degrees = np.zeros(len(figures.before)), 0
    for part in (figures.now[:, :, None], figures.before):
        known = ~np.isnan(part)
        counts = known.sum(-1, keepdims=True)
        means = np.where(known, part, 0.0).sum(-1, keepdims=True) / np.maximum(counts, 1)
        squares = squares + (np.where(known, part - means, 0.0) ** 2).sum((1, 2, 3))
        degrees += int(np.maximum(counts[0] - 1, 0).sum())
    trials = known[0].sum() / known[0].any((0, 2)).sum()
    return np.asarray(squares / max(degrees, 1) * (statistic.variance / trials + _WHOLE_RUNS))


def _compare_runs(changes: Floats, usual: Floats) -> RunRatios:
    """Return the ratios from the changes of logarithms, by gate and run."""
    mean, runs = changes.mean(-1), changes.shape[1]
    deviations = changes - mean[:, None]
    squares, products = (deviations**2).sum(-1), (deviations[:, 1:] * deviations[:, :-1]).sum(-1)
    # Effects that persist, as on a busy machine, make the runs of a baseline look more alike than the next one is.
    likeness = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    persistence = np.clip(likeness, 0.0, _MOST_PERSISTENCE)
    degrees = _RUN_WEIGHT + runs - 1
    variance = (_RUN_WEIGHT * usual + squares * (1 + persistence) / (1 - persistence)) / degrees
    bounds = _bounds(mean, np.sqrt(variance * (1 + 1 / runs)), np.full_like(mean, degrees), RUN_ALPHA)
    return RunRatios(np.exp(mean), bounds, np.sqrt(squares / max(runs - 1, 1)), persistence)


def task_ratios(figures: Figures) -> Floats:
    """Return what the ratio of each gate and task exceeds, beside the other tasks of the run. What slows all of them is
    in the ratios of the run.

    The lower quartile of a task's trials is compared, so that a few trials that hang are no slower task. Each of m
    tasks has the level 1 - (1 - alpha)^(1/m): the chance that any unchanged task is found is at most alpha (Šidák
    1967).
    """
    before = _lower_quartiles(figures.before)
    known, runs = ~np.isnan(before), (~np.isnan(before[0])).sum(-1)
    centres = np.where(known, before, 0.0).sum(-1) / runs
    deviations = before - centres[..., None]
    deviations = np.where(known, deviations - np.nanmedian(deviations, axis=1, keepdims=True), 0.0)
    squares = (deviations**2).sum(-1) - deviations.sum(-1) ** 2 / runs
    degrees = _TASK_WEIGHT + runs - 1
    of_all = squares.sum(-1, keepdims=True) / max((runs - 1).sum(), 1)
    # With fewer trials now than in a run of the baseline, a task varies more.
    trials_before, trials_now = (~np.isnan(figures.before[0])).sum((1, 2)) / runs, (~np.isnan(figures.now[0])).sum(-1)
    fewer = np.maximum(trials_before / trials_now, 1.0)
    errors = np.sqrt((_TASK_WEIGHT * of_all + squares) / degrees * (fewer + 1 / runs))
    changes = _lower_quartiles(figures.now) - centres
    # A run that is faster as a whole makes no task slower.
    beside = changes - np.maximum(np.median(changes, axis=1, keepdims=True), 0.0)
    alpha = 1 - (1 - TASK_ALPHA) ** (1 / len(figures.tasks))
    return _bounds(beside, errors, np.broadcast_to(degrees, errors.shape), alpha)


def _lower_quartiles(figures: Floats) -> Floats:
    """Return along the last axis the greatest figure that at least three quarters of the others are not below."""
    places = np.maximum((~np.isnan(figures)).sum(-1, keepdims=True) - 1, 0) // 4
    return np.asarray(np.take_along_axis(np.sort(figures, axis=-1), places, axis=-1)[..., 0])


def _bounds(changes: Floats, errors: Floats, degrees: Floats, alpha: float) -> Floats:
    bounds = changes - student_t_quantiles(degrees, CONFIDENCE) * errors
    beyond_chance = changes - student_t_quantiles(degrees, 1 - alpha) * errors > 0
    return np.asarray(np.exp(np.where(beyond_chance, bounds, np.minimum(bounds, 0.0))))


class Noise(NamedTuple):
    """By how much the paired figures of runs differ whose agent has not changed, as logarithms."""

    deviation: float
    usual: float  # The variance that they are taken to have before it is seen
    runs: int


def estimate_noise(baseline: FiguresOfTasks) -> Noise | None:
    """Return the noise of the positive figures of a baseline; `None` where a run could not be compared with it."""
    tasks = [task for task, runs in baseline.items() if _any(runs.values())]
    if len(tasks) < LEAST_PAIRS:
        return None
    before = _logarithms([baseline[task] for task in tasks])[None]
    figures = Figures(tuple(tasks), np.empty((1, len(tasks), 0)), before)
    if not figures.comparable:
        return None
    known = ~np.isnan(before[0])
    counts = known.sum(-1)
    means = np.where(known, before[0], 0.0).sum(-1) / np.maximum(counts, 1)
    centres = means.sum(-1, keepdims=True) / (counts > 0).sum(-1, keepdims=True)
    effects = np.where(counts > 0, means - centres, 0.0).sum(0) / (counts > 0).sum(0)
    return Noise(float(effects.std(ddof=1)), float(_usual_variance(PAIRED, figures)[0]), len(effects))


def simulated_bounds(noise: Noise, gates: int, seed: int) -> Floats:
    """Return the bounds of the paired ratio in a number of gates whose agent has not changed. Each has a new baseline,
    and with it the noise as that gate would measure it.
    """
    effects = np.random.default_rng(seed).normal(0.0, noise.deviation, (gates, noise.runs + 1))
    return _compare_runs(effects[:, :1] - effects[:, 1:], np.full(gates, noise.usual)).bounds
