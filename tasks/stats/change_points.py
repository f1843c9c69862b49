"""Change points: many series over the runs of a history in, when each changed out, at a stated rate of false alarms.

After every run, the runs since the last change of a series are split at several places, and the generalised likelihood
ratio compares both sides (Siegmund and Venkatraman 1995, Annals of Statistics 23). A split is an alarm if chance alone
would make so large a difference in fewer than `alpha` of all cases, where `alpha` shares `FALSE_ALARMS` over all
series, splits and the runs of a year (Bonferroni): the expected number of false alarms in `RUNS` runs is at most
`FALSE_ALARMS`, however many series there are. A change is then placed by maximum likelihood, and tested once more
between its neighbours.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEAST_BEFORE: Final = 8  # Runs that a series has to have before a change in it can be seen
FALSE_ALARMS: Final = 0.1  # Expected of a whole history in `RUNS` runs: a tenth of what is promised
RUNS: Final = 365
_AFTER: Final = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96])  # Runs from a split to the newest run
_LEAST_AFTER: Final = 3  # Of numbers: a single slow run is no change
_SIDES: Final = 4  # Each of the two sides may be above or below what the other one lets expect
_NEAR: Final = 3
_RAMPS: Final = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192)  # Runs that a slow change may take
_ONSETS: Final = 64  # Places at which a slow change is looked for first
_SLOWER: Final = 5  # By how much a slow change has to be likelier: a sudden one is the simpler story


@dataclass(frozen=True)
class ChangePoint:
    """When a series changed, and from what to what."""

    series: int  # Its row
    at: int  # The first run after the change, or the first run of a slow one
    before: float
    after: float
    evidence: float
    """Minus the logarithm of how likely chance alone would make it, before it is corrected for the number of tests."""
    alarm: int  # The first run after which it could be seen
    until: int | None = None  # The last run of a slow change; `None` of a sudden one


class Series(ABC):
    """Numbers with a weight each: a series per row, a run per column. A weight of 0 means that nothing was measured."""

    def __init__(self, values: Floats, weights: Floats) -> None:
        self._values, self._weights = np.where(weights > 0, values, 0.0), weights
        powers = np.stack([weights, weights * self._values, weights * self._values**2])
        self._sums = np.cumsum(np.concatenate([np.zeros((*powers.shape[:2], 1)), powers], axis=2), axis=2)

    @property
    def shape(self) -> tuple[int, int]:
        """Return how many series and how many runs there are."""
        series, runs = self._values.shape
        return series, runs

    @abstractmethod
    def evidence(
        self, rows: Integers, starts: Integers, splits: Integers, ends: Integers, inflation: float = 1.0
    ) -> Floats:
        """Return the evidence (see `ChangePoint.evidence`) that the runs from `starts` to `splits` differ from those up
        to `ends`, if the variance of a mean is `inflation` times that of independent runs.
        """

    def confirmation(self, row: int, start: int, split: int, end: int) -> float:
        """Return the evidence of one split, with what the whole series says of its noise."""
        rows, starts, splits, ends = (np.array([place]) for place in (row, start, split, end))
        return float(self.evidence(rows, starts, splits, ends, self._inflation(row, start, split, end))[0])

    def _inflation(self, row: int, start: int, split: int, end: int) -> float:
        return 1.0

    def _window(self, rows: Integers, begins: Integers | int, ends: Integers | int) -> Floats:
        """Return the sums of the weights, the weighted values and their squares between two runs."""
        return np.asarray(self._sums[:, rows, ends] - self._sums[:, rows, begins])

    def likeliest_split(self, row: int, start: int, end: int) -> int:
        """Return the split of a series between two runs that leaves the least variance on both sides."""
        inner = np.arange(start + 1, end)
        rows = np.array([row])
        before, after = self._window(rows, start, inner), self._window(rows, inner, end)
        gains = before[1] ** 2 / np.maximum(before[0], 1e-9) + after[1] ** 2 / np.maximum(after[0], 1e-9)
        return start + 1 + int(np.argmax(gains))

    def level(self, row: int, start: int, end: int) -> float:
        """Return the mean between two runs."""
        weight, total, _ = self._window(np.array([row]), start, end)
        return float(total[0] / max(weight[0], 1e-9))

    def fit(self, row: int, start: int, end: int, shapes: Floats) -> tuple[Floats, Floats, Floats]:
        """Return how well each shape (numbers from 0, before, to 1, after) fits a series between two runs, as a
        log-likelihood, and its levels before and after (weighted least squares).
        """
        values, weights = self._values[row, start:end], self._weights[row, start:end]
        total, mass = weights.sum(), weights @ values
        once, twice, cross = shapes @ weights, shapes**2 @ weights, shapes @ (weights * values)
        slope = (total * cross - once * mass) / np.maximum(total * twice - once**2, 1e-12)
        low = (mass - slope * once) / max(total, 1e-12)
        rest = (values - low[:, None] - slope[:, None] * shapes) ** 2 @ weights
        return -(weights > 0).sum() / 2 * np.log(np.maximum(rest, 1e-12)), low, low + slope


class PassRates(Series):
    """Shares of trials that passed.

    Given how many passed in all, the passes of one side are a sum of independent chances (Vatutin and Mikhailov 1982),
    which differs so much from what both sides let expect with a chance of at most exp(-n KL(share, expected))
    (Hoeffding 1963), whatever the pass rates are.
    """

    def __init__(self, shares: Floats, n: Floats) -> None:
        """Take the share and the number of trials of each run."""
        super().__init__(np.clip(shares, 0.0, 1.0), n)

    def evidence(
        self, rows: Integers, starts: Integers, splits: Integers, ends: Integers, inflation: float = 1.0
    ) -> Floats:
        n_before, x_before, _ = self._window(rows, starts, splits)
        n_after, x_after, _ = self._window(rows, splits, ends)
        share = (x_before + x_after) / np.maximum(n_before + n_after, 1e-9)
        return np.maximum(_divergence(n_before, x_before, share), _divergence(n_after, x_after, share))


def _divergence(n: Floats, passed: Floats, share: Floats) -> Floats:
    """Return n KL(passed / n, share); 0 of no trials, and where all passed or all failed on both sides."""
    failed = n - passed
    with np.errstate(divide="ignore", invalid="ignore"):
        hits = np.where(passed > 0, passed * np.log(passed / (n * share)), 0.0)
        misses = np.where(failed > 0, failed * np.log(failed / (n * (1 - share))), 0.0)
    return np.where((n > 0) & (share > 0) & (share < 1), np.maximum(hits + misses, 0.0), 0.0)


class Levels(Series):
    """Numbers such as logarithms of seconds, NaN where nothing was measured.

    Two sides are compared by Student's t, whose tail is that of a normal one (Wallace 1959).
    """

    def __init__(self, values: Floats, least: float) -> None:
        """`least` is the smallest difference that is a change."""
        super().__init__(values, np.isfinite(values).astype(float))
        self._least = least
        # The differences of neighbours give the spread of a run: no change of level raises their median.
        differences = np.abs(np.diff(values, axis=1))
        known = np.isfinite(differences)
        pairs = zip(differences, known, strict=True)
        medians = [np.median(row[found]) if found.any() else np.nan for row, found in pairs]
        spreads = np.maximum(1e-6, np.array(medians, dtype=float) / (0.6745 * np.sqrt(2)))
        self._floors = np.where(np.isnan(spreads), 1.0, spreads) / 2

    def evidence(
        self, rows: Integers, starts: Integers, splits: Integers, ends: Integers, inflation: float = 1.0
    ) -> Floats:
        before, after = self._window(rows, starts, splits), self._window(rows, splits, ends)
        m, n = np.maximum(before[0], 1), np.maximum(after[0], 1)
        difference = after[1] / n - before[1] / m
        freedom = np.maximum(m + n - 2, 1)
        within = (before[2] - before[1] ** 2 / m + after[2] - after[1] ** 2 / n) / freedom
        variance = np.maximum(within, self._floors[rows] ** 2) * inflation
        squared = difference**2 / np.maximum(variance * (1 / m + 1 / n), 1e-300)
        z = (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(squared / freedom))
        tail = z**2 / 2 + np.log(np.maximum(z, 1.0) * np.sqrt(2 * np.pi))
        enough = (before[0] >= LEAST_BEFORE - 2) & (after[0] >= _LEAST_AFTER)
        return np.where(enough & (np.abs(difference) >= self._least), tail, 0.0)

    def _inflation(self, row: int, start: int, split: int, end: int) -> float:
        """Return by how much the variance of a mean is larger because a run is like the one before it (lag-1)."""
        first, last = max(((start, split), (split, end)), key=lambda bounds: bounds[1] - bounds[0])
        values = self._values[row, first:last][self._weights[row, first:last] > 0]
        if len(values) < 2 * LEAST_BEFORE:
            return 1.0
        rest = values - values.mean()
        likeness = float(rest[1:] @ rest[:-1]) / max(float(rest @ rest), 1e-300)
        likeness = min(0.8, max(0.0, likeness - 1 / np.sqrt(len(values))))
        return float((1 + likeness) / (1 - likeness))


def threshold(series: int) -> float:
    """Return the evidence that a change among so many series needs after each run."""
    return float(np.log(max(1, series) * len(_AFTER) * _SIDES * RUNS / FALSE_ALARMS))


def change_points(families: Sequence[Series]) -> list[list[ChangePoint]]:
    """Return the changes of each family in the order of series and runs. All families share the false alarms."""
    least = threshold(sum(family.shape[0] for family in families))
    return [
        [
            change
            for row, alarms in _alarms(family, least).items()
            for change in _merge_slow(family, _confirmed_changes(family, row, alarms, least))
        ]
        for family in families
    ]


def _alarms(family: Series, least: float) -> dict[int, list[tuple[int, int]]]:
    """Return by series where it changed, as it looked at the first run after which this could be seen, and that run."""
    series, runs = family.shape
    rows, starts = np.arange(series)[:, None], np.zeros((series, 1), dtype=np.int64)
    found: dict[int, list[tuple[int, int]]] = {}
    for end in range(LEAST_BEFORE + 1, runs + 1):
        splits = end - _AFTER[end - _AFTER >= LEAST_BEFORE]
        evidence = family.evidence(rows, starts, np.maximum(splits, starts), np.array(end))
        evidence[splits - starts < LEAST_BEFORE] = 0.0
        for row in np.flatnonzero(evidence.max(axis=1) > least).tolist():
            start = family.likeliest_split(row, int(starts[row, 0]), end)
            starts[row] = start
            found.setdefault(row, []).append((start, end - 1))
    return dict(sorted(found.items()))


def _confirmed_changes(family: Series, row: int, alarms: Sequence[tuple[int, int]], least: float) -> list[ChangePoint]:
    """Return the changes, each at its likeliest place between its neighbours, that all runs together show."""
    splits = [split for split, _ in alarms]
    while splits:
        for place in range(len(splits)):
            start, _, end = _surroundings(splits, family)[place]
            splits[place] = family.likeliest_split(row, start, end)
        splits = sorted(set(splits))
        evidence = [family.confirmation(row, *around) for around in _surroundings(splits, family)]
        weakest = int(np.argmin(evidence))
        if evidence[weakest] > least:
            break
        del splits[weakest]
    return [
        ChangePoint(
            series=row,
            at=split,
            before=family.level(row, start, split),
            after=family.level(row, split, end),
            evidence=family.confirmation(row, start, split, end),
            alarm=min((run for at, run in alarms if abs(at - split) <= _NEAR and run >= split), default=split),
        )
        for start, split, end in _surroundings(splits, family)
    ]


def _surroundings(splits: Sequence[int], family: Series) -> list[tuple[int, int, int]]:
    """Return each split between its neighbours."""
    bounds = [0, *splits, family.shape[1]]
    return list(zip(bounds, bounds[1:-1], bounds[2:], strict=False))


def _merge_slow(family: Series, changes: list[ChangePoint]) -> list[ChangePoint]:
    """Return the changes, where several in one direction are likelier one slow change than so many sudden ones."""
    groups = [list(group) for _, group in groupby(changes, key=lambda change: change.after > change.before)]
    bounds = [0, *(group[-1].at for group in groups)], [*(group[0].at for group in groups[1:]), family.shape[1]]
    merged = []
    for group, start, end in zip(groups, *bounds, strict=False):
        slow = _slow_change(family, group, start, end)
        merged += group if slow is None else [slow]
    return merged


def _slow_change(family: Series, group: Sequence[ChangePoint], start: int, end: int) -> ChangePoint | None:
    """Return the one slow change that a group of sudden ones is; `None` where the sudden ones are likelier (BIC)."""
    row, length = group[0].series, end - start
    levels = [group[0].before, *(change.after for change in group)]
    cuts = [0, *(change.at - start for change in group), length]
    steps = np.repeat(levels, [last - first for first, last in pairwise(cuts)])
    sudden = family.fit(row, start, end, ((steps - levels[0]) / (levels[-1] - levels[0]))[None])[0][0]
    stride = -(-length // _ONSETS)
    onsets = np.arange(2, length - 2, stride)
    found = None
    for _ in range(2 if stride > 1 else 1):
        begins, lasts = (grid.ravel() for grid in np.meshgrid(onsets, _RAMPS, indexing="ij"))
        fits = begins + lasts <= length + 1
        begins, lasts = begins[fits], lasts[fits]
        if not len(begins):
            return None
        shapes = np.clip((np.arange(length) - begins[:, None] + 1) / lasts[:, None], 0.0, 1.0)
        likelihoods, lows, highs = family.fit(row, start, end, shapes)
        best = int(np.argmax(likelihoods))
        found = likelihoods[best], int(begins[best]), int(lasts[best]), float(lows[best]), float(highs[best])
        onsets = np.arange(max(2, found[1] - stride), min(length - 2, found[1] + stride + 1))
    if found is None:
        return None
    likelihood, onset, lasting, low, high = found
    penalty = np.log(length) / 2
    if likelihood - 4 * penalty <= sudden - (2 * len(group) + 1) * penalty + _SLOWER:
        return None
    strongest = max(group, key=lambda change: change.evidence)
    at, until = start + onset, min(start + onset + lasting, end) - 1
    alarm = max(min(change.alarm for change in group), at)
    return replace(strongest, at=at, until=until, before=low, after=high, alarm=alarm)
