"""What the first k trials of a task come to."""

from typing import NamedTuple

from passgate.tasks.forecasts.assumed import TrialRule
from passgate.tasks.model.task import BY_TRIALS, Metric
from passgate.tasks.stats.sequential import operating_characteristic


class Trials(NamedTuple):
    """What one trial of a task comes to: shares that, with the failures that are no violation, sum to 1."""

    passed: float
    violated: float = 0.0
    """Failed by a violation that blocks."""
    errors: float = 0.0
    """Not measured."""

    @property
    def pass_rate(self) -> float:
        """Of the trials that were measured and violated nothing."""
        measured = 1 - self.errors - self.violated
        return min(self.passed / measured, 1.0) if measured > 0 else 0.0


class FirstTrials(NamedTuple):
    """The chances of what k trials say; they sum to 1."""

    passed: float
    failed: float
    """Without a violation that blocks."""
    undecided: float
    """Errors leave it open."""
    vetoed: float
    """One of them has violated a rule that blocks, whatever else they say."""


def first_trials(rule: TrialRule, trial: Trials) -> FirstTrials:
    """What k independent trials say of a task by its rule, exactly.

    Of a task that goes by a sequential test or by its scores, errors are taken to leave it open, and the test or the
    runs of which `pass_rate` is the share are those without errors.
    """
    calm = (1 - trial.violated) ** rule.k
    if rule.sequential is not None or rule.metric not in BY_TRIALS:
        whole = (1 - trial.errors) ** rule.k
        passed = rule.green_chance(trial.pass_rate)
        return FirstTrials(calm * whole * passed, calm * whole * (1 - passed), calm * (1 - whole), 1 - calm)
    failing = max(1 - trial.passed - trial.violated - trial.errors, 0.0)
    if rule.metric is Metric.PASS_HAT_K:
        passed, decided_not = trial.passed**rule.k, (trial.passed + trial.errors) ** rule.k
        return FirstTrials(passed, max(calm - decided_not, 0.0), max(decided_not - passed, 0.0), 1 - calm)
    failed, decided_not = failing**rule.k, (failing + trial.errors) ** rule.k
    return FirstTrials(max(calm - decided_not, 0.0), failed, max(decided_not - failed, 0.0), 1 - calm)


def expected_trials(rule: TrialRule, trial: Trials, *, stops: bool) -> float:
    """How many of k trials are run, one after the other, where those are left out that are not needed once the task
    is decided: `stops` says whether that is so of a task that its rule can decide before the last trial.
    """
    if not stops or rule.metric not in BY_TRIALS:
        return float(rule.k)
    if rule.sequential is not None:
        return operating_characteristic(rule.sequential, rule.k, trial.pass_rate).expected_trials
    decides = trial.passed if rule.metric is Metric.PASS_AT_K else 1 - trial.passed - trial.errors
    return sum((1 - max(decides, 0.0)) ** run for run in range(rule.k))
