"""Has a task fallen below its baseline? A sequential test that spends a few trials and keeps both of its risks.

A task that fails its first k trials gets further trials until the test decides between two hypotheses:

- unchanged: the task passes as often as at the baseline. The baseline's c passes in n trials do not tell the pass rate
  exactly, so it is drawn from Beta(c, n - c + 1), the choice that protects the agent: with a single look the test is
  Fisher's exact test.
- fallen: the pass rate is at most `FALL` of the baseline's; any such rate is as likely as another.

Of all stopping rules the test is the one that costs least (Wald and Wolfowitz 1948; Arrow, Blackwell and Girshick
1949): the fewest trials of an unchanged task, plus a price for blocking it, plus a price for clearing a fallen one. It
is computed backwards from the last trial (dynamic programming). The two prices are the smallest with which the test
keeps its risks:

- it blocks an unchanged task with a chance of at most `alpha`, the first k trials included;
- of fallen tasks that failed at first, it clears a share of at most `MISSED`.

The prices have an upper end. Where the baseline is too thin to tell the two hypotheses apart, the test is undecided
when its trials are spent. docs/statistics.md has its figures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, lgamma
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.verdict import Finding

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

FALL = 0.75  # A task counts as fallen when its pass rate is at most this share of the baseline's
MISSED = 0.05  # The largest share of fallen tasks, among those that failed at first, that may be cleared

# How far a task may have fallen, as shares of the highest rate that counts as fallen.
_GUESSES = (1.0, 0.75, 0.5, 0.25, 0.0)
# Ending undecided costs this share of both errors. So it is chosen where neither error costs ten times the other.
_HALF_SURE = 0.1
# The test ends when an unchanged task has a smaller chance than this to be cleared, and a fallen one to be blocked:
# nobody pays for more trials then.
_HOPE = 0.02
# The upper ends of both prices, in trials. Nobody pays more than a thousand trials for not missing a fall.
_DEAREST_BLOCK, _DEAREST_MISS = 1e12, 1e3


class Course(NamedTuple):
    """What a test found, after how many trials, and how many of these failed."""

    finding: Finding
    n: int
    failed: int


@dataclass(frozen=True)
class Operation:
    """What the test does with a task of a given pass rate: the chance of each finding, which sum to 1, and the expected
    number of trials, the first k included. `fits` includes tasks that pass at once.
    """

    fallen: float
    fits: float
    undecided: float
    trials: float


@dataclass(frozen=True)
class RegressionTest:
    """The test of one task: what to conclude from a number of failures in a number of trials."""

    k: int
    most: int
    fits_below: tuple[int, ...]  # Per number of trials from k to `most`: with fewer failures the task fits its baseline
    open_below: tuple[int, ...]
    """Likewise: with fewer failures further trials may decide; with more they are not worth it."""
    fallen_from: tuple[int, ...]  # Likewise: with this many failures or more the task has fallen

    def conclude(self, n: int, failed: int) -> Finding:
        """The finding from `failed` failures in n trials. Raises `ValueError` for fewer than k trials."""
        if not 0 <= failed <= n or n < self.k:
            raise ValueError("needs k <= n and 0 <= failed <= n")
        look = min(n, self.most) - self.k
        if failed < self.fits_below[look]:
            return Finding.FITS
        if failed >= self.fallen_from[look]:
            return Finding.FALLEN
        return Finding.UNFINISHED if failed < self.open_below[look] else Finding.UNDECIDED

    def follow(self, passed: Sequence[bool]) -> Course:
        """Where the test ended, or how far it is, on trials in their order, each of which passed or not. Trials after
        its end do not count, so that several may run at once and the test stays the same. Raises `ValueError` for fewer
        than k.
        """
        failures = 0 if len(passed) < self.k else self.k - sum(passed[: self.k])
        for n in range(self.k, len(passed) + 1):
            finding = self.conclude(n, failures)
            if finding is not Finding.UNFINISHED or n == len(passed):
                return Course(finding, n, failures)
            failures += not passed[n]
        raise ValueError(f"needs {self.k} trials")

    def next_trials(self, n: int, failed: int) -> int:
        """How many more trials to run at once; 0 when the test has ended.

        It is the number that ends the test if all of them pass, so that an unchanged task hardly ever wastes one. Where
        most trials have failed so far, it is the number that ends the test if all of them fail.
        """
        finding, more, failing = self.conclude(n, failed), 0, 2 * failed > n
        while finding is Finding.UNFINISHED:
            more += 1
            finding = self.conclude(n + more, failed + more * failing)
        return more

    def operation(self, pass_rate: float) -> Operation:
        """Exactly what the test does with a task of this pass rate."""
        regions = []
        for look, n in enumerate(range(self.k, self.most + 1)):
            failed = np.arange(n + 1)
            fits = failed < self.fits_below[look]
            going_on = ~fits & (failed < self.open_below[look])
            regions.append(_Region(fits=fits, going_on=going_on, fallen=failed >= self.fallen_from[look]))
        return Operation(*map(float, _operate(regions, _at_rate(pass_rate, self.most), self.k)))


@lru_cache(maxsize=4096)
def regression_test(passed: int, n: int, *, k: int, red_from: int, most: int, alpha: float) -> RegressionTest:
    """The test of a task against `passed` of `n` trials at the baseline.

    `red_from` is the number of failures among the first k trials from which the task is red: 1 under the AND rule, k
    under the OR rule. `most` is the number of trials at which the test ends, the first k included; fewer than k are
    k. `alpha` is the chance of blocking an unchanged task. Raises `ValueError` unless 0 < passed <= n.
    """
    (test,) = regression_tests([(passed, n)], [alpha], k=k, red_from=red_from, most=most)
    return test


def regression_tests(
    baselines: Sequence[tuple[int, int]], alphas: Sequence[float], *, k: int, red_from: int, most: int
) -> list[RegressionTest]:
    """The tests of many tasks, each with its own (passed, n) and alpha, in a fraction of the time that they take one by
    one. Raises `ValueError` as `regression_test`.
    """
    if not all(0 < passed <= n for passed, n in baselines):
        raise ValueError("needs 0 < passed <= n: a baseline that never passed cannot be fallen below")
    if not baselines:
        return []
    most = max(most, k)
    highest = [FALL * passed / n for passed, n in baselines]
    unchanged = np.stack([_at_baseline(passed, n, most) for passed, n in baselines])
    fallen = np.stack([np.mean([_at_rate(rate * guess, most) for guess in _GUESSES], axis=0) for rate in highest])
    least_fall = np.stack([_at_rate(rate, most) for rate in highest])
    red = np.array(
        [
            sum(comb(k, bad) * (1 - rate) ** bad * rate ** (k - bad) for bad in range(red_from, k + 1))
            for rate in highest
        ]
    )
    allowed = np.array(alphas)[:, None]

    def solved(miss: Floats) -> list[_Region]:
        """The rules with the smallest price of a block that keeps alpha."""

        def keeps_alpha(block: Floats) -> Booleans:
            regions = _solve(unchanged, fallen, k, red_from, block=block, miss=miss)
            kept: Booleans = _operate(regions, unchanged, k).fallen <= allowed
            return kept

        # Eight sections at once six times over take fewer passes over the trials than eighteen halvings.
        block = _smallest(keeps_alpha, 1e-2, _DEAREST_BLOCK, len(baselines), sections=8, rounds=6)
        return _solve(unchanged, fallen, k, red_from, block=block, miss=miss)

    def misses_few(miss: Floats) -> Booleans:
        cleared = _operate(solved(miss), least_fall, k).fits[:, 0] - (1 - red)
        few: Booleans = (cleared <= MISSED * red)[:, None]
        return few

    miss = _smallest(misses_few, 1.0, _DEAREST_MISS, len(baselines), sections=2, rounds=10)
    regions = _without_hope(solved(miss), unchanged, fallen, k)
    return [
        RegressionTest(
            k=k,
            most=most,
            fits_below=tuple(int(region.fits[test, 0].sum()) for region in regions),
            open_below=tuple(int((region.fits | region.going_on)[test, 0].sum()) for region in regions),
            fallen_from=tuple(region.fallen.shape[-1] - int(region.fallen[test, 0].sum()) for region in regions),
        )
        for test in range(len(baselines))
    ]


class _Region(NamedTuple):
    """What the test says after a number of trials, by failures (the last axis); undecided where all three are false.
    The other axes, where there are any, are tests and prices.
    """

    fits: Booleans
    going_on: Booleans
    fallen: Booleans


class _Chances(NamedTuple):
    """`Operation` of many tests at once."""

    fallen: Floats
    fits: Floats
    undecided: Floats
    trials: Floats


def _at_baseline(passed: int, n: int, most: int) -> Floats:
    """The chance of one sequence of trials, by its length and failures, when the pass rate is that of the baseline."""
    good, bad = passed, n - passed + 1
    # By logarithms: the gamma functions themselves overflow from about 170 trials on.
    whole = _log_beta(good, bad)
    table = np.zeros((most + 1, most + 1))
    for length in range(most + 1):
        for failed in range(length + 1):
            table[length, failed] = np.exp(_log_beta(good + length - failed, bad + failed) - whole)
    return table


def _at_rate(pass_rate: float, most: int) -> Floats:
    """The chance of one sequence of trials, by its length and failures, at a known pass rate."""
    lengths, failed = np.arange(most + 1)[:, None], np.arange(most + 1)[None, :]
    passed = np.maximum(lengths - failed, 0)
    chances: Floats = np.where(failed <= lengths, pass_rate**passed * (1 - pass_rate) ** failed, 0.0)
    return chances


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _solve(unchanged: Floats, fallen: Floats, k: int, red_from: int, *, block: Floats, miss: Floats) -> list[_Region]:
    """The cheapest rule of each test at each of its prices: where it ends, per number of trials.

    Costs are those of single sequences of trials, so that the cost of one is the sum of its two continuations.
    """
    most = unchanged.shape[-1] - 1
    block, miss = block[..., None], miss[..., None]
    regions: list[_Region] = []
    later: Floats = np.zeros(0)
    for n in range(most, k - 1, -1):
        if_unchanged, if_fallen = unchanged[:, None, n, : n + 1], fallen[:, None, n, : n + 1]
        blocked, cleared = block * if_unchanged, miss * if_fallen
        at_the_end = n == most
        neither = _HALF_SURE * (blocked + cleared) if at_the_end else if_unchanged + later[..., :-1] + later[..., 1:]
        ends, blocks = neither >= np.minimum(blocked, cleared), blocked < cleared
        fits = ends & ~blocks
        if n == k:  # a task that passes its first k trials gets no further ones
            fits[..., :red_from] = True
        # More failures never speak for the task: no `fits` above the first other answer, and only `fallen` from the
        # point on from which all answers are `fallen`.
        first = np.logical_and.accumulate(fits, axis=-1)
        last = _held_above(ends & blocks & ~fits)
        region = _Region(fits=first, going_on=~first & ~last & (not at_the_end), fallen=last)
        later = np.where(region.fits, cleared, np.where(region.fallen, blocked, neither))
        regions.append(region)
    return regions[::-1]


def _without_hope(regions: list[_Region], unchanged: Floats, fallen: Floats, k: int) -> list[_Region]:
    """The regions, undecided at once where going on has hardly a chance to end in either answer."""
    pruned = [regions[-1]]
    most = k + len(regions) - 1
    cleared = np.where(regions[-1].fits, unchanged[:, None, most, : most + 1], 0.0)
    blocked = np.where(regions[-1].fallen, fallen[:, None, most, : most + 1], 0.0)
    for look in range(len(regions) - 2, -1, -1):
        n, region = k + look, regions[look]
        if_unchanged, if_fallen = unchanged[:, None, n, : n + 1], fallen[:, None, n, : n + 1]
        later_cleared, later_blocked = (
            np.where(region.going_on, chance[..., :-1] + chance[..., 1:], 0.0) for chance in (cleared, blocked)
        )
        cleared = np.where(region.fits, if_unchanged, later_cleared)
        blocked = np.where(region.fallen, if_fallen, later_blocked)
        hope = (cleared > _HOPE * if_unchanged) | (blocked > _HOPE * if_fallen)
        going_on = np.logical_and.accumulate(region.fits | (region.going_on & hope), axis=-1) & ~region.fits
        pruned.append(region._replace(going_on=going_on))
    return pruned[::-1]


def _operate(regions: list[_Region], chances: Floats, k: int) -> _Chances:
    """Follow every course that the trials may take.

    `chances` are those of one sequence, by its length and failures: of one test, or of many along a first axis.
    """
    # The number of sequences that lead to each number of failures without an end before.
    ways: Floats = np.array([comb(k, failed) for failed in range(k + 1)], dtype=float)
    fallen, fits, undecided, trials = (np.zeros(regions[0].fits.shape[:-1]) for _ in range(4))
    for look, region in enumerate(regions):
        n = k + look
        one = chances[..., n, : n + 1]
        here = ways * (one[:, None] if chances.ndim > 2 else one)
        ends = ~region.going_on
        fallen += np.sum(here * region.fallen, axis=-1)
        fits += np.sum(here * region.fits, axis=-1)
        undecided += np.sum(here * (ends & ~region.fallen & ~region.fits), axis=-1)
        trials += n * np.sum(here * ends, axis=-1)
        live = np.where(region.going_on, ways, 0.0)
        ways = np.zeros((*live.shape[:-1], n + 2))
        ways[..., :-1] = live
        ways[..., 1:] += live
    return _Chances(fallen, fits, undecided, trials)


def _smallest(
    holds: Callable[[Floats], Booleans], low: float, high: float, tests: int, *, sections: int, rounds: int
) -> Floats:
    """About the smallest value between `low` and `high` from which on `holds` is true; `high` where it never is.

    For many tests at once: `holds` has tests along the first axis and values along the second.
    """
    logarithms = np.full((tests, 1), np.log(low))
    width = np.log(high / low)
    for _ in range(rounds):
        width /= sections
        held = _held_above(holds(np.exp(logarithms + width * np.arange(1, sections))))
        # On to the section below the values that all hold.
        logarithms = logarithms + width * (sections - 1 - np.sum(held, axis=-1, keepdims=True))
    largest: Floats = np.exp(logarithms + width)
    return largest


def _held_above(held: Booleans) -> Booleans:
    """Where it holds for a position and for all later ones."""
    above: Booleans = np.logical_and.accumulate(held[..., ::-1], axis=-1)[..., ::-1]
    return above
