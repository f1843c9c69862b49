"""Is this run slower or more expensive than the baseline? It is compared task by task, so that tasks of unlike size do
not hide the difference.

Figures of trials (seconds, dollars) vary within a run and from run to run. `noise_of` measures by how much;
`simulated_bounds` simulates how often the comparison is red for an agent that has not changed.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.estimators import student_t

Floats = npt.NDArray[np.float64]
FiguresOfTasks = Mapping[str, Mapping[str, Sequence[float]]]  # By task and run, a figure of every trial
_Cells = Mapping[tuple[str, str], Sequence[float]]
"""By task and run, the logarithm of every positive figure; none is empty."""
LEAST_PAIRS = 8
"""With fewer tasks, a single one that is much slower by chance makes the gate red more than 2 % of the time."""
LEAST_RUNS = 2  # Runs at the baseline that share tasks. A single run does not show by how much whole runs differ.
CONFIDENCE = 0.9
"""Of the one-sided bound. docs/statistics.md has what it costs in false reds and in falls that are missed."""


class Noise(NamedTuple):
    """Standard deviations of logarithms."""

    spreads: Mapping[str, float]
    """Of the trials of a task within a run. A task of which no run has two figures is absent."""
    drift: float
    """Of a whole run: how much all its tasks are slower or faster together, as on a day when the provider is slow."""
    runs: int
    """Runs from which the drift was measured: those that share a task with another run. Where there are none, the drift
    is unknown and given as 0."""


def noise_of(figures: FiguresOfTasks) -> Noise:
    """The noise of the positive figures, by analysis of variance; other figures are left out."""
    cells = {
        (task, run): logarithms
        for task, runs in figures.items()
        for run, values in runs.items()
        if (logarithms := [math.log(value) for value in values if value > 0])
    }
    squares: dict[str, float] = defaultdict(float)
    degrees: dict[str, int] = defaultdict(int)
    for (task, _), logarithms in cells.items():
        if len(logarithms) > 1:
            mean = fmean(logarithms)
            # `statistics.variance` computes with exact fractions, which takes too long here.
            squares[task] += math.fsum((one - mean) ** 2 for one in logarithms)
            degrees[task] += len(logarithms) - 1
    variances = {task: squares[task] / degrees[task] for task in squares}
    runs_of = _grouped(cells)
    # A task that is in one run alone says nothing of how runs differ.
    linking = {(task, run): logarithms for (task, run), logarithms in cells.items() if len(runs_of[task]) > 1}
    drift = _drift(linking, variances) if linking else 0.0
    spreads = {task: math.sqrt(one) for task, one in variances.items()}
    return Noise(spreads, math.sqrt(drift), len({run for _, run in linking}))


def _drift(cells: _Cells, variances: Mapping[str, float]) -> float:
    """The variance of whole runs; every task is in at least two.

    A run's mean deviation from the centres of its tasks has a square with two parts: the drift, of this run and of the
    other runs in those centres, and the trials' own noise in both. The noise is known and subtracted.
    """
    runs_of, tasks_of = _grouped(cells), _grouped((run, task) for task, run in cells)
    means = {cell: fmean(logarithms) for cell, logarithms in cells.items()}
    centres = {task: fmean(means[task, run] for run in runs) for task, runs in runs_of.items()}
    usual = fmean(variances.values()) if variances else 0.0
    noise = {cell: variances.get(cell[0], usual) / len(logarithms) for cell, logarithms in cells.items()}
    of_centre = {task: sum(noise[task, run] for run in runs) / len(runs) ** 2 for task, runs in runs_of.items()}
    squares = by_chance = by_drift = 0.0
    for run, tasks in tasks_of.items():
        squares += fmean(means[task, run] - centres[task] for task in tasks) ** 2
        left = (noise[task, run] * (1 - 2 / len(runs_of[task])) + of_centre[task] for task in tasks)
        by_chance += sum(left) / len(tasks) ** 2
        # The part of the drift's variance in this square: 1 - 1/R where all tasks of the run are in the same R runs.
        weights = defaultdict(float, {run: 1.0})
        for task in tasks:
            for other in runs_of[task]:
                weights[other] -= 1 / (len(runs_of[task]) * len(tasks))
        by_drift += math.fsum(weight**2 for weight in weights.values())
    # Noise can exceed what was seen by chance; a variance is not negative.
    return max(squares - by_chance, 0.0) / by_drift


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for first, second in pairs:
        groups[first].append(second)
    return groups


@dataclass(frozen=True)
class PairedRatio:
    """The geometric mean over the tasks of current / baseline, and the value that it exceeds with 90 % confidence."""

    ratio: float
    lower_bound: float
    pairs: int
    drift: float  # By how much whole runs of the baseline differ: the standard deviation of their logarithms


def paired_ratio(current: Mapping[str, Sequence[float]], baseline: FiguresOfTasks) -> PairedRatio | None:
    """Compare positive figures (seconds, dollars) of the same tasks: a run's trials with those of the baseline's runs.

    A task's ratio is that of the geometric means of its trials. The bound is Student's: the mean of the ratios'
    logarithms minus t times its standard error. The standard error has two parts: how the tasks' ratios differ, and how
    whole runs differ (`Noise.drift`), because this run is one more of them. Values that are not positive are left out.
    `None` with fewer than eight tasks that have positive values on both sides, or fewer than two runs that share tasks.
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

    def has_any(runs: Iterable[Sequence[float]]) -> bool:
        return any(value > 0 for run in runs for value in run)

    return [task for task, values in current.items() if has_any([values]) and has_any(baseline.get(task, {}).values())]


def margin(of_tasks: float, pairs: int, of_runs: float, runs: int) -> float:
    """How far the bound lies below the mean, from the variance of the tasks' changes and that of whole runs.

    Student's quantile has the degrees of freedom of a sum of two variances (Satterthwaite 1946, Biometrics Bulletin 2).
    """
    tasks_part, runs_part = of_tasks / pairs, of_runs * (1 + 1 / runs)
    whole = tasks_part + runs_part
    if whole == 0:
        return 0.0
    degrees = whole**2 / (tasks_part**2 / (pairs - 1) + runs_part**2 / (runs - 1))
    # Without the hair, degrees that are whole but for rounding would be cut down by one.
    return student_t(int(degrees + 1e-9), CONFIDENCE) * math.sqrt(whole)


def _mean_logarithm(values: Sequence[float]) -> float:
    return fmean(math.log(value) for value in values if value > 0)


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
    """The lower bounds of the paired ratio (`paired_ratio`) in a number of gates whose agent has not changed.

    Figures vary lognormally, by the spread of their task and by the drift of the whole run. Each gate gets a new
    baseline of `runs` runs, and with it the drift as that gate would measure it. `None` with fewer than eight pairs or
    two runs, which are not compared, and where no spread is known.
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
    # The spreads leave a part of their variance in the means of whole runs. `noise_of` subtracts it, and so does this.
    left = sum(spread**2 * runs / pair.before for pair, spread in zip(pairs, spreads, strict=True)) / count**2
    of_runs = np.maximum((drift**2 + left) * draws.chisquare(runs - 1, gates) / (runs - 1) - left, 0.0)
    margins = [margin(task, count, run, runs) for task, run in zip(of_tasks.tolist(), of_runs.tolist(), strict=True)]
    bounds: Floats = np.exp(mean + shift - np.array(margins))
    return bounds
