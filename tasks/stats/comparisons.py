"""Is this run dearer than the baseline? Paired by task, so that unlike tasks do not blur each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from passgate.tasks.stats.scores import student_t

LEAST_PAIRS = 8
"""With fewer tasks a single one that is much dearer by chance is red more often than 2 % of the time."""
CONFIDENCE = 0.9
"""Of the one-sided bound. docs/statistics.md has what it costs in false reds and in falls that are missed."""


@dataclass(frozen=True)
class PairedRatio:
    """The geometric mean over the tasks of current / baseline, and the value that it exceeds with 90 %."""

    ratio: float
    lower_bound: float
    pairs: int


def paired_ratio(current: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> PairedRatio | None:
    """Compare positive figures (seconds, dollars) of the same tasks: one sequence of trials per task.

    A task's ratio is that of the geometric means of its trials. The bound is Student's: the mean of the ratios'
    logarithms less t times its standard error, as the tasks' spread gives it. Values that are not positive are left
    out. `None` with fewer than eight tasks that have any on both sides.
    """
    pairs = [(_mean_logarithm(now), _mean_logarithm(before)) for now, before in zip(current, baseline, strict=True)]
    changes = [now - before for now, before in pairs if now is not None and before is not None]
    if len(changes) < LEAST_PAIRS:
        return None
    mean = fmean(changes)
    error = stdev(changes) / math.sqrt(len(changes))
    bound = mean - student_t(len(changes) - 1, CONFIDENCE) * error
    return PairedRatio(math.exp(mean), math.exp(bound), len(changes))


def _mean_logarithm(values: Sequence[float]) -> float | None:
    logarithms = [math.log(value) for value in values if value > 0]
    return fmean(logarithms) if logarithms else None
