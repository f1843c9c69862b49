"""How much figures of trials vary (seconds, dollars): within a run, and from run to run."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean, variance
from typing import NamedTuple


class Noise(NamedTuple):
    """Standard deviations of logarithms."""

    spreads: Mapping[str, float]
    """Of the trials of a task within a run; tasks of which no run has two figures are not among them."""
    drift: float
    """Of a whole run: by how much all its tasks are dearer or cheaper together, as on a day when the provider is slow.
    """


class Figure(NamedTuple):
    """What one trial took."""

    task: str
    run: str
    value: float


def noise_of(figures: Iterable[Figure]) -> Noise:
    """The noise of positive figures, by analysis of variance; others are left out.

    The mean over its tasks of a run's deviations varies by the drift and by what is left of the spreads, which is taken
    off again. With fewer than two runs the drift is 0.
    """
    cells: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in figures:
        if one.value > 0:
            cells[one.task, one.run].append(math.log(one.value))
    spreads = _spreads(cells)
    return Noise({task: math.sqrt(value) for task, value in spreads.items()}, math.sqrt(_drift(cells, spreads)))


def _spreads(cells: Mapping[tuple[str, str], list[float]]) -> dict[str, float]:
    """The variance of each task within its runs, pooled over them."""
    squares: dict[str, float] = defaultdict(float)
    degrees: dict[str, int] = defaultdict(int)
    for (task, _), logarithms in cells.items():
        if len(logarithms) > 1:
            squares[task] += variance(logarithms) * (len(logarithms) - 1)
            degrees[task] += len(logarithms) - 1
    return {task: squares[task] / degrees[task] for task in squares}


def _drift(cells: Mapping[tuple[str, str], list[float]], spreads: Mapping[str, float]) -> float:
    """The variance of whole runs."""
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
    if len(deviations) < 2:
        return 0.0
    of_runs = variance(fmean(values) for values in deviations.values())
    by_chance = fmean(sum(values) / len(values) ** 2 for values in left.values())
    return max(of_runs - by_chance, 0.0)
