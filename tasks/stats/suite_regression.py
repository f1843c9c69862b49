"""Has a whole suite fallen below its baseline? A group-sequential test of its failed trials.

Single tasks may fall by too little to be found while all of them fall. The test counts the failed trials of all tasks
of a suite. If the suite has not changed, each task keeps the pass rate that it has by the baseline (`shrunk_rates`), so
the count is a sum of binomial counts of different rates, whose distribution is computed exactly. How well the baseline
tells the mean of these rates, and how much it differs from run to run, is one Beta distribution of that mean; the
tasks' rates follow it on the scale of the log-odds.

The test looks first after the planned trials. A suite goes on to the next look only when it is among the worst `GO_ON`
that an unchanged one would give, so the cost is bounded by design. It has fallen when its failures are too many for
its share of alpha, which is spent evenly over the looks (Lan and DeMets 1983, Biometrika 70). Otherwise it fits its
baseline.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.estimators import shrunk_rates

LEAST_TASKS: Final = 5  # With fewer there is hardly more to see than in the tasks alone
GO_ON: Final = (0.4, 0.15, 0.08, 0.04, 0.02, 0.01)
_STEP: Final = 3  # Each further look takes a third of the planned trials more
_NODES: Final = 61  # Of the distribution of the mean rate
_WIDTH: Final = 6.0  # Of it, in standard deviations
_SHIFTS: Final = np.linspace(-14.0, 14.0, 281)  # Of the log-odds
_NEAREST: Final = 1e-4  # No rate is nearer to 0 or 1: a task that never failed may fail
_MOST_SPREAD: Final = 0.8

Floats = npt.NDArray[np.float64]


class Member(NamedTuple):
    """A task of the suite: its baseline and its planned trials."""

    passed: int
    n: int
    k: int


@dataclass(frozen=True)
class SuiteRegressionTest:
    """What to conclude from a number of failed trials at each look."""

    looks: int
    fits_below: tuple[int, ...]
    fallen_from: tuple[int, ...]

    def conclude(self, look: int, failed: int) -> Finding:
        """The finding at a look, counted from 0."""
        if failed >= self.fallen_from[look]:
            return Finding.FALLEN
        return Finding.FITS if failed < self.fits_below[look] else Finding.UNFINISHED


def trials_at(look: int, k: int) -> int:
    """How many trials of a task there are at a look, of k planned ones."""
    return k + look * -(-k // _STEP)


@lru_cache(maxsize=256)
def suite_regression_test(members: tuple[Member, ...], *, alpha: float, drift: float, most: int) -> SuiteRegressionTest:
    """The test of a suite of these tasks, none of which gets more than `most` trials; `drift` is the standard deviation
    of the pass rate between whole runs.
    """
    further = sum(all(trials_at(look, one.k) <= most for one in members) for look in range(1, len(GO_ON) + 1))
    # More trials of the same run say nothing of how far it is from other runs.
    looks = 1 if drift else 1 + further
    failing, weights = _failure_rates(members, drift)
    planned = _counts(failing, [one.k for one in members])
    layer = _counts(failing, [trials_at(1, one.k) - one.k for one in members])
    reached = anyhow = weights[:, None] * planned
    fits_below, fallen_from, spent = [], [], 0.0
    for look in range(looks):
        tail = _tail(reached)
        fallen = int(np.argmax(tail <= max(alpha * (look + 1) / looks - spent, 0.0)))
        spent += float(tail[fallen])
        is_last = look == looks - 1
        fits = fallen if is_last else min(int(np.argmax(_tail(anyhow) <= GO_ON[look])), fallen)
        fits_below.append(fits)
        fallen_from.append(fallen)
        if not is_last:
            going_on = np.zeros_like(reached)
            going_on[:, fits:fallen] = reached[:, fits:fallen]
            reached, anyhow = _sums(going_on, layer), _sums(anyhow, layer)
    return SuiteRegressionTest(looks, tuple(fits_below), tuple(fallen_from))


def expected_failures(members: Sequence[Member], trials: Sequence[int]) -> float:
    """How many of so many trials of each task are expected to fail if nothing has changed."""
    return float(np.dot(1 - np.array(_rates(members)), trials))


def _rates(members: Sequence[Member]) -> list[float]:
    return shrunk_rates([(one.passed, one.n) for one in members])


def _failure_rates(members: Sequence[Member], drift: float) -> tuple[Floats, Floats]:
    """The failure rates of the tasks, by the nodes of their mean's distribution, and the nodes' weights."""
    failing = np.clip(1 - np.array(_rates(members)), _NEAREST, 1 - _NEAREST)
    shares = np.array([one.k for one in members], dtype=float)
    shares /= shares.sum()
    mean = float(shares @ failing)
    variance = float((shares**2) @ (failing * (1 - failing) / [one.n for one in members])) + drift**2
    whole = 1 / min(variance / (mean * (1 - mean)), _MOST_SPREAD) - 1
    bad, good = mean * whole, (1 - mean) * whole
    # On the scale of the log-odds the density is proportional to rate^bad (1 - rate)^good.
    odds = np.log(bad / good) + np.linspace(-_WIDTH, _WIDTH, _NODES) / np.sqrt(bad * good / whole)
    logarithms = -bad * np.log1p(np.exp(-odds)) - good * np.log1p(np.exp(odds))
    weights = np.exp(logarithms - logarithms.max())
    own = np.log(failing / (1 - failing))
    means = (1 / (1 + np.exp(-(own[None, :] + _SHIFTS[:, None])))) @ shares
    shifts = np.interp(1 / (1 + np.exp(-odds)), means, _SHIFTS)
    rates: Floats = 1 / (1 + np.exp(-(own[None, :] + shifts[:, None])))
    return rates, weights / weights.sum()


def _counts(failing: Floats, trials: Sequence[int]) -> Floats:
    """The distribution of the failed ones of so many trials of each task, by node: from its characteristic function."""
    size = sum(trials) + 1
    turns = np.exp(-2j * np.pi * np.arange(size) / size) - 1
    product = np.ones((len(failing), size), dtype=complex)
    for task, count in enumerate(trials):
        product *= (1 + failing[:, task, None] * turns) ** count
    chances: Floats = np.clip(np.fft.ifft(product, axis=1).real, 0.0, 1.0)
    return chances


def _sums(one: Floats, other: Floats) -> Floats:
    """The distribution of the sum, by node."""
    size = one.shape[1] + other.shape[1] - 1
    both = np.fft.rfft(one, size, axis=1) * np.fft.rfft(other, size, axis=1)
    chances: Floats = np.clip(np.fft.irfft(both, size, axis=1), 0.0, 1.0)
    return chances


def _tail(chances: Floats) -> Floats:
    """The chance of so many failures or more, over all nodes; 0 behind the last number."""
    total: Floats = np.append(np.cumsum(chances.sum(axis=0)[::-1])[::-1], 0.0)
    # What is left of the rounding of the transforms is no chance.
    total[total < 1e-12] = 0.0
    return total
