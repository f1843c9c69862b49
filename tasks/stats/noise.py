"""How much figures of trials vary (seconds, dollars): within a run, and from run to run."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

FiguresOfTasks = Mapping[str, Mapping[str, Sequence[float]]]
"""By task and run, a figure of every trial."""

_Cells = Mapping[tuple[str, str], Sequence[float]]
"""By task and run, the logarithm of every positive figure; none is empty."""


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
