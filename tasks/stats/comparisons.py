"""Is this run dearer than the baseline? Paired by task, so that unlike tasks do not blur each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LEAST_PAIRS = 5
RESAMPLES = 4000
_SEED = 20240618

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PairedRatio:
    """The geometric mean over the tasks of current / baseline, and the value that it exceeds with 95 %."""

    ratio: float
    lower_bound: float
    pairs: int


def paired_ratio(current: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> PairedRatio | None:
    """Compare positive figures (seconds, dollars) of the same tasks: one sequence of trials per task.

    `None` with fewer than five tasks that have a positive mean on both sides. The bound is one-sided, from a
    bootstrap that draws tasks and, within each, trials. Seeded: the same figures give the same bound.
    """
    pairs = [
        (np.asarray(now, dtype=float), np.asarray(before, dtype=float))
        for now, before in zip(current, baseline, strict=True)
        if len(now) and len(before) and np.mean(now) > 0 and np.mean(before) > 0
    ]
    if len(pairs) < LEAST_PAIRS:
        return None
    random = np.random.default_rng(_SEED)
    ratios = np.array([np.log(now.mean() / before.mean()) for now, before in pairs])
    resampled = np.stack([_resampled(now, random) - _resampled(before, random) for now, before in pairs])
    drawn = random.integers(0, len(pairs), size=(RESAMPLES, len(pairs)))
    means = resampled[drawn, np.arange(RESAMPLES)[:, None]].mean(axis=1)
    return PairedRatio(float(np.exp(ratios.mean())), float(np.exp(np.quantile(means, 0.05))), len(pairs))


def _resampled(values: Floats, random: np.random.Generator) -> Floats:
    """The logarithms of the means of resamples of some trials."""
    drawn = random.integers(0, len(values), size=(RESAMPLES, len(values)))
    means: Floats = values[drawn].mean(axis=1)
    return np.log(np.maximum(means, np.finfo(float).tiny))
