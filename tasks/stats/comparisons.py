"""Is this run dearer than the baseline? Paired by task, so that unlike tasks do not blur each other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from passgate.tasks.stats.noise import FiguresOfTasks, noise_of
from passgate.tasks.stats.scores import student_t

LEAST_PAIRS = 8
"""With fewer tasks a single one that is much dearer by chance is red more often than 2 % of the time."""
LEAST_RUNS = 2
"""Runs at the baseline that share tasks: others do not show by how much whole runs differ."""
CONFIDENCE = 0.9
"""Of the one-sided bound. docs/statistics.md has what it costs in false reds and in falls that are missed."""

_ROUNDING = 1e-9


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
