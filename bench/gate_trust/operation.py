"""One test of a task, and exactly what it does with a task of a given pass rate."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from passgate.tasks.stats.estimators import binomial
from passgate.tasks.stats.regression import Before, RegressionTest, regression_tests


@dataclass(frozen=True)
class Operation:
    """The chance of each finding, which sum to 1, and the expected number of trials that are run, with the first k and
    with those of a round after the end of the test. `fits` includes tasks that pass at once.
    """

    fallen: float
    fits: float
    undecided: float
    trials: float


@lru_cache(maxsize=4096)
def regression_test(passed: float, n: float, *, k: int, red_from: int, most: int, alpha: float) -> RegressionTest:
    """The test of a task against `passed` of `n` trials at the baseline."""
    (test,) = regression_tests([Before(passed, n)], [alpha], k=k, red_from=red_from, most=most)
    return test


def operation(test: RegressionTest, pass_rate: float) -> Operation:
    """What the test does with a task of this pass rate."""
    failing, failed = 1 - pass_rate, np.arange(test.most + 1)
    # The chances of the failures so far, by the number of trials at which their round ends.
    rounds = np.zeros((test.most + 1, test.most + 1))
    rounds[test.k, : test.k + 1] = binomial(test.k, failing)
    fallen = fits = trials = 0.0
    for n, ends, fit, going_on, fell in zip(failed[test.k :], test.round_ends, *test.findings, strict=True):
        here = rounds[n:]
        fallen += float((here @ fell).sum())
        fits += float((here @ fit).sum())
        trials += float(failed[n:] @ (here @ ~going_on))
        here *= going_on
        begun = here[0].copy()
        here[0] = 0.0
        rounds[ends, failed] += begun
        here[:, 1:] = here[:, 1:] * pass_rate + here[:, :-1] * failing
        here[:, 0] *= pass_rate
    return Operation(fallen, fits, max(1 - fallen - fits, 0.0), trials)
