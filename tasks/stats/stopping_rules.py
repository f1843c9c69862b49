"""Rules that say after how many trials and failures a test ends, and how: the cheapest ones, for many tests at once.

A rule is computed backwards from its last trial (dynamic programming), from the chances of sequences of trials under
two hypotheses and the prices of both errors.
"""

from collections.abc import Callable
from math import comb, lgamma
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

# Ending undecided costs this share of both errors. So it is chosen where neither error costs ten times the other.
_HALF_SURE = 0.1
# The test ends when an unchanged task has a smaller chance than this to be cleared, and a fallen one to be blocked:
# nobody pays for more trials then.
HOPE = 0.02


class Region(NamedTuple):
    """What the test says after a number of trials, by failures (the last axis); undecided where all three are false.
    The other axes, where there are any, are tests and prices.
    """

    fits: Booleans
    going_on: Booleans
    fallen: Booleans


class Chances(NamedTuple):
    """The chance of each end, and the expected number of trials, of many tests at once."""

    fallen: Floats
    fits: Floats
    undecided: Floats
    trials: Floats


def at_baseline(good: float, bad: float, most: int) -> Floats:
    """Return the chance of one sequence of trials, by length and failures, when the pass rate is drawn from a Beta."""
    # By logarithms: the gamma functions themselves overflow from about 170 trials on.
    of_good, of_bad, of_both = (
        np.array([lgamma(one + more) for more in range(most + 1)]) for one in (good, bad, good + bad)
    )
    lengths, failed = np.arange(most + 1)[:, None], np.arange(most + 1)[None, :]
    logarithms = of_good[np.maximum(lengths - failed, 0)] + of_bad[failed] - of_both[lengths]
    whole = of_good[0] + of_bad[0] - of_both[0]
    table: Floats = np.where(failed <= lengths, np.exp(np.minimum(logarithms - whole, 0.0)), 0.0)
    return table


def at_rate(pass_rate: float, most: int) -> Floats:
    """Return the chance of one sequence of trials, by its length and failures, at a known pass rate."""
    lengths, failed = np.arange(most + 1)[:, None], np.arange(most + 1)[None, :]
    passed = np.maximum(lengths - failed, 0)
    chances: Floats = np.where(failed <= lengths, pass_rate**passed * (1 - pass_rate) ** failed, 0.0)
    return chances


def solve(unchanged: Floats, fallen: Floats, k: int, red_from: int, *, block: Floats, miss: Floats) -> list[Region]:
    """Return the cheapest rule of each test at each of its prices: where it ends, per number of trials.

    Costs are those of single sequences of trials, so that the cost of one is the sum of its two continuations.
    """
    most = unchanged.shape[-1] - 1
    block, miss = block[..., None], miss[..., None]
    regions: list[Region] = []
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
        region = Region(fits=first, going_on=~first & ~last & (not at_the_end), fallen=last)
        later = np.where(region.fits, cleared, np.where(region.fallen, blocked, neither))
        regions.append(region)
    return regions[::-1]


def drop_hopeless(regions: list[Region], unchanged: Floats, fallen: Floats, k: int) -> list[Region]:
    """Return the regions, undecided at once where going on has hardly a chance to end in either answer."""
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
        hope = (cleared > HOPE * if_unchanged) | (blocked > HOPE * if_fallen)
        going_on = np.logical_and.accumulate(region.fits | (region.going_on & hope), axis=-1) & ~region.fits
        pruned.append(region._replace(going_on=going_on))
    return pruned[::-1]


def clear_unprovable(regions: list[Region], unchanged: Floats, fallen: Floats, k: int) -> list[Region]:
    """Return the regions, cleared where going on has hardly a chance to show a fall: what is not shown fits the
    baseline.
    """
    del unchanged  # as `drop_hopeless`, which asks for both
    last = regions[-1]
    pruned, most = [last._replace(fits=~last.fallen)], k + len(regions) - 1
    blocked = np.where(last.fallen, fallen[:, None, most, : most + 1], 0.0)
    for look in range(len(regions) - 2, -1, -1):
        n, region = k + look, regions[look]
        if_fallen, later = fallen[:, None, n, : n + 1], blocked[..., :-1] + blocked[..., 1:]
        hopeless = region.going_on & (later <= HOPE * if_fallen)
        # More failures never speak for the task: what has fewer than a task that is cleared is cleared too.
        fits = (region.fits | np.logical_or.accumulate(hopeless[..., ::-1], axis=-1)[..., ::-1]) & ~region.fallen
        going_on = ~fits & ~region.fallen
        blocked = np.where(region.fallen, if_fallen, np.where(going_on, later, 0.0))
        pruned.append(region._replace(fits=fits, going_on=going_on))
    return pruned[::-1]


def operate(regions: list[Region], chances: Floats, k: int) -> Chances:
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
    return Chances(fallen, fits, undecided, trials)


def smallest(
    holds: Callable[[Floats], Booleans], low: float, high: float, tests: int, *, sections: int, rounds: int
) -> Floats:
    """Return about the smallest value between `low` and `high` from which on `holds` is true; `high` where it never is.

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
    """Return where it holds for a position and for all later ones."""
    above: Booleans = np.logical_and.accumulate(held[..., ::-1], axis=-1)[..., ::-1]
    return above
