"""The smallest change of policy that brings false reds down to what a team puts up with."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Final

from passgate.tasks.forecasts.changes import candidates
from passgate.tasks.forecasts.setting_forecast import SettingForecast
from passgate.tasks.forecasts.task_assumptions import Setting
from passgate.tasks.model.forecast import Change

_FIRST_OF_PAIRS: Final = 4
"""So many single changes are tried with a second one: the smallest, and those that leave the fewest false reds."""
_MOST_PAIRS: Final = 30
"""Some take a second or more: a forecast has to be quick."""


@dataclass(frozen=True)
class Improved:
    """A policy that differs by some changes, and what its gate will do."""

    changes: tuple[Change, ...]
    forecast: SettingForecast


def improve(now: SettingForecast, evaluate: Callable[[Setting], SettingForecast], target: float) -> Improved:
    """The first single change that brings false reds down to the target, or else the first pair of changes.

    Where neither does, what leaves the fewest false reds; without changes where none leaves fewer, and where vetoes
    alone are too many: no change makes them rarer.
    """
    if now.vetoed > target:
        return Improved((), now)
    singles: list[Improved] = []
    for one in _after(Improved((), now), evaluate):
        if one.forecast.red <= target:
            return one
        singles.append(one)
    fewest = sorted(singles, key=attrgetter("forecast.red"))[: _FIRST_OF_PAIRS - 1]
    pairs: list[Improved] = []
    tried = (both for first in dict.fromkeys([*singles[:1], *fewest]) for both in _after(first, evaluate))
    for both in islice(tried, _MOST_PAIRS):
        if both.forecast.red <= target:
            return both
        pairs.append(both)
    best = min([*singles, *pairs], key=attrgetter("forecast.red"), default=None)
    return best if best is not None and best.forecast.red < now.red else Improved((), now)


def _after(before: Improved, evaluate: Callable[[Setting], SettingForecast]) -> Iterator[Improved]:
    """With every change more that is of something else."""
    changed = {_subject(change) for change in before.changes}
    for candidate in list(candidates(before.forecast.setting, before.forecast.causes())):
        if _subject(candidate.change) not in changed:
            yield Improved((*before.changes, candidate.change), evaluate(candidate.setting))


def _subject(change: Change) -> str:
    return change.what.partition(":")[0]
