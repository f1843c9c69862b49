"""Change points: many series over the runs of a history in, when each changed out, at a stated rate of false alarms.

After every run each series is split at several places, before which and after which it has windows of several lengths.
A split is an alarm when chance alone would make so large a difference in fewer than `alpha` of all cases, where
`alpha` shares `FALSE_ALARMS` over all series, windows and the runs of a year (Bonferroni): the expected number of false
alarms in `RUNS` runs is at most `FALSE_ALARMS`, however many series there are. Where a series changed is then placed by
maximum likelihood, and tested once more between its neighbours.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.stats.change_series import LEAST_BEFORE, Alarms, Family

FALSE_ALARMS: Final = 0.1
"""The expected number of false alarms of a whole history in `RUNS` runs: a tenth of what is promised."""
RUNS: Final = 365
_BEFORE: Final = (8, 16, 32, 64, 128, 256)
_AFTER: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
_RAMPS: Final = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
"""Runs that a slow change may take."""
_ONSETS: Final = 64  # Places at which a slow change is looked for first
_SIDES: Final = 4  # Each of the two windows may be above or below what the other one lets expect.
_NEAR: Final = 3
_SLOWER: Final = 5  # By how much a slow change has to be likelier: a sudden one is the simpler story.


@dataclass(frozen=True)
class ChangePoint:
    """When a series changed, and from what to what."""

    series: int
    """Its row."""
    at: int
    """The first run after the change, or the first run of a slow one."""
    before: float
    """What the series was: a share of trials, or the mean of the levels."""
    after: float
    evidence: float
    """Minus the logarithm of how likely chance alone would make it, before it is corrected for the number of tests."""
    told: int
    """The first run after which it could be seen."""
    until: int | None = None
    """The last run of a slow change; `None` of a sudden one."""


def threshold(series: int, runs: int) -> float:
    """Return the evidence that a change among so many series needs after each of so many runs."""
    tests = series * len(_lengths(runs)) * _SIDES
    return float(np.log(max(1, tests) * RUNS / FALSE_ALARMS))


def change_points(families: Sequence[Family]) -> list[list[ChangePoint]]:
    """Return the changes of each family in the order of series and runs. All families share the false alarms."""
    series, runs = sum(family.series for family in families), max((family.runs for family in families), default=0)
    least = threshold(series, runs)
    # numpy lets go of the interpreter's lock in most of it.
    with ThreadPoolExecutor() as threads:
        return list(threads.map(partial(_of_family, least=least), families))


def _lengths(runs: int) -> list[tuple[int, int]]:
    return [
        (before, after)
        for before in _BEFORE
        for after in _AFTER
        if before + after <= max(runs, LEAST_BEFORE + 1) or before == LEAST_BEFORE
    ]


class _Ramp(NamedTuple):
    """A slow change: the run with which it begins, how many it takes, and from what to what."""

    likelihood: float
    onset: int
    runs: int
    before: float
    after: float


def _of_family(family: Family, least: float) -> list[ChangePoint]:
    found = [alarms for alarms in family.alarms(_lengths(family.runs), least) if len(alarms.series)]
    if not found:
        return []
    alarms = Alarms(*(np.concatenate(column) for column in zip(*found, strict=True)))
    changes = (_of_series(family, series, of_series, least) for series, of_series in _by_series(alarms))
    return [change for of_series in changes for change in of_series]


def _by_series(alarms: Alarms) -> Iterator[tuple[int, Alarms]]:
    """Yield each series with its alarms, in their order."""
    order = np.argsort(alarms.series, kind="stable")
    series, firsts = np.unique(alarms.series[order], return_index=True)
    for one, which in zip(series.tolist(), np.split(order, firsts[1:]), strict=True):
        yield one, alarms.taken(which)


def _of_series(family: Family, series: int, alarms: Alarms, least: float) -> list[ChangePoint]:
    splits: list[int] = []
    left = np.ones(len(alarms.evidence), dtype=bool)
    while left.any():
        best = int(np.argmax(np.where(left, alarms.evidence, -np.inf)))
        split = _placed(family, series, int(alarms.starts[best]), int(alarms.ends[best]))
        splits.append(split)
        inside = (alarms.starts < split) & (split < alarms.ends)
        inside[best] = True
        left &= ~inside
    splits = _refined(family, series, sorted(set(splits)), least)
    if not splits:
        return []
    changes = [_change(family, series, *around, alarms) for around in _around(splits, family.runs)]
    return _with_ramps(family, series, changes)


def _placed(family: Family, series: int, start: int, end: int) -> int:
    return start + 1 + int(np.argmax(family.likelihoods(series, start, end)))


def _around(splits: list[int], runs: int) -> list[tuple[int, int, int]]:
    bounds = [0, *splits, runs]
    return [(bounds[index], split, bounds[index + 2]) for index, split in enumerate(splits)]


def _refined(family: Family, series: int, splits: list[int], least: float) -> list[int]:
    """Return the splits, each at its likeliest place between its neighbours, without those that have too little
    evidence.
    """
    while splits:
        for index in range(len(splits)):
            start, _, end = _around(splits, family.runs)[index]
            splits[index] = _placed(family, series, start, end)
        splits = sorted(set(splits))
        evidence = [family.confirmed(series, *around) for around in _around(splits, family.runs)]
        weakest = int(np.argmin(evidence))
        if evidence[weakest] > least:
            break
        del splits[weakest]
    return splits


def _change(family: Family, series: int, start: int, split: int, end: int, alarms: Alarms) -> ChangePoint:
    near = (np.abs(alarms.splits - split) <= _NEAR) & (alarms.ends > split)
    return ChangePoint(
        series=series,
        at=split,
        before=family.level(series, start, split),
        after=family.level(series, split, end),
        evidence=family.confirmed(series, start, split, end),
        told=int(alarms.ends[near].min() if near.any() else max(split + 1, int(alarms.ends.min()))) - 1,
    )


def _with_ramps(family: Family, series: int, changes: list[ChangePoint]) -> list[ChangePoint]:
    """Return the changes, where several in one direction are likelier one slow change than so many sudden ones."""
    groups: list[list[ChangePoint]] = []
    for change in changes:
        if groups and (groups[-1][-1].after > groups[-1][-1].before) == (change.after > change.before):
            groups[-1].append(change)
        else:
            groups.append([change])
    bounds = [0, *(group[0].at for group in groups[1:]), family.runs]
    starts = [0, *(group[-1].at for group in groups[:-1])]
    found: list[ChangePoint] = []
    for group, start, end in zip(groups, starts, bounds[1:], strict=True):
        found += _slow(family, series, group, start, end) or group
    return found


def _slow(family: Family, series: int, group: list[ChangePoint], start: int, end: int) -> list[ChangePoint]:
    """Return the one slow change that a group of sudden ones is; none where the sudden ones are likelier (BIC)."""
    length = end - start
    stride = -(-length // _ONSETS)
    ramp = _likeliest(family, series, (start, end), np.arange(2, length - 2, stride))
    if ramp is not None and stride > 1:
        near = np.arange(max(2, ramp.onset - stride), min(length - 2, ramp.onset + stride + 1))
        ramp = _likeliest(family, series, (start, end), near)
    if ramp is None:
        return []
    steps = np.zeros(length)
    cuts = [0, *(change.at - start for change in group), length]
    levels = [group[0].before, *(change.after for change in group)]
    for (first, last), level in zip(pairwise(cuts), levels, strict=True):
        steps[first:last] = level
    span = levels[-1] - levels[0]
    if not span:
        return []
    sudden = family.ramps(series, start, end, ((steps - levels[0]) / span)[None, :])[0][0]
    penalty = np.log(length) / 2
    if ramp.likelihood - 4 * penalty <= sudden - (2 * len(group) + 1) * penalty + _SLOWER:
        return []
    at, until = start + ramp.onset, min(start + ramp.onset + ramp.runs, end) - 1
    merged = replace(max(group, key=lambda change: change.evidence), at=at, until=until)
    told = min(change.told for change in group)
    return [replace(merged, before=ramp.before, after=ramp.after, told=max(told, at))]


def _likeliest(family: Family, series: int, bounds: tuple[int, int], onsets: npt.NDArray[np.int64]) -> _Ramp | None:
    """Return the likeliest slow change between two runs that begins at one of these, counted from the first."""
    length = bounds[1] - bounds[0]
    begins, lengths = (grid.ravel() for grid in np.meshgrid(onsets, _RAMPS, indexing="ij"))
    fits = begins + lengths <= length + 1
    begins, lengths = begins[fits], lengths[fits]
    if not len(begins):
        return None
    shapes = np.clip((np.arange(length)[None, :] - begins[:, None] + 1) / lengths[:, None], 0.0, 1.0)
    likelihoods, lows, highs = family.ramps(series, *bounds, shapes)
    best = int(np.argmax(likelihoods))
    found = (likelihoods[best], begins[best], lengths[best], lows[best], highs[best])
    return _Ramp(float(found[0]), int(found[1]), int(found[2]), float(found[3]), float(found[4]))
