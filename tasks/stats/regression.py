"""Has a task fallen below its baseline? A sequential test that spends a few trials and keeps both of its risks.

A task that fails its first k trials gets further trials until the test decides between two hypotheses:

- unchanged: the task passes as often as at the baseline. The baseline's c passes in n trials do not tell the pass rate
  exactly, so it is drawn from Beta(c + 1/2, n - c + 1/2), Jeffreys' posterior, widened by the drift of whole runs. With
  fewer than `ENOUGH` trials it is drawn from Beta(c, n - c + 1), the choice that protects the agent: with a single look
  the test is then Fisher's exact test.
- fallen: the pass rate is at most `fallen_share` of the baseline's; any such rate is as likely as another.

Of all stopping rules the test is the one that costs least (Wald and Wolfowitz 1948; Arrow, Blackwell and Girshick
1949): the fewest trials of an unchanged task, plus a price for blocking it, plus a price for clearing a fallen one. It
is computed backwards from the last trial (dynamic programming). The two prices are the smallest with which the test
keeps its risks:

- it blocks an unchanged task with a chance of at most `alpha`, the first k trials included;
- of fallen tasks that failed at first, it clears a share of at most `MISSED`.

The prices have an upper end. With `ENOUGH` trials at the baseline a task whose fall is not shown fits it. With
fewer the test is undecided when its trials are spent. docs/statistics.md has its figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.estimators import chance_of_so_few
from passgate.tasks.stats.stopping_rules import (
    Booleans,
    Floats,
    Region,
    at_baseline,
    at_rate,
    clear_unprovable,
    drop_hopeless,
    operate,
    smallest,
    solve,
)

Integers = npt.NDArray[np.int64]

ENOUGH = 20  # From so many baseline trials on a task is held against its own rate, whatever that is
FALL = 0.75  # A steady task counts as fallen when its pass rate is at most this share of the baseline's
STEADY = 0.9  # The pass rate from which a task is steady
DEEP_FALL = 0.5  # The same share for a task that is not: it takes too many trials to tell less
MISSED = 0.05  # The largest share of fallen tasks, among those that failed at first, that may be cleared

# How far a task may have fallen, as shares of the highest rate that counts as fallen.
_GUESSES = (1.0, 0.75, 0.5, 0.25, 0.0)
_DEAREST_BLOCK = 1e12  # The upper end of the price of a block, in trials
# The upper ends of the price of a miss. With a thin baseline the test has to go on for long to clear a task.
_DEAREST_MISS, _DEAREST_MISS_THIN = 100.0, 1e3
# Where nothing has to clear it, only deep falls are worth trials: a fall to 0 shows from two runs of three trials on.
_CHEAPEST_MISS, _MISS_YOUNG = 1.0, 10.0
# A drift beyond this share of what a pass rate can vary would leave a distribution without a middle.
_MOST_SPREAD = 0.8


class Course(NamedTuple):
    """What a test found, after how many trials, and how many of these failed."""

    finding: Finding
    n: int
    failed: int


class _Findings(NamedTuple):
    """What a test says after each number of trials and failures; undecided where all three are false."""

    fits: Booleans
    going_on: Booleans
    fallen: Booleans


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
        """Return the finding from `failed` failures in n trials. Raises `ValueError` for fewer than k trials."""
        if not 0 <= failed <= n or n < self.k:
            raise ValueError("needs k <= n and 0 <= failed <= n")
        look = min(n, self.most) - self.k
        if failed < self.fits_below[look]:
            return Finding.FITS
        if failed >= self.fallen_from[look]:
            return Finding.FALLEN
        return Finding.UNFINISHED if failed < self.open_below[look] else Finding.UNDECIDED

    def follow(self, passed: Sequence[bool]) -> Course:
        """Return where the test ended, or how far it is, on trials in their order, each of which passed or not. Trials
        after its end do not count, so that several may run at once and the test stays the same. Raises `ValueError` for
        fewer than k.
        """
        failures = 0 if len(passed) < self.k else self.k - sum(passed[: self.k])
        for n in range(self.k, len(passed) + 1):
            finding = self.conclude(n, failures)
            if finding is not Finding.UNFINISHED or n == len(passed):
                return Course(finding, n, failures)
            failures += not passed[n]
        raise ValueError(f"needs {self.k} trials")

    def next_trials(self, n: int, failed: int) -> int:
        """Return how many more trials to run at once; 0 when the test has ended.

        It is the number that ends the test if all of them pass, so that an unchanged task hardly ever wastes one. Where
        most trials have failed so far, it is the number that ends the test if all of them fail. An unsteady task may
        need many of these while one pass would clear it, so there a round is at most half of what has been run.
        """
        if self.conclude(n, failed) is not Finding.UNFINISHED:
            return 0
        return int(self.round_ends[n - self.k, failed]) - n

    @cached_property
    def findings(self) -> _Findings:
        """Return where the test ends, and how: a row per number of trials from k on, a column per failures."""
        failed = np.arange(self.most + 1)
        fits, going_on, fallen = (
            np.array(bounds)[:, None] for bounds in (self.fits_below, self.open_below, self.fallen_from)
        )
        return _Findings(failed < fits, (failed >= fits) & (failed < np.minimum(going_on, fallen)), failed >= fallen)

    @cached_property
    def round_ends(self) -> Integers:
        """In the same places, how many trials there are when the next round has run: no more where it has ended."""
        trials, failed = np.arange(self.k, self.most + 1)[:, None], np.arange(self.most + 1)
        if_passing, if_failing = (np.tile(trials, len(failed)) for _ in range(2))
        for look in range(len(trials) - 2, -1, -1):
            here = self.findings.going_on[look]
            if_passing[look, here] = if_passing[look + 1, here]
            if_failing[look, :-1][here[:-1]] = if_failing[look + 1, 1:][here[:-1]]
        bounded = np.minimum(if_failing, np.maximum(if_passing, trials + -(-trials // 2)))
        return np.where(2 * failed > trials, bounded, if_passing)


class Before(NamedTuple):
    """What the baseline says of a task's pass rate."""

    passed: float
    n: float
    drift: float = 0.0  # The standard deviation of the pass rate between whole runs
    must_clear: bool = True  # Of a thin baseline: whether an undecided task blocks, so that its trials have to clear it

    @property
    def is_thin(self) -> bool:
        return self.n < ENOUGH

    @property
    def fallen_rate(self) -> float:
        """Return the highest pass rate that counts as fallen."""
        rate = self.passed / self.n
        return rate * (FALL if self.is_thin else fallen_share(rate))

    def chance_of_so_few(self, outcomes: Sequence[bool]) -> float:
        """Return the chance that of so many trials of an unchanged task so few pass."""
        return chance_of_so_few(*self.unchanged(), len(outcomes), sum(outcomes))

    def unchanged(self) -> tuple[float, float]:
        """Return the two parameters of the Beta distribution of the pass rate of a task that has not changed."""
        if self.is_thin:
            return self.passed, self.n - self.passed + 1
        good, bad = self.passed + 0.5, self.n - self.passed + 0.5
        mean, whole = good / (good + bad), good + bad
        share = min(1 / (whole + 1) + self.drift**2 / (mean * (1 - mean)), _MOST_SPREAD) if self.drift else 0.0
        # The variance of a Beta distribution is mean (1 - mean) / (whole + 1).
        scale = (1 / share - 1) / whole if share else 1.0
        return good * scale, bad * scale


def fallen_share(rate: float) -> float:
    """Return the share of its pass rate that a task may keep to count as fallen."""
    return FALL if rate >= STEADY else DEEP_FALL


@lru_cache(maxsize=64)
def tests_of_tasks(
    baselines: tuple[Before, ...], *, k: int, red_from: int, most: int, alpha: float
) -> Mapping[Before, RegressionTest]:
    """Return the test of each task of a run, made together. See `regression_tests`."""
    made = regression_tests(baselines, [alpha] * len(baselines), k=k, red_from=red_from, most=most)
    return dict(zip(baselines, made, strict=True))


def regression_tests(
    baselines: Sequence[Before], alphas: Sequence[float], *, k: int, red_from: int, most: int
) -> list[RegressionTest]:
    """Return the tests of many tasks, each with its own baseline and alpha, in a fraction of the time that they take
    one by one.

    `red_from` is the number of failures among the first k trials from which a task is red: 1 under the AND rule, k
    under the OR rule. `most` is the number of trials at which a test ends, the first k included; fewer than k are k.
    `alpha` is the chance of blocking an unchanged task. Raise `ValueError` unless 0 < passed <= n.
    """
    if not all(0 < before.passed <= before.n for before in baselines):
        raise ValueError("needs 0 < passed <= n: a baseline that never passed cannot be fallen below")
    made: dict[int, RegressionTest] = {}
    thin = [place for place, before in enumerate(baselines) if before.is_thin]
    young = [place for place in thin if not baselines[place].must_clear]
    for places, cheapest, dearest, ended in (
        (young, _MISS_YOUNG, _MISS_YOUNG, drop_hopeless),
        (sorted({*thin} - {*young}), _CHEAPEST_MISS, _DEAREST_MISS_THIN, drop_hopeless),
        (sorted({*range(len(baselines))} - {*thin}), _CHEAPEST_MISS, _DEAREST_MISS, clear_unprovable),
    ):
        if places:
            problem = _Problem.of([baselines[place] for place in places], [alphas[place] for place in places], most, k)
            regions = ended(problem.solved(red_from, cheapest, dearest), problem.unchanged, problem.fallen, k)
            made |= zip(places, _tests(regions, k), strict=True)
    return [made[place] for place in range(len(baselines))]


def _tests(regions: list[Region], k: int) -> list[RegressionTest]:
    return [
        RegressionTest(
            k=k,
            most=k + len(regions) - 1,
            fits_below=tuple(int(region.fits[test, 0].sum()) for region in regions),
            open_below=tuple(int((region.fits | region.going_on)[test, 0].sum()) for region in regions),
            fallen_from=tuple(region.fallen.shape[-1] - int(region.fallen[test, 0].sum()) for region in regions),
        )
        for test in range(len(regions[0].fits))
    ]


@dataclass(frozen=True)
class _Problem:
    """Many tests, as the chances of sequences of trials under their hypotheses."""

    k: int
    unchanged: Floats
    fallen: Floats
    least_fall: Floats
    fallen_rates: Sequence[float]
    alphas: Floats

    @classmethod
    def of(cls, baselines: Sequence[Before], alphas: Sequence[float], most: int, k: int) -> "_Problem":
        most, rates = max(most, k), [before.fallen_rate for before in baselines]
        return cls(
            k=k,
            unchanged=np.stack([at_baseline(*before.unchanged(), most) for before in baselines]),
            fallen=np.stack([np.mean([at_rate(rate * guess, most) for guess in _GUESSES], axis=0) for rate in rates]),
            least_fall=np.stack([at_rate(rate, most) for rate in rates]),
            fallen_rates=rates,
            alphas=np.array(alphas)[:, None],
        )

    def solved(self, red_from: int, cheapest: float, dearest: float) -> list[Region]:
        """Return the rules with the smallest prices, of a miss from `cheapest` to `dearest`, that keep both risks."""
        k, count = self.k, len(self.fallen_rates)
        red = np.array(
            [
                sum(comb(k, bad) * (1 - rate) ** bad * rate ** (k - bad) for bad in range(red_from, k + 1))
                for rate in self.fallen_rates
            ]
        )

        def with_miss(miss: Floats) -> list[Region]:
            def keeps_alpha(block: Floats) -> Booleans:
                regions = solve(self.unchanged, self.fallen, k, red_from, block=block, miss=miss)
                kept: Booleans = operate(regions, self.unchanged, k).fallen <= self.alphas
                return kept

            # Eight sections at once four times over take fewer passes over the trials than twelve halvings.
            block = smallest(keeps_alpha, 1e-2, _DEAREST_BLOCK, count, sections=8, rounds=4)
            return solve(self.unchanged, self.fallen, k, red_from, block=block, miss=miss)

        def misses_few(miss: Floats) -> Booleans:
            cleared = operate(with_miss(miss), self.least_fall, k).fits[:, 0] - (1 - red)
            few: Booleans = (cleared <= MISSED * red)[:, None]
            return few

        if cheapest == dearest:
            return with_miss(np.full((count, 1), dearest))
        return with_miss(smallest(misses_few, cheapest, dearest, count, sections=2, rounds=6))
