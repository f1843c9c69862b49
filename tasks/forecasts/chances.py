"""All tasks together: how often the gate is red."""

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.outlook import Outlook
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Suite

Floats = npt.NDArray[np.float64]

_ONE: Floats = np.ones(1)


class Member(NamedTuple):
    suite: Suite
    outlook: Outlook


class GateChances:
    """How often the gate is FAIL and how often PASS, from its tasks and limits, which are independent of each other.

    Of a suite with a threshold the number of its failed tasks is followed: the coefficients of a polynomial, which is
    the product of one of each task. Of others only that none blocks.
    """

    def __init__(self, gate: GatePolicy, members: Sequence[Member], limits: Mapping[Rule, float]) -> None:
        self._members = members
        self._within_limits = prod(1 - chance for chance in limits.values())
        self._allowed = {suite: _allowed(gate, suite, members) for suite in {member.suite for member in members}}
        self._calm = {suite: _chance(self._polynomials(suite), allowed) for suite, allowed in self._allowed.items()}
        self._others: dict[int, Floats] = {}

    @property
    def red(self) -> float:
        """How often it is FAIL."""
        return 1 - self._within_limits * prod(self._calm.values())

    @property
    def passed(self) -> float:
        """How often it is PASS."""
        suites = self._allowed.items()
        whole = [_chance(self._polynomials(suite, missing_is_calm=False), allowed) for suite, allowed in suites]
        return self._within_limits * prod(whole)

    def threshold_missed(self, suite: Suite) -> float:
        """How often a suite's value is below its threshold."""
        allowed = self._allowed[suite]
        if allowed is None:
            return 0.0
        failed = [member.outlook.failed for member in self._members if member.suite is suite]
        return 1 - _chance([_polynomial(1 - chance, chance, allowed) for chance in failed], allowed)

    def red_with(self, index: int, outlook: Outlook) -> float:
        """How often it is FAIL when one task has another outlook."""
        suite = self._members[index].suite
        if not self._others:
            self._follow_others()
        own = self._task(outlook, suite, missing_is_calm=True)
        others = prod(chance for other, chance in self._calm.items() if other is not suite)
        return 1 - self._within_limits * others * _chance([self._others[index], own], self._allowed[suite])

    def _polynomials(self, suite: Suite, *, missing_is_calm: bool = True) -> list[Floats]:
        return [
            self._task(member.outlook, suite, missing_is_calm=missing_is_calm)
            for member in self._members
            if member.suite is suite
        ]

    def _task(self, outlook: Outlook, suite: Suite, *, missing_is_calm: bool) -> Floats:
        """That the task does not block: by whether it has failed all the same."""
        allowed = self._allowed[suite]
        calm = 1 - outlook.blocks - (0.0 if missing_is_calm else outlook.missing)
        if allowed is None:
            return _ONE * max(calm, 0.0)
        return _polynomial(max(calm - outlook.quiet, 0.0), outlook.quiet, allowed)

    def _follow_others(self) -> None:
        """Of every task the product over the others of its suite."""
        for suite, allowed in self._allowed.items():
            indices = [index for index, member in enumerate(self._members) if member.suite is suite]
            own, times = self._polynomials(suite), partial(_times, size=_size(allowed))
            before = list(accumulate(own, times, initial=_ONE))
            after = list(accumulate(reversed(own), times, initial=_ONE))
            for place, index in enumerate(indices):
                self._others[index] = times(before[place], after[len(own) - 1 - place])


def _allowed(gate: GatePolicy, suite: Suite, members: Sequence[Member]) -> int | None:
    """How many tasks of a suite may fail before its value is below the threshold; `None` where none blocks."""
    least = gate.thresholds.get(suite)
    if least is None or Rule.THRESHOLD not in gate.blocks_on:
        return None
    tasks = round(sum(1 - member.outlook.withheld for member in members if member.suite is suite))
    return max((failed for failed in range(tasks + 1) if tasks and (tasks - failed) / tasks >= least), default=0)


def _polynomial(passed: float, failed: float, allowed: int) -> Floats:
    return np.array([passed, failed] if allowed else [passed])


def _times(left: Floats, right: Floats, size: int) -> Floats:
    product: Floats = np.convolve(left, right)[:size]
    return product


def _size(allowed: int | None) -> int:
    return 1 if allowed is None else allowed + 1


def _chance(polynomials: Sequence[Floats], allowed: int | None) -> float:
    """That no task blocks and no more tasks fail than are allowed."""
    return float(reduce(lambda left, right: _times(left, right, _size(allowed)), polynomials, _ONE).sum())
