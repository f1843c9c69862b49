"""Measure: the finished trials of a run in, its numbers out: of each task, of each suite, of all."""

from collections.abc import Sequence

from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.trial import Trial
from passgate.tasks.stats.measurement import measurement_of


def measure(context: RunContext, trials: Sequence[Trial]) -> Measurement:
    """What the trials of a run come to. Errors and trials that were not run are counted, and are in no estimate."""
    return measurement_of(context.tasks, trials)
