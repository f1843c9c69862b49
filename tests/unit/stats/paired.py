"""What the gate makes of the figures of one run and of its baseline."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from passgate.tasks.stats.ratios import FiguresOfTasks, paired_figures, paired_ratios
from passgate.tasks.stats.run_effects import pad_cells, run_effects


class Answer(NamedTuple):
    """Of all tasks together."""

    ratio: float
    lower_bound: float
    pairs: int
    drift: float


def ratio_of_tasks(current: Mapping[str, Sequence[float]], baseline: FiguresOfTasks) -> Answer | None:
    """`None` where the gate judges nothing."""
    figures = paired_figures(current, baseline)
    if not figures.comparable:
        return None
    cells = pad_cells(figures.before)
    effects = run_effects(cells)
    found = paired_ratios(figures, cells, effects)
    drift = float(effects.variance[0]) ** 0.5
    return Answer(float(found.ratios[0]), float(found.bounds[0]), len(figures.tasks), drift)
