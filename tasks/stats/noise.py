"""How much figures of trials vary (seconds, dollars): within a run, and from run to run."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

FiguresOfTasks = Mapping[str, Mapping[str, Sequence[float]]]
"""By task and run, a figure of every trial."""


class Noise(NamedTuple):
    """Standard deviations of logarithms."""

    spreads: Mapping[str, float]
    """Of the trials of a task within a run; tasks of which no run has two figures are not among them."""
    drift: float
    """Of a whole run: by how much all its tasks are dearer or cheaper together, as on a day when the provider is slow.
    """
    runs: int
    """Runs that it was measured in. With one the drift is not known and given as 0."""


def noise_of(figures: FiguresOfTasks) -> Noise:
    """The noise of positive figures, by analysis of variance; others are left out.

    The mean over its tasks of a run's deviations varies by the drift and by what is left of the spreads, which is taken
    off again.
    """
    cells = {
        (task, run): logarithms
        for task, runs in figures.items()
        for run, values in runs.items()
        if (logarithms := [math.log(value) for value in values if value > 0])
    }
    spreads = _spreads(cells)
    runs = len({run for _, run in cells})
    drift = _drift(cells, spreads) if runs > 1 else 0.0
    return Noise({task: math.sqrt(value) for task, value in spreads.items()}, math.sqrt(drift), runs)


def _spreads(cells: Mapping[tuple[str, str], list[float]]) -> dict[str, float]:
    """The variance of each task within its runs, pooled over them."""
    squares: dict[str, float] = defaultdict(float)
    degrees: dict[str, int] = defaultdict(int)
    for (task, _), logarithms in cells.items():
        if len(logarithms) > 1:
            squares[task] += _squares(logarithms)
            degrees[task] += len(logarithms) - 1
    return {task: squares[task] / degrees[task] for task in squares}


def _drift(cells: Mapping[tuple[str, str], list[float]], spreads: Mapping[str, float]) -> float:
    """The variance of whole runs, of which there are at least two."""
    of_task: dict[str, list[float]] = defaultdict(list)
    for (task, _), logarithms in cells.items():
        of_task[task].append(fmean(logarithms))
    centres = {task: fmean(means) for task, means in of_task.items()}
    usual = fmean(spreads.values()) if spreads else 0.0
    deviations: dict[str, list[float]] = defaultdict(list)
    left: dict[str, list[float]] = defaultdict(list)
    for (task, run), logarithms in cells.items():
        deviations[run].append(fmean(logarithms) - centres[task])
        left[run].append(spreads.get(task, usual) / len(logarithms))
    of_runs = _squares([fmean(values) for values in deviations.values()]) / (len(deviations) - 1)
    by_chance = fmean(sum(values) / len(values) ** 2 for values in left.values())
    return max(of_runs - by_chance, 0.0)


def _squares(values: Sequence[float]) -> float:
    """The sum of the squared deviations from the mean. Exact fractions (`statistics`) take too long here."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)
