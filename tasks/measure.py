"""Measure: the finished trials of a run in, the numbers of each task, each suite and the whole run out."""

from collections.abc import Sequence

from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.trial import Trial
from passgate.tasks.stats.measurement import measurement_of


def measure(context: RunContext, trials: Sequence[Trial]) -> Measurement:
    """The numbers of a run from its trials. Errors and trials that were not run are counted but enter no estimate."""
    return measurement_of(context.tasks, trials)
