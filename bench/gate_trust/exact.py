"""The same figures exactly: over all that the baseline, the first trials and the confirming ones may come to."""

from collections.abc import Iterable, Iterator
from functools import cache, reduce
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.gate_trust.draws import is_green
from bench.gate_trust.regression_tests import Key, RegressionTests
from bench.gate_trust.setting import Fall, Setting
from passgate.tasks.gates.evidence import alpha_of_one
from passgate.tasks.model.baseline import RED_IN_A_ROW
from passgate.tasks.model.policy import Regression

Floats = npt.NDArray[np.float64]

_NEGLIGIBLE = 1e-8
"""Chances below it are left out."""


class Unchanged(NamedTuple):
    """Of a gate in which nothing has changed. Without admission, of which no formula is known."""

    blocked: float
    """Any task has fallen by the evidence."""
    red: float
    """Or is undecided."""
    extra: float
    """Confirming trials as a share of the planned ones."""


class Caught(NamedTuple):
    """Of the task that has fallen: whether it blocks."""

    fallen: float
    or_undecided: float


class _Task(NamedTuple):
    """Chances of one task to be green and, in a gate that weighs so many, to come to this."""

    green: float
    fallen: float
    undecided: float
    extra: float
    """Expected confirming trials."""


def unchanged(setting: Setting, regression: Regression, tests: RegressionTests) -> Unchanged:
    """The tasks hang together by how many of them are weighed, for they share alpha: so that is summed over."""
    not_blocked = not_red = extra = 0.0
    for weighed, tasks in _by_weighed(setting, regression, tests):
        now = [tasks(rate, rate) for rate in setting.rates]
        not_blocked += _product((1 - task.green, task.green - task.fallen) for task in now)[weighed]
        not_red += _product((1 - task.green, task.green - task.fallen - task.undecided) for task in now)[weighed]
        extra += sum(
            _others_weighed(setting, rate)[weighed - 1] * task.extra
            for rate, task in zip(setting.rates, now, strict=True)
        )
    none_weighed = _weighed(setting)[0]
    planned = setting.k * len(setting.rates)
    return Unchanged(1 - not_blocked - none_weighed, 1 - not_red - none_weighed, extra / planned)


def caught(setting: Setting, regression: Regression, tests: RegressionTests, fall: Fall) -> Caught:
    """The mean over all tasks that can fall so."""
    rates = [setting.rates[task] for task in setting.can_fall(fall)]
    fallen = undecided = 0.0
    for weighed, tasks in _by_weighed(setting, regression, tests):
        for rate in rates:
            task, chance = tasks(rate, fall.to), _others_weighed(setting, rate)[weighed - 1] / len(rates)
            fallen += chance * task.fallen
            undecided += chance * task.undecided
    return Caught(fallen, fallen + undecided)


@cache
def green_counts(rate: float, k: int, runs: int) -> dict[int, float]:
    """The chance that a task is green at the baseline and has passed so many trials there, by that number.

    Its state hangs on how many runs it passed and on whether it failed all of the newest `RED_IN_A_ROW`.
    """
    newest = min(RED_IN_A_ROW, runs)
    run = np.zeros((k + 1, 2))
    for passed in range(k + 1):
        run[passed, int(passed == k)] = comb(k, passed) * rate**passed * (1 - rate) ** (k - passed)
    failed_run = run * [1, 0]
    any_course = _repeated(run, runs)
    drifted = _convolved(_repeated(failed_run, newest), _repeated(run, runs - newest))
    found: dict[int, float] = {}
    for greens in range(runs + 1):
        course = [False] * (runs - greens) + [True] * greens
        if is_green(course[::-1]):
            weights = any_course[:, greens]
            if not is_green(course):
                weights = weights - drifted[:, greens]
            for passed in np.flatnonzero(weights > _NEGLIGIBLE).tolist():
                found[passed] = found.get(passed, 0.0) + float(weights[passed])
    return found


def _by_weighed(setting: Setting, regression: Regression, tests: RegressionTests) -> Iterator[tuple[int, "_Tasks"]]:
    """Each number of tasks that the gate may weigh, with what a task comes to then."""
    k, n = setting.k, setting.k * setting.runs
    most = max(k, regression.max_trials)
    counts = {passed for rate in set(setting.rates) for passed in green_counts(rate, k, setting.runs)}
    numbers = [int(m) for m in np.flatnonzero(_weighed(setting) > _NEGLIGIBLE) if m]
    alphas = {m: alpha_of_one(regression, m) for m in numbers}
    tests.prepare(Key(passed, n, alpha, most) for alpha in alphas.values() for passed in counts)
    for m in numbers:
        yield m, _Tasks(setting, tests, alphas[m], most)


class _Tasks:
    """What a task comes to, by its rate at the baseline and its rate now, in a gate that weighs so many."""

    def __init__(self, setting: Setting, tests: RegressionTests, alpha: float, most: int) -> None:
        self._setting, self._tests, self._alpha, self._most = setting, tests, alpha, most
        self._known: dict[tuple[float, float], _Task] = {}

    def __call__(self, before: float, now: float) -> _Task:
        if (before, now) not in self._known:
            self._known[before, now] = self._task(before, now)
        return self._known[before, now]

    def _task(self, before: float, now: float) -> _Task:
        k, n = self._setting.k, self._setting.k * self._setting.runs
        green = fallen = undecided = extra = 0.0
        for passed, weight in green_counts(before, k, self._setting.runs).items():
            operation = self._tests.operation(Key(passed, n, self._alpha, self._most), now)
            green += weight
            fallen += weight * operation.fallen
            undecided += weight * operation.undecided
            extra += weight * (operation.trials - k)
        return _Task(green, fallen, undecided, extra)


@cache
def _weighed(setting: Setting) -> Floats:
    """The chance that so many tasks are green."""
    return _product(_green(setting, rate) for rate in setting.rates)


@cache
def _others_weighed(setting: Setting, rate: float) -> Floats:
    """The same of all tasks but one of this rate."""
    others = list(setting.rates)
    others.remove(rate)
    return _product(_green(setting, other) for other in others)


def _green(setting: Setting, rate: float) -> tuple[float, float]:
    green = sum(green_counts(rate, setting.k, setting.runs).values())
    return 1 - green, green


def _product(factors: Iterable[tuple[float, float]]) -> Floats:
    """The coefficients of the product of a + b x over all factors (a, b)."""
    product: Floats = reduce(np.convolve, map(np.array, factors), np.ones(1))
    return product


def _repeated(one: Floats, times: int) -> Floats:
    result: Floats = np.ones((1, 1))
    for _ in range(times):
        result = _convolved(result, one)
    return result


def _convolved(first: Floats, second: Floats) -> Floats:
    rows, columns = (a + b - 1 for a, b in zip(first.shape, second.shape, strict=True))
    result: Floats = np.zeros((rows, columns))
    for (row, column), value in np.ndenumerate(second):
        result[row : row + first.shape[0], column : column + first.shape[1]] += value * first
    return result
