"""Percentiles by the nearest rank: a value that was really seen, never one in between."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The least value that at least `percent` % of the values do not exceed; `None` of no values."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
