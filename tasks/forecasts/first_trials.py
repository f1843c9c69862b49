"""What the first k trials of a task come to, and the baseline that runs of an agent which passes so often give."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import RED_IN_A_ROW, BaselineState, BaselineTask
from passgate.tasks.model.policy import Admission
from passgate.tasks.model.task import BY_TRIALS, Metric, SequentialTest
from passgate.tasks.stats.decision import operating_characteristic
from passgate.tasks.stats.estimators import binomial

MOST_TRIALS: Final = 600
"""More trials of a task are not counted: they would change next to nothing and take long to go through."""
_NEGLIGIBLE: Final = 1e-9
"""Counts that are rarer are dropped after each run: there would be more of them with every run."""
_LEAST_CHANCE: Final = 1e-6


class TrialRule(NamedTuple):
    """How the trials of one run decide a task."""

    k: int
    metric: Metric
    sequential: SequentialTest | None = None

    def is_green(self, failed: int) -> bool | None:
        """Whether a run with so many failed trials is green; `None` where that does not depend on their number."""
        if self.sequential is not None or self.metric not in BY_TRIALS:
            return None
        return failed == 0 if self.metric is Metric.PASS_HAT_K else failed < self.k

    def green_chance(self, rate: float) -> float:
        """The chance of a green run: of a task that goes by its scores `rate` itself is that."""
        if self.sequential is not None:
            return operating_characteristic(self.sequential, self.k, rate).accepts
        if self.metric not in BY_TRIALS:
            return rate
        return rate**self.k if self.metric is Metric.PASS_HAT_K else 1 - (1 - rate) ** self.k


class Possible(NamedTuple):
    """A baseline that a task may have."""

    entry: BaselineTask
    chance: float


@lru_cache(maxsize=4096)
def assumed_baseline(rule: TrialRule, rate: float, runs: int, admission: Admission | None) -> tuple[Possible, ...]:
    """Every baseline that `runs` runs may give a task which passes so often, with its chance; the chances sum to 1.

    Trials are independent, and all of each run are measured. Beside the state only that is told apart which a gate
    looks at: the passed trials, and whether `admission` would admit the task.
    """
    runs = min(runs, max(1, MOST_TRIALS // rule.k))
    of, most_failed = (admission.of, admission.of - admission.passes + 1) if admission else (0, 0)
    merged: dict[tuple[BaselineState, int, int], float] = defaultdict(float)
    for counts, chance in _counts_after(rule, rate, runs, of, most_failed).items():
        failed_lately = most_failed if counts.failed_lately == most_failed else 0
        merged[counts.state(runs), counts.failed, failed_lately] += chance
    kept = {key: chance for key, chance in sorted(merged.items()) if chance >= _LEAST_CHANCE}
    whole = sum(kept.values())
    return tuple(
        Possible(_entry(state, runs * rule.k, failed, of, failed_lately), chance / whole)
        for (state, failed, failed_lately), chance in kept.items()
    )


class _Counts(NamedTuple):
    """What is counted from the newest run to the oldest."""

    greens: int = 0
    failed: int = 0
    failed_lately: int = 0
    """Of the newest trials, those that admission looks at; counted up to the number at which it refuses."""
    newest_red: bool = True
    """Whether none of the newest runs was green, as many as make a task red."""

    def state(self, runs: int) -> BaselineState:
        reds = [False] * (min(RED_IN_A_ROW, runs) if self.newest_red else 0)
        return state_of([*reds, *[True] * self.greens, *[False] * (runs - self.greens - len(reds))])


class _Run(NamedTuple):
    green: bool
    failed: int
    failed_lately: int


def _counts_after(rule: TrialRule, rate: float, runs: int, of: int, most_failed: int) -> Mapping[_Counts, float]:
    reached = {_Counts(): 1.0}
    for run in range(runs):
        looked_at = min(max(of - run * rule.k, 0), rule.k)
        outcomes = list(_outcomes(rule, rate, looked_at))
        later: dict[_Counts, float] = defaultdict(float)
        for counts, chance in reached.items():
            for outcome, share in outcomes:
                later[_add(counts, outcome, run, most_failed)] += chance * share
        reached = {counts: chance for counts, chance in later.items() if chance >= _NEGLIGIBLE}
    return reached


def _add(counts: _Counts, outcome: _Run, run: int, most_failed: int) -> _Counts:
    return _Counts(
        counts.greens + outcome.green,
        counts.failed + outcome.failed,
        min(counts.failed_lately + outcome.failed_lately, most_failed),
        counts.newest_red and not (outcome.green and run < RED_IN_A_ROW),
    )


def _outcomes(rule: TrialRule, rate: float, looked_at: int) -> Iterator[tuple[_Run, float]]:
    """What one run may come to, of whose trials admission looks at some."""
    green = rule.green_chance(rate)
    for lately, chance_lately in enumerate(binomial(looked_at, 1 - rate)):
        for other, chance in enumerate(binomial(rule.k - looked_at, 1 - rate)):
            failed, both = lately + other, chance_lately * chance
            is_green = rule.is_green(failed)
            if is_green is None:
                yield _Run(True, failed, lately), both * green
                yield _Run(False, failed, lately), both * (1 - green)
            else:
                yield _Run(is_green, failed, lately), both


def _entry(state: BaselineState, n: int, failed: int, of: int, failed_lately: int) -> BaselineTask:
    newest = max(min(of, n), 1)
    bad = min(failed_lately, newest)
    return BaselineTask(state=state, passed=n - failed, n=n, newest=tuple([False] * bad + [True] * (newest - bad)))


class TrialShares(NamedTuple):
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


def first_trials(rule: TrialRule, trial: TrialShares) -> FirstTrials:
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


def expected_trials(rule: TrialRule, trial: TrialShares, *, stops: bool) -> float:
    """How many of k trials are run, one after the other, where those are left out that are not needed once the task
    is decided: `stops` says whether that is so of a task that its rule can decide before the last trial.
    """
    if not stops or rule.metric not in BY_TRIALS:
        return float(rule.k)
    if rule.sequential is not None:
        return operating_characteristic(rule.sequential, rule.k, trial.pass_rate).expected_trials
    decides = trial.passed if rule.metric is Metric.PASS_AT_K else 1 - trial.passed - trial.errors
    return sum((1 - max(decides, 0.0)) ** run for run in range(rule.k))
