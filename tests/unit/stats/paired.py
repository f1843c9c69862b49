"""What the gate makes of the figures of one run and of its baseline."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from passgate.tasks.stats.ratios import PAIRED, FiguresOfTasks, paired_figures, run_ratios


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
    found = run_ratios(PAIRED, figures)
    return Answer(float(found.ratios[0]), float(found.bounds[0]), len(figures.tasks), float(found.drift[0]))
