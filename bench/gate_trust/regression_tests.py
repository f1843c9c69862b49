"""The tests of tasks against their baselines, each computed once."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.regression import Operation, RegressionTest, regression_tests

OPEN, FITS, FALLEN, UNDECIDED = range(4)
_CODES: Final = {
    Finding.UNFINISHED: OPEN,
    Finding.FITS: FITS,
    Finding.FALLEN: FALLEN,
    Finding.UNDECIDED: UNDECIDED,
}
_AT_ONCE = 100


class Key(NamedTuple):
    """What a test is made from beside k."""

    passed: int
    n: int
    alpha: float
    most: int


class RegressionTests:
    """The tests of tasks of one k under the AND rule."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._tests: dict[Key, RegressionTest] = {}
        self._answers: dict[Key, npt.NDArray[np.int8]] = {}
        self._operations: dict[tuple[Key, float], Operation] = {}

    def prepare(self, keys: Iterable[Key]) -> None:
        """Compute what will be asked for, many at once."""
        missing = sorted({key for key in keys if key not in self._tests})
        for most in {key.most for key in missing}:
            wanted = [key for key in missing if key.most == most]
            for start in range(0, len(wanted), _AT_ONCE):
                self._compute(wanted[start : start + _AT_ONCE], most)

    def _compute(self, keys: list[Key], most: int) -> None:
        baselines, alphas = [(key.passed, key.n) for key in keys], [key.alpha for key in keys]
        tests = regression_tests(baselines, alphas, k=self._k, red_from=1, most=most)
        self._tests.update(zip(keys, tests, strict=True))

    def answers(self, key: Key) -> npt.NDArray[np.int8]:
        """What a test concludes, as a code: a row per number of trials from k on, a column per number of failures."""
        if key not in self._answers:
            self.prepare([key])
            test = self._tests[key]
            table = np.zeros((test.most - test.k + 1, test.most + 1), dtype=np.int8)
            for n in range(test.k, test.most + 1):
                table[n - test.k, : n + 1] = [_CODES[test.conclude(n, failed)] for failed in range(n + 1)]
            self._answers[key] = table
        return self._answers[key]

    def round_ends(self, key: Key) -> npt.NDArray[np.int64]:
        """How many trials there are when the next round has run, in the same places; no more where a test has ended."""
        answers = self.answers(key)
        test, (looks, columns) = self._tests[key], answers.shape
        ends = np.tile((np.arange(looks) + self._k)[:, None], columns)
        for look, failed in np.argwhere(answers == OPEN):
            # Beyond as many failures as there are trials the table says nothing.
            if failed <= look + self._k:
                ends[look, failed] += test.next_trials(int(look) + self._k, int(failed))
        return ends

    def operation(self, key: Key, pass_rate: float) -> Operation:
        """Exactly what a test does with a task that passes so often."""
        if (key, pass_rate) not in self._operations:
            self.prepare([key])
            self._operations[key, pass_rate] = self._tests[key].operation(pass_rate)
        return self._operations[key, pass_rate]
