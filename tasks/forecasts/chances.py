"""All tasks together: how often the gate is red."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate
from math import prod
from operator import attrgetter
from types import MappingProxyType
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
    """How many tasks may fail before the suite's value is below its threshold; `None` without a threshold."""

    @property
    def size(self) -> int:
        """How many coefficients the product of its polynomials needs."""
        return 1 if self.allowed is None else self.allowed + 1

    def product_sum(self, polynomials: Iterable[Floats]) -> float:
        """The chance that no more tasks fail than are allowed."""
        return float(reduce(partial(_times, size=self.size), polynomials, _ONE).sum())


class GateChances:
    """How often the gate is FAIL and how often PASS, from its tasks, its limits and the falls of whole suites, which
    are taken as independent of each other.

    For a suite with a threshold, the number of failed tasks matters. Each task has a polynomial, whose coefficients are
    the chances of 0 and of 1 failed task; their product has the chances of every number. For other suites it only
    matters that no task blocks.

    Admission ties the tasks of a suite together: it is in force if any is admitted. So the chance of a suite is that
    with admission in force, minus the part in which none is admitted, plus that part without admission.
    """

    def __init__(
        self,
        gate: GatePolicy,
        members: Sequence[GateTask],
        limits: Mapping[Rule, float],
        falls: Mapping[Suite, float] = MappingProxyType({}),
    ) -> None:
        self._members = members
        self._within_limits = prod(1 - chance for chance in (*limits.values(), *falls.values()))
        # Not a set: its order changes from process to process, and with it the last digit of every product.
        suites = dict.fromkeys(member.suite for member in members)
        self._terms = {suite: _terms(gate, suite, members) for suite in suites}
        self._unblocked = {suite: self._chance(suite, _unblocked) for suite in suites}
        self._others: dict[int, list[Floats]] = {}

    @property
    def red(self) -> float:
        """How often it is FAIL."""
        return 1 - self._within_limits * prod(self._unblocked.values())

    @property
    def passed(self) -> float:
        """How often it is PASS."""
        return self._within_limits * prod(self._chance(suite, partial(_unblocked, known=True)) for suite in self._terms)

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
        others = prod(chance for other, chance in self._unblocked.items() if other is not suite)
        own = sum(
            term.sign * term.product_sum([rest, _unblocked(term.pick(by_admission), term.allowed)])
            for term, rest in zip(self._terms[suite], self._others[index], strict=True)
        )
        return 1 - self._within_limits * others * own

    def _chance(self, suite: Suite, polynomial: Callable[[TaskChances, int | None], Floats]) -> float:
        return sum(
            term.sign * term.product_sum(self._polynomials(suite, term, polynomial)) for term in self._terms[suite]
        )

    def _polynomials(
        self, suite: Suite, term: _Term, polynomial: Callable[[TaskChances, int | None], Floats]
    ) -> list[Floats]:
        return [polynomial(term.pick(one.by_admission), term.allowed) for one in self._members if one.suite is suite]

    def _follow_others(self) -> None:
        """For every task and every term, the product over the other tasks of its suite."""
        self._others = {index: [] for index in range(len(self._members))}
        for suite, terms in self._terms.items():
            indices = [index for index, member in enumerate(self._members) if member.suite is suite]
            for term in terms:
                own, times = self._polynomials(suite, term, _unblocked), partial(_times, size=term.size)
                # Products from both ends: to divide the whole by one task's polynomial fails where that is 0.
                before = list(accumulate(own, times, initial=_ONE))
                after = list(accumulate(reversed(own), times, initial=_ONE))
                for place, index in enumerate(indices):
                    self._others[index].append(times(before[place], after[len(own) - 1 - place]))


def _terms(gate: GatePolicy, suite: Suite, members: Sequence[GateTask]) -> list[_Term]:
    of_tasks = [member.by_admission for member in members if member.suite is suite]
    in_force = [one.in_force for one in of_tasks]
    none_admitted = prod(one.unproven.chance for one in of_tasks)
    judged = sum(1 - one.withheld - one.unproven for one in in_force)
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
    """How many of the judged tasks may fail."""
    least = gate.thresholds.get(suite)
    if least is None or Rule.THRESHOLD not in gate.blocks_on:
        return None
    tasks = round(judged)
    return max((failed for failed in range(tasks + 1) if tasks and (tasks - failed) / tasks >= least), default=0)


def _unblocked(chances: TaskChances, allowed: int | None, *, known: bool = False) -> Floats:
    """A task that does not block, by whether it has failed all the same. `known`: no evidence of it is missing."""
    unblocked = max(chances.chance - chances.blocks - (chances.missing if known else 0.0), 0.0)
    if allowed is None:
        return _ONE * unblocked
    return _polynomial(max(unblocked - chances.quiet, 0.0), chances.quiet, allowed)


def _passed_or_failed(chances: TaskChances, allowed: int | None) -> Floats:
    """A task by whether it has failed, blocking or not."""
    return _polynomial(chances.chance - chances.failed, chances.failed, allowed)


def _polynomial(passed: float, failed: float, allowed: int | None) -> Floats:
    return np.array([passed, failed] if allowed else [passed])


def _times(left: Floats, right: Floats, size: int) -> Floats:
    product: Floats = np.convolve(left, right)[:size]  # more failed tasks than are allowed need no coefficient
    return product
