"""Has a whole suite fallen below its baseline? A group-sequential test of its failed trials.

Single tasks may fall by too little to be found while all of them fall. The test counts the failed trials of all tasks
of a suite. If the suite has not changed, each task keeps the pass rate that it has by the baseline (`shrunk_rates`), so
the count is a sum of binomial counts of different rates, whose distribution is computed exactly. How well the baseline
tells the mean of these rates, and how much it differs from run to run, is one Beta distribution of that mean; the
tasks' rates follow it on the scale of the log-odds.

The test looks first after the planned trials. It has fallen when its failures are too many for its share of alpha,
which is spent evenly over the looks (Lan and DeMets 1983, Biometrika 70). It fits its baseline when a suite that has
fallen by `FALL` would hardly ever have so few: with a chance of at most `MISSED` by each look (beta spending;
Pampallona, Tsiatis and Kim 2001, Drug Information Journal 35). Two bounds hold beside it: the worst `GO_ON_LEAST` that
an unchanged suite would give always go on, so that smaller falls are found too, and not more than the worst
`GO_ON_MOST` do, so the cost is bounded by design.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.estimators import shrunk_rates

LEAST_TASKS: Final = 5  # With fewer there is hardly more to see than in the tasks alone
FALL: Final = 0.1  # Of the mean pass rate
MISSED: Final = (0.015, 0.018, 0.021, 0.024, 0.027, 0.03)
GO_ON_LEAST: Final = (0.3, 0.12, 0.07, 0.035, 0.02, 0.01)
GO_ON_MOST: Final = (0.6, 0.4, 0.25, 0.15, 0.1, 0.05)
_STEP: Final = 3  # Each further look takes a third of the planned trials more
_NODES: Final = 31  # Of the distribution of the mean rate
_NODES_OF_DRIFT: Final = 61  # Likewise, where it is wide beside what a number of trials varies by chance
_WIDTH: Final = 6.0  # Of it, in standard deviations
_SHIFTS: Final = np.linspace(-14.0, 14.0, 281)  # Of the log-odds
_NEAREST: Final = 1e-4  # No rate is nearer to 0 or 1: a task that never failed may fail
_MOST_SPREAD: Final = 0.8
_NOTHING: Final = 1e-20  # No part of a characteristic function that is smaller matters

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Room = tuple[int, float]  # The most trials of a task, and the most confirming ones as a multiple of the planned ones


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
        """Return the finding at a look, counted from 0."""
        if failed >= self.fallen_from[look]:
            return Finding.FALLEN
        return Finding.FITS if failed < self.fits_below[look] else Finding.UNFINISHED


def trials_at(look: int, k: int) -> int:
    """Return how many trials of a task there are at a look, of k planned ones."""
    return k + look * -(-k // _STEP)


def suite_regression_test(members: Sequence[Member], *, alpha: float, drift: float, room: Room) -> SuiteRegressionTest:
    """Return the test of a suite of these tasks; `drift` is the standard deviation of pass rates between whole runs."""
    # The order of the tasks does not matter: so suites of like tasks have the same test.
    return _test(tuple(sorted(members)), alpha, drift, room)


@lru_cache(maxsize=4096)
def _test(members: tuple[Member, ...], alpha: float, drift: float, room: Room) -> SuiteRegressionTest:
    # More trials of the same run say nothing of how far it is from other runs.
    looks = 1 if drift else _most_looks(members, room)
    failing, weights = _failure_rates(members, drift)
    spectrum, layer_spectrum = _spectra(members, failing, looks)
    sizes = [_all_trials_at(look, members) + 1 for look in range(looks + 1)]
    # By the nodes of the mean rate, and in the last row of a suite that has fallen, how many trials fail: of those that
    # go on to a look, and of the trials that a further look adds.
    reached, layer = _chances(spectrum, sizes[0]), _chances(layer_spectrum, sizes[1] - sizes[0] + 1)
    first, spent, missed = 0, 0.0, 0.0
    fits_below, fallen_from = [], []
    for look in range(looks):
        tail = _tail(weights @ reached[:-1])
        beyond = int(np.argmax(tail <= max(alpha * (look + 1) / looks - spent, 0.0)))
        spent += float(tail[beyond])
        fallen = fits = first + beyond
        if look < looks - 1:
            cleared = np.cumsum(reached[-1])
            few = first + int(np.searchsorted(cleared, MISSED[look] - missed, side="right"))
            # Of all unchanged suites, whatever the looks before have said.
            anyhow = _tail(_chances(weights @ spectrum[:-1], sizes[look]))
            few = min(max(few, int(np.argmax(anyhow <= GO_ON_MOST[look]))), int(np.argmax(anyhow <= GO_ON_LEAST[look])))
            fits = min(few, fallen)
            begin = max(fits - first, 0)
            missed += float(cleared[begin - 1]) if begin else 0.0
            # The distribution of the sum with the trials that the look adds, by node.
            size = reached[:, begin:beyond].shape[1] + layer.shape[1] - 1
            both = (np.fft.rfft(one, _transform_size(size), axis=1) for one in (reached[:, begin:beyond], layer))
            reached, first = _chances(np.multiply(*both), size), max(fits, first)
            spectrum = _drop_least(spectrum * layer_spectrum)
        fits_below.append(fits)
        fallen_from.append(fallen)
    return SuiteRegressionTest(looks, tuple(fits_below), tuple(fallen_from))


def _most_looks(members: tuple[Member, ...], room: Room) -> int:
    most, share = room
    planned, longest = _all_trials_at(0, members), max(one.k for one in members)
    return 1 + sum(
        trials_at(look, longest) <= most and _all_trials_at(look, members) <= (1 + share) * planned
        for look in range(1, len(MISSED) + 1)
    )


def _all_trials_at(look: int, members: Sequence[Member]) -> int:
    return sum(trials_at(look, one.k) for one in members)


def expected_failures(members: Sequence[Member], trials: Sequence[int]) -> float:
    """Return how many of so many trials of each task are expected to fail if nothing has changed."""
    return float(np.dot(1 - np.array(shrunk_rates([(one.passed, one.n) for one in members])), trials))


def _failure_rates(members: Sequence[Member], drift: float) -> tuple[Floats, Floats]:
    """Return the failure rates of the tasks, by the nodes of their mean's distribution and of a suite that has fallen
    by `FALL`, and the nodes' weights.
    """
    rates = np.array(shrunk_rates([(one.passed, one.n) for one in members]))
    failing = np.clip(1 - rates, _NEAREST, 1 - _NEAREST)
    shares = np.array([one.k for one in members], dtype=float)
    shares /= shares.sum()
    mean = float(shares @ failing)
    variance = float((shares**2) @ (failing * (1 - failing) / [one.n for one in members])) + drift**2
    whole = 1 / min(variance / (mean * (1 - mean)), _MOST_SPREAD) - 1
    bad, good = mean * whole, (1 - mean) * whole
    # On the scale of the log-odds the density is proportional to rate^bad (1 - rate)^good.
    deviations = np.linspace(-_WIDTH, _WIDTH, _NODES_OF_DRIFT if drift else _NODES)
    odds = np.log(bad / good) + deviations / np.sqrt(bad * good / whole)
    logarithms = -bad * np.log1p(np.exp(-odds)) - good * np.log1p(np.exp(odds))
    weights = np.exp(logarithms - logarithms.max())
    own = np.log(failing / (1 - failing))
    means = (1 / (1 + np.exp(-(own[None, :] + _SHIFTS[:, None])))) @ shares
    shifts = np.interp([*(1 / (1 + np.exp(-odds))), min(mean + FALL, 1 - _NEAREST)], means, _SHIFTS)
    return 1 / (1 + np.exp(-(own[None, :] + shifts[:, None]))), weights / weights.sum()


def _spectra(members: Sequence[Member], failing: Floats, looks: int) -> tuple[Complexes, Complexes]:
    """Return the characteristic functions of the failed trials, by node: of planned ones, and of each further look."""
    size = _transform_size(_all_trials_at(looks - 1, members) + 1)
    turns = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size) - 1
    planned, layer = (np.ones((len(failing), len(turns)), dtype=complex) for _ in range(2))
    columns = {one: place for place, one in enumerate(members)}
    alike = Counter(members)
    for k in {one.k for one in members}:
        of_one_trial = np.ones_like(planned)
        for one, tasks in alike.items():
            if one.k == k:
                of_one_trial *= _power(1 + failing[:, columns[one], None] * turns, tasks)
        of_one_trial = _drop_least(of_one_trial)
        planned *= _power(of_one_trial, k)
        layer *= _power(of_one_trial, trials_at(1, k) - k)
    return _drop_least(planned), _drop_least(layer)


def _drop_least(spectrum: Complexes) -> Complexes:
    """Set what does not matter to 0: products of very small numbers take a hundred times longer."""
    return np.where(np.abs(spectrum) < _NOTHING, 0.0, spectrum)


def _power(base: Complexes, exponent: int) -> Complexes:
    """Return the power by products: powers of complex numbers take ten times longer."""
    return np.asarray(reduce(np.multiply, [base] * exponent))


def _chances(spectrum: Complexes, size: int) -> Floats:
    """Return the distribution of a number below `size`, from its characteristic function."""
    return np.asarray(np.clip(np.fft.irfft(spectrum)[..., :size], 0.0, 1.0))


def _transform_size(size: int) -> int:
    """Return the next power of two: transforms of such sizes are fast."""
    return max(2, 1 << (size - 1).bit_length())


def _tail(chances: Floats) -> Floats:
    """Return the chance of so many failures or more; 0 behind the last number."""
    total: Floats = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
    # What is left of the rounding of the transforms is no chance.
    total[total < 1e-12] = 0.0
    return total
