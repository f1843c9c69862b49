"""Is this run dearer than the baseline? Paired by task, so that unlike tasks do not blur each other.

Figures of trials (seconds, dollars) vary within a run and from run to run: their noise says by how much, and
simulation how often the comparison is red for an agent that has not changed.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.estimators import student_t

FiguresOfTasks = Mapping[str, Mapping[str, Sequence[float]]]
"""By task and run, a figure of every trial."""

_Cells = Mapping[tuple[str, str], Sequence[float]]
"""By task and run, the logarithm of every positive figure; none is empty."""
LEAST_PAIRS = 8
"""With fewer tasks a single one that is much dearer by chance is red more often than 2 % of the time."""
LEAST_RUNS = 2
"""Runs at the baseline that share tasks: others do not show by how much whole runs differ."""
CONFIDENCE = 0.9
"""Of the one-sided bound. docs/statistics.md has what it costs in false reds and in falls that are missed."""
_ROUNDING = 1e-9
"""Degrees of freedom that are whole but for rounding are not cut down by one."""
Floats = npt.NDArray[np.float64]


class Noise(NamedTuple):
    """Standard deviations of logarithms."""

    spreads: Mapping[str, float]
    """Of the trials of a task within a run; tasks of which no run has two figures are not among them."""
    drift: float
    """Of a whole run: by how much all its tasks are dearer or cheaper together, as on a day when the provider is slow.
    """
    runs: int
    """Runs that the drift was measured in: those that share a task with another one. Where there are none the drift is
    not known and given as 0."""


def noise_of(figures: FiguresOfTasks) -> Noise:
    """The noise of positive figures, by analysis of variance; others are left out.

    The mean over its tasks of a run's deviations varies by the drift and by what is left of the spreads, which is taken
    off again. A task that is in one run alone says nothing of how runs differ.
    """
    cells = {
        (task, run): logarithms
        for task, runs in figures.items()
        for run, values in runs.items()
        if (logarithms := [math.log(value) for value in values if value > 0])
    }
    spreads = _spreads(cells)
    runs_of = _grouped(cells)
    linking = {(task, run): logarithms for (task, run), logarithms in cells.items() if len(runs_of[task]) > 1}
    drift = _drift(linking, spreads) if linking else 0.0
    return Noise(
        {task: math.sqrt(value) for task, value in spreads.items()}, math.sqrt(drift), len({run for _, run in linking})
    )


def _spreads(cells: _Cells) -> dict[str, float]:
    """The variance of each task within its runs, pooled over them."""
    squares: dict[str, float] = defaultdict(float)
    degrees: dict[str, int] = defaultdict(int)
    for (task, _), logarithms in cells.items():
        if len(logarithms) > 1:
            squares[task] += _squares(logarithms)
            degrees[task] += len(logarithms) - 1
    return {task: squares[task] / degrees[task] for task in squares}


def _drift(cells: _Cells, spreads: Mapping[str, float]) -> float:
    """The variance of whole runs; every task is in at least two.

    A run's mean deviation from the centres of its tasks has a square that is made of the drift of this run and of the
    others in those centres, and of the trials' own noise in both.
    """
    runs_of, tasks_of = _grouped(cells), _grouped((run, task) for task, run in cells)
    means = {cell: fmean(logarithms) for cell, logarithms in cells.items()}
    centres = {task: fmean(means[task, run] for run in runs) for task, runs in runs_of.items()}
    usual = fmean(spreads.values()) if spreads else 0.0
    noise = {cell: spreads.get(cell[0], usual) / len(logarithms) for cell, logarithms in cells.items()}
    of_centre = {task: sum(noise[task, run] for run in runs) / len(runs) ** 2 for task, runs in runs_of.items()}
    squares = by_chance = by_drift = 0.0
    for run, tasks in tasks_of.items():
        squares += fmean(means[task, run] - centres[task] for task in tasks) ** 2
        left = (noise[task, run] * (1 - 2 / len(runs_of[task])) + of_centre[task] for task in tasks)
        by_chance += sum(left) / len(tasks) ** 2
        by_drift += _share_of_drift(run, [runs_of[task] for task in tasks])
    return max(squares - by_chance, 0.0) / by_drift


def _share_of_drift(run: str, runs_of_tasks: Collection[Sequence[str]]) -> float:
    """How much of the drift's variance is in the square of a run's mean deviation, by the runs of each of its tasks:
    1 - 1/R where all of them are in the same R runs.
    """
    weights = defaultdict(float, {run: 1.0})
    for runs in runs_of_tasks:
        for other in runs:
            weights[other] -= 1 / (len(runs) * len(runs_of_tasks))
    return math.fsum(weight**2 for weight in weights.values())


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The second of each pair by the first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for first, second in pairs:
        groups[first].append(second)
    return groups


def _squares(values: Sequence[float]) -> float:
    """The sum of the squared deviations from the mean. Exact fractions (`statistics`) take too long here."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)


@dataclass(frozen=True)
class PairedRatio:
    """The geometric mean over the tasks of current / baseline, and the value that it exceeds with 90 %."""

    ratio: float
    lower_bound: float
    pairs: int
    drift: float
    """By how much whole runs of the baseline differ: the standard deviation of their logarithms."""


def paired_ratio(current: Mapping[str, Sequence[float]], baseline: FiguresOfTasks) -> PairedRatio | None:
    """Compare positive figures (seconds, dollars) of the same tasks: a run's trials with those of the baseline's runs.

    A task's ratio is that of the geometric means of its trials. The bound is Student's: the mean of the ratios'
    logarithms less t times its standard error. That has two parts: how the tasks' ratios differ, and how whole runs of
    the baseline differ (`Noise.drift`), of which this one is another. Values that are not positive are left out. `None`
    with fewer than eight tasks that have any on both sides, or fewer than two runs that share tasks.
    """
    pairs = paired_tasks(current, baseline)
    before = {task: [value for values in baseline[task].values() for value in values] for task in pairs}
    noise = noise_of({task: baseline[task] for task in pairs})
    if len(pairs) < LEAST_PAIRS or noise.runs < LEAST_RUNS:
        return None
    changes = [_mean_logarithm(current[task]) - _mean_logarithm(before[task]) for task in pairs]
    mean = fmean(changes)
    bound = mean - margin(variance(changes), len(changes), noise.drift**2, noise.runs)
    return PairedRatio(math.exp(mean), math.exp(bound), len(changes), noise.drift)


def paired_tasks(current: Mapping[str, Sequence[float]], baseline: FiguresOfTasks) -> list[str]:
    """The tasks that are compared: those with positive figures on both sides."""
    return [
        task
        for task, values in current.items()
        if _has_any(values) and any(_has_any(run) for run in baseline.get(task, {}).values())
    ]


def margin(of_tasks: float, pairs: int, of_runs: float, runs: int) -> float:
    """How far the bound lies below the mean, of the variances of the tasks' changes and of whole runs.

    Student's quantile has the degrees of freedom of a sum of two variances (Satterthwaite 1946, Biometrics Bulletin 2).
    """
    tasks_part, runs_part = of_tasks / pairs, of_runs * (1 + 1 / runs)
    whole = tasks_part + runs_part
    if whole == 0:
        return 0.0
    degrees = whole**2 / (tasks_part**2 / (pairs - 1) + runs_part**2 / (runs - 1))
    return student_t(int(degrees + _ROUNDING), CONFIDENCE) * math.sqrt(whole)


def _has_any(values: Sequence[float]) -> bool:
    return any(value > 0 for value in values)


def _mean_logarithm(values: Sequence[float]) -> float:
    return fmean(math.log(value) for value in values if value > 0)


class Pair(NamedTuple):
    """One task that is compared with its baseline."""

    before: int
    """Its figures at the baseline."""
    now: int
    """Those to come."""
    spread: float | None
    """Standard deviation of their logarithms within a run; where it is not known that of the other tasks is taken."""


def simulated_bounds(
    pairs: Sequence[Pair], gates: int, seed: int, *, drift: float = 0.0, runs: int = LEAST_RUNS
) -> Floats | None:
    """The lower bounds of the paired ratio (`paired_ratio`) in so many gates whose agent has not changed.

    Figures vary lognormally, by the spread of their task and by the drift of the whole run. The baseline, of so many
    `runs`, is drawn anew for each gate, and with it the drift as a gate would measure it. `None` with fewer than eight
    pairs or two runs, which are not compared, and where no spread is known.
    """
    known = [pair.spread for pair in pairs if pair.spread is not None]
    if len(pairs) < LEAST_PAIRS or runs < LEAST_RUNS or not known:
        return None
    spreads = [fmean(known) if pair.spread is None else pair.spread for pair in pairs]
    draws = np.random.default_rng(seed)
    total, squares = np.zeros(gates), np.zeros(gates)
    for pair, spread in zip(pairs, spreads, strict=True):
        change = draws.normal(0.0, spread * math.sqrt(1 / pair.now + 1 / pair.before), gates)
        total += change
        squares += change**2
    count = len(pairs)
    mean = total / count
    of_tasks = np.maximum(squares - count * mean**2, 0.0) / (count - 1)
    shift = draws.normal(0.0, drift * math.sqrt(1 + 1 / runs), gates)
    # Of the means of whole runs a part of the variance is what the spreads leave in them, and is taken off again.
    left = sum(spread**2 * runs / pair.before for pair, spread in zip(pairs, spreads, strict=True)) / count**2
    of_runs = np.maximum((drift**2 + left) * draws.chisquare(runs - 1, gates) / (runs - 1) - left, 0.0)
    margins = [margin(task, count, run, runs) for task, run in zip(of_tasks.tolist(), of_runs.tolist(), strict=True)]
    bounds: Floats = np.exp(mean + shift - np.array(margins))
    return bounds
