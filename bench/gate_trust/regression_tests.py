"""The tests of tasks against their baselines, each computed once."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.regression import Before, RegressionTest, regression_tests

OPEN, FITS, FALLEN, UNDECIDED = range(4)
_CODES: Final = {
    Finding.UNFINISHED: OPEN,
    Finding.FITS: FITS,
    Finding.FALLEN: FALLEN,
    Finding.UNDECIDED: UNDECIDED,
}
_AT_ONCE = 60


class Key(NamedTuple):
    """What a test is made from beside k and the most trials."""

    before: Before
    alpha: float


class RegressionTests:
    """The tests of tasks of one k under the AND rule."""

    def __init__(self, k: int, most: int) -> None:
        self.k, self.most = k, max(k, most)
        self._tests: dict[Key, RegressionTest] = {}
        self._answers: dict[Key, npt.NDArray[np.int8]] = {}

    def prepare(self, keys: Iterable[Key]) -> None:
        """Compute what will be asked for, many at once."""
        missing = sorted({key for key in keys if key not in self._tests})
        for start in range(0, len(missing), _AT_ONCE):
            part = missing[start : start + _AT_ONCE]
            baselines, alphas = [key.before for key in part], [key.alpha for key in part]
            tests = regression_tests(baselines, alphas, k=self.k, red_from=1, most=self.most)
            self._tests.update(zip(part, tests, strict=True))

    def answers(self, key: Key) -> npt.NDArray[np.int8]:
        """What a test concludes, as a code: a row per number of trials from k on, a column per number of failures."""
        if key not in self._answers:
            self.prepare([key])
            self._answers[key] = _answers(self._tests[key])
        return self._answers[key]

    def round_ends(self, key: Key) -> npt.NDArray[np.int64]:
        """How many trials there are when the next round has run, in the same places; no more where a test has ended."""
        self.prepare([key])
        return self._tests[key].round_ends


def _answers(test: RegressionTest) -> npt.NDArray[np.int8]:
    """As `RegressionTest.conclude`."""
    fits, going_on, fallen = test.findings
    return np.select([fits, fallen, going_on], [FITS, FALLEN, OPEN], UNDECIDED).astype(np.int8)
