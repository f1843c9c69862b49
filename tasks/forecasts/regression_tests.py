"""The tests of failed tasks against their baselines, each made once and many at a time."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from passgate.tasks.stats.regression import Operation, RegressionTest, regression_tests


class Against(NamedTuple):
    """What a test is made from; see `regression_test`."""

    passed: int
    n: int
    k: int
    red_from: int
    most: int
    alpha: float


class RegressionTests:
    """Makes tests and remembers them: they take long, and policies that are compared share most of them."""

    def __init__(self) -> None:
        self._tests: dict[Against, RegressionTest] = {}
        self._operations: dict[tuple[Against, float], Operation] = {}

    def make(self, keys: Iterable[Against]) -> None:
        """Make all of these together, which takes a fraction of the time that they take one by one."""
        groups: dict[tuple[int, int, int], list[Against]] = defaultdict(list)
        for key in sorted(set(keys) - self._tests.keys()):
            groups[key.k, key.red_from, key.most].append(key)
        for (k, red_from, most), wanted in groups.items():
            baselines, alphas = [(key.passed, key.n) for key in wanted], [key.alpha for key in wanted]
            made = regression_tests(baselines, alphas, k=k, red_from=red_from, most=most)
            self._tests.update(zip(wanted, made, strict=True))

    def operation(self, key: Against, pass_rate: float) -> Operation:
        """What a test does with a task that passes so often."""
        found = self._operations.get((key, pass_rate))
        if found is None:
            self.make([key])
            found = self._operations[key, pass_rate] = self._tests[key].operation(pass_rate)
        return found
