"""The failures of a task in runs that its own test does not block: what is left for the test of its suite to find."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.estimators import binomial
from passgate.tasks.stats.regression import RegressionTest

Floats = npt.NDArray[np.float64]

_LEAST: Final = 1e-12


class TaskTest(NamedTuple):
    """The test of one task and what it may lead to."""

    test: RegressionTest
    red_from: int
    """The failures among the first k trials from which on the test goes on."""
    undecided_blocks: bool


class Layer(NamedTuple):
    """The trials of a task that a look of its suite's test adds."""

    failures: Floats
    """The chance of each number of failures among them."""
    variance: float
    """Of the failures among the trials before."""
    covariance: float
    """Of these with the failures of the layer."""
    own: float = 0.0
    """How many of the layer's trials its own test is expected to run."""


class UnblockedTask(NamedTuple):
    """A task in runs that its own test does not block."""

    first: Floats
    """The chance of each number of failures among the first k trials."""
    layers: tuple[Layer, ...]


def untested(rate: float, sizes: Sequence[int]) -> UnblockedTask:
    """A task that no test of its own blocks: `sizes` are k and the later numbers of trials."""
    added = (size - before for before, size in pairwise(sizes))
    layers = (
        Layer(np.array(binomial(size, 1 - rate)), before * rate * (1 - rate), 0.0)
        for before, size in zip(sizes, added, strict=False)
    )
    return UnblockedTask(np.array(binomial(sizes[0], 1 - rate)), tuple(layers))


def unblocked_task(tested: TaskTest, rate: float, sizes: Sequence[int]) -> UnblockedTask:
    """A task with a pass rate in the runs that its test does not block; all runs where it blocks nearly all."""
    k, failing = sizes[0], 1 - rate
    unblocked_from = _unblocked_chances(tested, failing, k)
    going_on = np.array(binomial(k, failing))
    ended = np.where(np.arange(k + 1) < tested.red_from, going_on, 0.0)
    going_on = going_on - ended
    first = ended + going_on * unblocked_from[0]
    if first.sum() < _LEAST:
        return untested(rate, sizes)
    layers = []
    for before, size in pairwise(sizes):
        # By the failures before the layer and by those at its end.
        ended, going_on, own = np.diag(ended), np.diag(going_on), 0.0
        for n in range(before, size):
            fits, ends = _endings(tested.test, n, n + 1)
            ended, going_on = ended + going_on * fits, going_on * ~ends
            own += float(going_on.sum())
            ended, going_on = _one_more(ended, failing), _one_more(going_on, failing)
        layers.append(_layer(ended + going_on * _at(unblocked_from, size - k, size + 1), own))
        ended, going_on = ended.sum(axis=0), going_on.sum(axis=0)
    return UnblockedTask(first / first.sum(), tuple(layers))


def _layer(joint: Floats, own: float) -> Layer:
    """A layer from the chances of its failures before it, by row, and at its end, by column."""
    joint = joint / joint.sum()
    size = joint.shape[1] - joint.shape[0]
    failures = np.array([np.trace(joint, offset) for offset in range(size + 1)])
    before, more = np.arange(joint.shape[0]), np.arange(size + 1)
    of_before = joint.sum(axis=1)
    mean = of_before @ before
    product = sum(float(np.diagonal(joint, offset) @ before) * offset for offset in range(size + 1))
    return Layer(failures, float(of_before @ (before - mean) ** 2), float(product - mean * (failures @ more)), own)


def _unblocked_chances(tested: TaskTest, failing: float, k: int) -> list[Floats]:
    """By the number of trials from k on: the chance of each number of failures that the test will not block."""
    test, found = tested.test, []
    later = np.zeros(test.most + 2)
    for n in range(test.most, k - 1, -1):
        findings = [test.conclude(n, failed) for failed in range(n + 1)]
        ends = {Finding.FALLEN: 0.0, Finding.FITS: 1.0, Finding.UNDECIDED: float(not tested.undecided_blocks)}
        later = np.array(
            [
                ends[one] if one in ends else (1 - failing) * later[failed] + failing * later[failed + 1]
                for failed, one in enumerate(findings)
            ]
        )
        found.append(later)
    return found[::-1]


def _endings(test: RegressionTest, n: int, size: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Of each number of failures in n trials, whether it fits the baseline, and whether the test ends."""
    findings = [test.conclude(n, failed) for failed in range(size)]
    return (
        np.array([one is Finding.FITS for one in findings]),
        np.array([one is not Finding.UNFINISHED for one in findings]),
    )


def _at(unblocked_from: Sequence[Floats], look: int, size: int) -> Floats:
    return unblocked_from[look] if look < len(unblocked_from) else np.zeros(size)


def _one_more(chances: Floats, failing: float) -> Floats:
    more = np.zeros((chances.shape[0], chances.shape[1] + 1))
    more[:, :-1] = chances * (1 - failing)
    more[:, 1:] += chances * failing
    return more
