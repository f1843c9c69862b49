"""What the first k trials of a task give, and which baselines runs of an agent with a pass rate give."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import RED_IN_A_ROW, BaselineState, BaselineTask
from passgate.tasks.model.policy import Admission
from passgate.tasks.model.task import BY_TRIALS, Metric
from passgate.tasks.stats.estimators import binomial

MOST_TRIALS: Final = 600  # more trials of a task would change next to nothing and take long to go through
_NEGLIGIBLE: Final = 1e-9  # rarer counts are dropped after each run: there would be more of them with every run
_LEAST_CHANCE: Final = 1e-6


class TrialRule(NamedTuple):
    """How the trials of one run decide a task."""

    k: int
    metric: Metric

    def is_green(self, failed: int) -> bool | None:
        """Whether a run with so many failed trials is green; `None` if that does not depend on their number."""
        if self.metric not in BY_TRIALS:
            return None
        return failed == 0 if self.metric is Metric.PASS_HAT_K else failed < self.k

    def green_chance(self, rate: float) -> float:
        """The chance of a green run. For a task that goes by its scores, `rate` is that chance."""
        if self.metric not in BY_TRIALS:
            return rate
        return rate**self.k if self.metric is Metric.PASS_HAT_K else 1 - (1 - rate) ** self.k


class Possible(NamedTuple):
    """A baseline that a task may have."""

    entry: BaselineTask
    chance: float


@lru_cache(maxsize=4096)
def assumed_baseline(rule: TrialRule, rate: float, runs: int, admission: Admission | None) -> tuple[Possible, ...]:
    """Every baseline that `runs` runs may give a task with this pass rate, with its chance; the chances sum to 1.

    Trials are independent, and all of each run are measured. Baselines differ only in what a gate looks at: the state,
    the passed trials, and whether `admission` would admit the task.
    """
    runs = min(runs, max(1, MOST_TRIALS // rule.k))
    of, most_failed = (admission.of, admission.of - admission.passes + 1) if admission else (0, 0)
    merged: dict[tuple[BaselineState, int, int], float] = defaultdict(float)
    for counts, chance in _counts_after(rule, rate, runs, of, most_failed).items():
        failed_lately = most_failed if counts.failed_lately == most_failed else 0
        merged[counts.state(runs), counts.failed, failed_lately] += chance
    kept = {key: chance for key, chance in sorted(merged.items()) if chance >= _LEAST_CHANCE}
    whole, n = sum(kept.values()), runs * rule.k
    found = []
    for (state, failed, failed_lately), chance in kept.items():
        size = max(min(of, n), 1)
        bad = min(failed_lately, size)
        newest = tuple([False] * bad + [True] * (size - bad))
        found.append(Possible(BaselineTask(state=state, passed=n - failed, n=n, newest=newest), chance / whole))
    return tuple(found)


class _Counts(NamedTuple):
    """What is counted from the newest run to the oldest."""

    greens: int = 0
    failed: int = 0
    failed_lately: int = 0  # of the newest trials, which admission looks at; only up to the number at which it refuses
    newest_red: bool = True  # none of the newest runs was green, as many as make a task red

    def state(self, runs: int) -> BaselineState:
        # Only the newest runs matter by their place, so all the others may stand in any order.
        reds = [False] * (min(RED_IN_A_ROW, runs) if self.newest_red else 0)
        return state_of([*reds, *[True] * self.greens, *[False] * (runs - self.greens - len(reds))])


def _counts_after(rule: TrialRule, rate: float, runs: int, of: int, most_failed: int) -> Mapping[_Counts, float]:
    reached = {_Counts(): 1.0}
    for run in range(runs):
        outcomes = list(_outcomes(rule, rate, looked_at=min(max(of - run * rule.k, 0), rule.k)))
        later: dict[_Counts, float] = defaultdict(float)
        for (counts, chance), (green, failed, lately, share) in product(reached.items(), outcomes):
            after = _Counts(
                counts.greens + green,
                counts.failed + failed,
                min(counts.failed_lately + lately, most_failed),
                counts.newest_red and not (green and run < RED_IN_A_ROW),
            )
            later[after] += chance * share
        reached = {counts: chance for counts, chance in later.items() if chance >= _NEGLIGIBLE}
    return reached


def _outcomes(rule: TrialRule, rate: float, looked_at: int) -> Iterator[tuple[bool, int, int, float]]:
    """What one run may give: whether it is green, its failed trials, those that admission looks at, the chance."""
    green = rule.green_chance(rate)
    for lately, chance_lately in enumerate(binomial(looked_at, 1 - rate)):
        for other, chance in enumerate(binomial(rule.k - looked_at, 1 - rate)):
            failed, both = lately + other, chance_lately * chance
            is_green = rule.is_green(failed)
            if is_green is None:
                yield True, failed, lately, both * green
                yield False, failed, lately, both * (1 - green)
            else:
                yield is_green, failed, lately, both


class TrialShares(NamedTuple):
    """The shares of what one trial of a task gives. With the failures that are no violation they sum to 1."""

    passed: float
    violated: float = 0.0  # failed by a violation that blocks
    errors: float = 0.0  # not measured

    @property
    def pass_rate(self) -> float:
        """The share of passes in the trials that were measured and violated nothing."""
        measured = 1 - self.errors - self.violated
        return min(self.passed / measured, 1.0) if measured > 0 else 0.0


class FirstTrials(NamedTuple):
    """The chances of what k trials give; they sum to 1."""

    passed: float
    failed: float  # without a violation that blocks
    undecided: float  # errors leave it open
    vetoed: float  # one of the trials has violated a rule that blocks, whatever the others give


def first_trials(rule: TrialRule, trial: TrialShares) -> FirstTrials:
    """The exact chances of what k independent trials say of a task by its rule.

    For a task that goes by its scores, errors leave it open, and `pass_rate` is that of the runs without errors.
    """
    unviolated = (1 - trial.violated) ** rule.k
    if rule.metric not in BY_TRIALS:
        whole = (1 - trial.errors) ** rule.k
        passed = rule.green_chance(trial.pass_rate)
        return FirstTrials(
            unviolated * whole * passed, unviolated * whole * (1 - passed), unviolated * (1 - whole), 1 - unviolated
        )
    failing = max(1 - trial.passed - trial.violated - trial.errors, 0.0)
    # One failure decides the AND rule whatever the errors would have been, and one pass decides the OR rule.
    if rule.metric is Metric.PASS_HAT_K:
        passed, decided_not = trial.passed**rule.k, (trial.passed + trial.errors) ** rule.k
        return FirstTrials(passed, max(unviolated - decided_not, 0.0), max(decided_not - passed, 0.0), 1 - unviolated)
    failed, decided_not = failing**rule.k, (failing + trial.errors) ** rule.k
    return FirstTrials(max(unviolated - decided_not, 0.0), failed, max(decided_not - failed, 0.0), 1 - unviolated)


def expected_trials(rule: TrialRule, trial: TrialShares, *, stops: bool) -> float:
    """How many of k trials are run, one after the other. `stops`: no more are run once the task is decided."""
    if not stops or rule.metric not in BY_TRIALS:
        return float(rule.k)
    decides = trial.passed if rule.metric is Metric.PASS_AT_K else 1 - trial.passed - trial.errors
    return sum((1 - max(decides, 0.0)) ** run for run in range(rule.k))
