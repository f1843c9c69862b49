"""The baseline of a task that has none yet: what it would be after some runs of an agent that passes so often."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import RED_IN_A_ROW, BaselineState, BaselineTask
from passgate.tasks.model.policy import Admission
from passgate.tasks.model.sequential import SequentialTest
from passgate.tasks.model.task import BY_TRIALS, Metric
from passgate.tasks.stats.binomial import binomial
from passgate.tasks.stats.sequential import operating_characteristic

MOST_TRIALS: Final = 600
"""More trials of a task are not counted: they would change next to nothing and take long to go through."""
_NEGLIGIBLE: Final = 1e-9
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
    for tally, chance in _tallies(rule, rate, runs, of, most_failed).items():
        failed_lately = most_failed if tally.failed_lately == most_failed else 0
        merged[tally.state(runs), tally.failed, failed_lately] += chance
    kept = {key: chance for key, chance in sorted(merged.items()) if chance >= _LEAST_CHANCE}
    whole = sum(kept.values())
    return tuple(
        Possible(_entry(state, runs * rule.k, failed, of, failed_lately), chance / whole)
        for (state, failed, failed_lately), chance in kept.items()
    )


class _Tally(NamedTuple):
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


def _tallies(rule: TrialRule, rate: float, runs: int, of: int, most_failed: int) -> Mapping[_Tally, float]:
    tallies = {_Tally(): 1.0}
    for run in range(runs):
        looked_at = min(max(of - run * rule.k, 0), rule.k)
        outcomes = list(_outcomes(rule, rate, looked_at))
        later: dict[_Tally, float] = defaultdict(float)
        for tally, chance in tallies.items():
            for outcome, share in outcomes:
                later[_add(tally, outcome, run, most_failed)] += chance * share
        tallies = {tally: chance for tally, chance in later.items() if chance >= _NEGLIGIBLE}
    return tallies


def _add(tally: _Tally, outcome: _Run, run: int, most_failed: int) -> _Tally:
    return _Tally(
        tally.greens + outcome.green,
        tally.failed + outcome.failed,
        min(tally.failed_lately + outcome.failed_lately, most_failed),
        tally.newest_red and not (outcome.green and run < RED_IN_A_ROW),
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
