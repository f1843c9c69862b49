"""The pass rate that an unchanged task is expected to have: from its baseline, the other tasks and its runs."""

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.baseline import RED_IN_A_ROW
from passgate.tasks.stats.estimators import chance_of_so_few, likeness
from passgate.tasks.stats.regression import ENOUGH

Floats = npt.NDArray[np.float64]

# A task whose newest runs passed so rarely is another one than before, so what it was is nothing to hold it against.
_BY_CHANCE: Final = 0.002
LEAST_TASKS: Final = 5  # With fewer, how much tasks differ is unknown
_STEPS: Final = 4  # Of the weight of the other tasks, so that tests of like tasks are the same test
_DEVIATIONS: Final = 2.0  # Runs drift if they vary by so many standard errors more than their trials do
_DRIFTS: Final = (0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)  # A drift is rounded up to one of these: like `_STEPS`
_FAR: Final = 6.0  # Standard deviations from all other runs at which something has happened to a run
_LEAST_RUNS: Final = 6  # For each run that can be told from the others
_MARGIN: Final = 1.15  # The standard error of a standard deviation of twenty runs is 16 %


class Counts(NamedTuple):
    """Trials, and those of them that passed."""

    passed: float
    n: float


def newest_if_worse(runs: Sequence[Counts]) -> Counts | None:
    """Return the newest runs of a task, which come first, together if they are worse by more than chance."""
    newest, older = (
        Counts(sum(one.passed for one in some), sum(one.n for one in some))
        for some in (runs[:RED_IN_A_ROW], runs[RED_IN_A_ROW:])
    )
    return newest if is_worse(newest, older) else None


def is_worse(newest: Counts, older: Counts) -> bool:
    """Return whether trials pass less often than older ones, by more than chance."""
    if not older.n or newest.passed * older.n >= older.passed * newest.n:
        return False
    good, bad = older.passed + 0.5, older.n - older.passed + 0.5
    return chance_of_so_few(good, bad, int(newest.n), int(newest.passed)) < _BY_CHANCE


class OtherTasks(NamedTuple):
    """What the tasks of a suite say together of each of them."""

    rate: float  # Of all their trials
    weight: float  # Of so many trials
    most: float  # At most this share of a task's own trials

    def pool(self, own: Counts) -> Counts:
        """Return the counts of a task, with as many trials more of the suite's rate as the others tell. Tasks with
        fewer than `ENOUGH` trials stay as they are.
        """
        steps = int(min(self.weight / own.n, self.most) * _STEPS) if own.n >= ENOUGH else 0
        more = own.n * steps / _STEPS
        # Whole failures, so that tests of like tasks are the same test.
        return Counts(own.passed + more - round(more * (1 - self.rate)), own.n + more)


def other_tasks(counts: Sequence[Counts]) -> OtherTasks:
    """Return what the tasks of a suite say of each other. The less their rates differ beyond chance, the more they tell
    (empirical Bayes in the beta-binomial model, as `shrunk_rates`). Of that weight half counts, and never more than a
    task's own trials, so that a task that differs from the others keeps its own rate.
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

    deviation: float = 0.0  # As a standard deviation; 0 where it may be chance
    outliers: tuple[str, ...] = ()  # The runs that are left out because each is far from all others


def drift_between_runs(tasks: Iterable[Mapping[str, Counts]]) -> Drift:
    """Return the drift of some tasks, of each its counts by run. Taken for drift, a few runs that are far from the
    others, as in an outage, would hide every fall for as long as they are in the baseline.
    """
    tables = list(tasks)
    names = sorted({run for counts in tables for run in counts})
    if len(names) < 2:
        return Drift()
    table = np.array([[counts.get(run, Counts(0, 0)) for run in names] for counts in tables], dtype=float)
    passed, n = table[..., 0], table[..., 1]
    deviation, drifts = _spread(passed, n)
    outliers: list[int] = []
    farthest = sorted(range(len(names)), key=lambda run: -abs(_distance(passed, n, run, [run], 0.0)))
    # Two such runs hide each other, so all of them are left out together.
    for count in range(1, len(names) // _LEAST_RUNS + 1):
        if not drifts:
            break
        away = farthest[:count]
        others = _spread(np.delete(passed, away, axis=1), np.delete(n, away, axis=1))
        if all(abs(_distance(passed, n, run, away, others[0])) > _FAR for run in away):
            outliers, (deviation, drifts) = away, others
    wide = deviation * _MARGIN
    drift = next((step for step in _DRIFTS if step >= wide), _DRIFTS[-1]) if drifts else 0.0
    return Drift(drift, tuple(names[run] for run in sorted(outliers)))


def _distance(passed: Floats, n: Floats, run: int, away: Sequence[int], drift: float) -> float:
    """Return how many standard deviations a run is from those that are not `away`, which differ by a drift."""
    others_passed, others = (np.delete(table, away, axis=1).sum(axis=1) for table in (passed, n))
    rates, trials = (others_passed + 0.5) / (others + 1), n[:, run]
    noise = float((trials * rates * (1 - rates) * (1 + trials / (others + 1))).sum())
    deviation = sqrt(noise + (drift * float(trials.sum())) ** 2)
    return float((passed[:, run] - trials * rates).sum()) / deviation if deviation else 0.0


def _spread(passed: Floats, n: Floats) -> tuple[float, bool]:
    """Return the likeliest standard deviation of the runs' pass rates, and whether it is more than chance (analysis of
    variance): where runs drift, the deviations of a run's tasks sum up to more than the noise of its trials.
    """
    whole = n.sum(axis=1, keepdims=True)
    several = whole[:, 0] > 1
    passed, n, whole = passed[several], n[several], whole[several]
    rates = passed.sum(axis=1, keepdims=True) / whole
    off = (passed - n * rates).sum(axis=0)
    noise = (n * rates * (1 - rates) * (1 - n / whole) * whole / (whole - 1)).sum(axis=0)
    if not (noise > 0).all():
        return 0.0, False
    runs, degrees = n.shape[1], n.shape[1] - 1
    spread = float((off**2 / noise).sum()) * degrees / runs
    variance = float((off**2 - noise).sum() / (n.sum(axis=0) ** 2).sum()) * runs / degrees
    is_more = spread > degrees + _DEVIATIONS * sqrt(2 * degrees + float((1 / noise).sum()))
    return sqrt(max(variance, 0.0)), is_more
