"""All tasks together: how often the gate is red."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate
from math import prod
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.task_forecast import ChancesByAdmission, TaskChances
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Suite

Floats = npt.NDArray[np.float64]

_ONE: Floats = np.ones(1)


class GateTask(NamedTuple):
    suite: Suite
    by_admission: ChancesByAdmission


class _Term(NamedTuple):
    """A part of what may come of a suite: the product over its tasks of one of their chances."""

    sign: int
    pick: Callable[[ChancesByAdmission], TaskChances]
    allowed: int | None
    """How many tasks may fail before the suite's value is below its threshold; `None` where none blocks."""


class GateChances:
    """How often the gate is FAIL and how often PASS, from its tasks and limits, which are independent of each other.

    Of a suite with a threshold the number of its failed tasks is followed: the coefficients of a polynomial, which is
    the product of one of each task. Of others only that none blocks.

    Admission binds the tasks of a suite together: it is in force where any is admitted. That is all that may come of
    them with admission in force, less the part in which none is admitted, and that part without it.
    """

    def __init__(self, gate: GatePolicy, members: Sequence[GateTask], limits: Mapping[Rule, float]) -> None:
        self._members = members
        self._within_limits = prod(1 - chance for chance in limits.values())
        self._terms = {suite: _terms(gate, suite, members) for suite in {member.suite for member in members}}
        self._calm = {suite: self._chance(suite, _calm) for suite in self._terms}
        self._others: dict[int, list[Floats]] = {}

    @property
    def red(self) -> float:
        """How often it is FAIL."""
        return 1 - self._within_limits * prod(self._calm.values())

    @property
    def passed(self) -> float:
        """How often it is PASS."""
        return self._within_limits * prod(self._chance(suite, _calm_and_known) for suite in self._terms)

    def threshold_missed(self, suite: Suite) -> float:
        """How often a suite's value is below its threshold."""
        if any(term.allowed is None for term in self._terms[suite]):
            return 0.0
        return 1 - self._chance(suite, _passed_or_failed)

    def red_with(self, index: int, by_admission: ChancesByAdmission) -> float:
        """How often it is FAIL when one task has other chances."""
        suite = self._members[index].suite
        if not self._others:
            self._follow_others()
        others = prod(chance for other, chance in self._calm.items() if other is not suite)
        own = sum(
            term.sign * _product_sum([rest, _calm(term.pick(by_admission), term.allowed)], term.allowed)
            for term, rest in zip(self._terms[suite], self._others[index], strict=True)
        )
        return 1 - self._within_limits * others * own

    def _chance(self, suite: Suite, polynomial: Callable[[TaskChances, int | None], Floats]) -> float:
        """That no more tasks of a suite fail than are allowed, by the polynomial of each."""
        return sum(
            term.sign * _product_sum(self._polynomials(suite, term, polynomial), term.allowed)
            for term in self._terms[suite]
        )

    def _polynomials(
        self, suite: Suite, term: _Term, polynomial: Callable[[TaskChances, int | None], Floats]
    ) -> list[Floats]:
        return [polynomial(term.pick(one.by_admission), term.allowed) for one in self._members if one.suite is suite]

    def _follow_others(self) -> None:
        """Of every task and every term the product over the others of its suite."""
        self._others = {index: [] for index in range(len(self._members))}
        for suite, terms in self._terms.items():
            indices = [index for index, member in enumerate(self._members) if member.suite is suite]
            for term in terms:
                own, times = self._polynomials(suite, term, _calm), partial(_times, size=_size(term.allowed))
                before = list(accumulate(own, times, initial=_ONE))
                after = list(accumulate(reversed(own), times, initial=_ONE))
                for place, index in enumerate(indices):
                    self._others[index].append(times(before[place], after[len(own) - 1 - place]))


def _terms(gate: GatePolicy, suite: Suite, members: Sequence[GateTask]) -> list[_Term]:
    of_tasks = [member.by_admission for member in members if member.suite is suite]
    in_force = [one.in_force for one in of_tasks]
    none_admitted = prod(one.unproven.chance for one in of_tasks)
    judged = sum(1 - one.withheld for one in in_force)
    if none_admitted == 0:
        return [_Term(1, attrgetter("in_force"), _allowed(gate, suite, judged))]
    # The tasks that count for a threshold are taken as many as they are on average, with admission and without.
    quarantined = sum(one.not_in_force.withheld / one.not_in_force.chance for one in of_tasks)
    with_any = _allowed(gate, suite, judged / (1 - none_admitted) if none_admitted < 1 else 0.0)
    return [
        _Term(1, attrgetter("in_force"), with_any),
        _Term(-1, attrgetter("unproven"), with_any),
        _Term(1, attrgetter("not_in_force"), _allowed(gate, suite, len(of_tasks) - quarantined)),
    ]


def _allowed(gate: GatePolicy, suite: Suite, judged: float) -> int | None:
    """Of so many tasks that are judged, how many may fail."""
    least = gate.thresholds.get(suite)
    if least is None or Rule.THRESHOLD not in gate.blocks_on:
        return None
    tasks = round(judged)
    return max((failed for failed in range(tasks + 1) if tasks and (tasks - failed) / tasks >= least), default=0)


def _calm(chances: TaskChances, allowed: int | None) -> Floats:
    """That a task does not block: by whether it has failed all the same."""
    return _of_calm(chances, chances.chance - chances.blocks, allowed)


def _calm_and_known(chances: TaskChances, allowed: int | None) -> Floats:
    """The same, and that no evidence of it is missing."""
    return _of_calm(chances, chances.chance - chances.blocks - chances.missing, allowed)


def _passed_or_failed(chances: TaskChances, allowed: int | None) -> Floats:
    """Whether it has failed, blocking or not."""
    return _polynomial(chances.chance - chances.failed, chances.failed, allowed)


def _of_calm(chances: TaskChances, calm: float, allowed: int | None) -> Floats:
    if allowed is None:
        return _ONE * max(calm, 0.0)
    return _polynomial(max(calm - chances.quiet, 0.0), chances.quiet, allowed)


def _polynomial(passed: float, failed: float, allowed: int | None) -> Floats:
    return np.array([passed, failed] if allowed else [passed])


def _times(left: Floats, right: Floats, size: int) -> Floats:
    product: Floats = np.convolve(left, right)[:size]
    return product


def _size(allowed: int | None) -> int:
    return 1 if allowed is None else allowed + 1


def _product_sum(polynomials: Sequence[Floats], allowed: int | None) -> float:
    """The chances of all numbers of failed tasks that are allowed, together."""
    return float(reduce(lambda left, right: _times(left, right, _size(allowed)), polynomials, _ONE).sum())
