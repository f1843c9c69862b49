"""Measure a run: compute the figures of each task, each suite and the whole run from the trials."""

from collections.abc import Sequence

from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.trial import Trial
from passgate.tasks.stats.measurement import measure_trials


def measure(context: RunContext, trials: Sequence[Trial], baseline: Baseline) -> Measurement:
    """Return the figures of a run. Errors and trials that did not run are counted but enter no estimate.

    The trials of earlier runs of the same commit count too, if the policy has `baseline` name them.
    """
    return measure_trials(context.tasks, trials, baseline.repeated_trials)
