"""What pass rate a task that has not changed is expected to have: from its baseline, the other tasks and its runs."""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.baseline import RED_IN_A_ROW
from passgate.tasks.stats.estimators import chance_of_so_few, likeness
from passgate.tasks.stats.regression import ENOUGH

Floats = npt.NDArray[np.float64]

# A task whose newest runs passed so rarely is another one than before: what it was is nothing to hold it against.
_BY_CHANCE: Final = 0.002
# The other tasks say something from so many tasks on: with fewer, how much tasks differ is not known.
LEAST_TASKS: Final = 5
_STEPS: Final = 4  # of the weight of the other tasks, so that tests of like tasks are the same test
_DEVIATIONS: Final = 2.0  # runs count as drifting when they vary by so many standard errors more than their trials do
_DRIFTS: Final = (0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)  # likewise: a drift is taken for the next of these
_FAR: Final = 6.0  # so many standard deviations from all others is a run that something has happened to
_LEAST_RUNS: Final = 6  # of fewer none can be told from the others
_MARGIN: Final = 1.15  # twenty runs tell a standard deviation no better than this: 16 % is its standard error


class Counts(NamedTuple):
    """Trials that passed, of so many."""

    passed: float
    n: float


def has_dropped(runs: Sequence[Counts]) -> bool:
    """Return whether the newest runs of a task, which come first, are worse than the others, by more than chance."""
    return is_worse(_sum(runs[:RED_IN_A_ROW]), _sum(runs[RED_IN_A_ROW:]))


def is_worse(newest: Counts, older: Counts) -> bool:
    """Return whether trials pass less often than older ones, by more than chance."""
    if not older.n or newest.passed * older.n >= older.passed * newest.n:
        return False
    good, bad = older.passed + 0.5, older.n - older.passed + 0.5
    return chance_of_so_few(good, bad, int(newest.n), int(newest.passed)) < _BY_CHANCE


def newest_of(runs: Sequence[Counts]) -> Counts:
    """Return the newest runs of a task together."""
    return _sum(runs[:RED_IN_A_ROW])


class OtherTasks(NamedTuple):
    """What the tasks of a suite say together of each of them."""

    rate: float  # Of all their trials
    weight: float  # Of so many trials
    most: float  # At most this share of a task's own trials

    def with_own(self, own: Counts) -> Counts:
        """Return the counts of a task, with as many trials more of the suite's rate as the others tell.

        Tasks with fewer than `ENOUGH` trials stay as they are.
        """
        steps = int(min(self.weight / own.n, self.most) * _STEPS) if own.n >= ENOUGH else 0
        more = own.n * steps / _STEPS
        # Rounded to whole failures: the tests of like tasks are then the same test.
        return Counts(own.passed + more - round(more * (1 - self.rate)), own.n + more)


def other_tasks(counts: Sequence[Counts]) -> OtherTasks:
    """Return what the tasks of a suite say of each other.

    The less their rates differ beyond chance, the more they tell (empirical Bayes in the beta-binomial model, as
    `shrunk_rates`). Of that weight half counts, and never more than a task's own trials, so that a task that differs
    from the others keeps its own rate.
    """
    known = [(int(one.passed), int(one.n)) for one in counts if one.n >= ENOUGH]
    if len(known) < LEAST_TASKS:
        return OtherTasks(1.0, 0.0, 0.0)
    alike = likeness(known)
    return OtherTasks(
        rate=sum(passed for passed, _ in known) / sum(n for _, n in known),
        weight=(1 / alike - 1) / 2 if alike else float("inf"),
        most=1 - (LEAST_TASKS - 1) / len(known),
    )


class Drift(NamedTuple):
    """By how much the pass rates of whole runs differ."""

    deviation: float = 0.0
    """As a standard deviation; 0 where it may be chance."""
    outlier: str = ""
    """The run that is left out because it is far from all others; empty where there is none."""


def drift_of(tasks: Iterable[Mapping[str, Counts]]) -> Drift:
    """Return the drift of some tasks, of each its counts by run.

    A single run that is far from the others, as in an outage, tells nothing of how the others differ. Taken for drift
    it would hide every fall for as long as it is in the baseline.
    """
    tables = list(tasks)
    names = sorted({run for of_task in tables for run in of_task})
    table = np.array([[of_task.get(run, Counts(0, 0)) for run in names] for of_task in tables], dtype=float)
    if len(names) < 2 or not len(tables):
        return Drift()
    passed, n = table[..., 0], table[..., 1]
    whole = _spread(passed, n)
    if not whole.beyond_chance or len(names) < _LEAST_RUNS:
        return Drift(whole.taken)
    farthest = max(range(len(names)), key=lambda run: abs(_distance(passed, n, run, 0.0)))
    rest = _spread(np.delete(passed, farthest, axis=1), np.delete(n, farthest, axis=1))
    is_outlier = abs(_distance(passed, n, farthest, rest.deviation)) > _FAR
    return Drift(rest.taken, names[farthest]) if is_outlier else Drift(whole.taken)


def _distance(passed: Floats, n: Floats, run: int, drift: float) -> float:
    """Return how many standard deviations a run is from the others, which differ by a drift."""
    others_passed, others = passed.sum(axis=1) - passed[:, run], n.sum(axis=1) - n[:, run]
    rates, of_run = (others_passed + 0.5) / (others + 1), n[:, run]
    noise = float((of_run * rates * (1 - rates) * (1 + of_run / (others + 1))).sum())
    deviation = sqrt(noise + (drift * float(of_run.sum())) ** 2)
    return float((passed[:, run] - of_run * rates).sum()) / deviation if deviation else 0.0


class _Spread(NamedTuple):
    """Of the runs' pass rates: the likeliest standard deviation, and whether it is more than chance."""

    deviation: float = 0.0
    beyond_chance: bool = False

    @property
    def taken(self) -> float:
        """Return what the tests allow for."""
        wide = self.deviation * _MARGIN
        return next((step for step in _DRIFTS if step >= wide), _DRIFTS[-1]) if self.beyond_chance else 0.0


def _spread(passed: Floats, n: Floats) -> _Spread:
    """Return the spread of runs (analysis of variance): where runs drift, the deviations of a run's tasks from their
    rates sum up to more than the noise of its trials.
    """
    whole = n.sum(axis=1, keepdims=True)
    told = whole[:, 0] > 1
    passed, n, whole = passed[told], n[told], whole[told]
    rates = passed.sum(axis=1, keepdims=True) / whole
    off = (passed - n * rates).sum(axis=0)
    noise = (n * rates * (1 - rates) * (1 - n / whole) * whole / (whole - 1)).sum(axis=0)
    if not (noise > 0).all():
        return _Spread()
    runs = n.shape[1]
    degrees = runs - 1
    spread = float((off**2 / noise).sum()) * degrees / runs
    variance = float((off**2 - noise).sum() / (n.sum(axis=0) ** 2).sum()) * runs / degrees
    is_more = spread > degrees + _DEVIATIONS * sqrt(2 * degrees + float((1 / noise).sum()))
    return _Spread(sqrt(max(variance, 0.0)), is_more)


def _sum(runs: Iterable[Counts]) -> Counts:
    counted = list(runs)
    return Counts(sum(one.passed for one in counted), sum(one.n for one in counted))
