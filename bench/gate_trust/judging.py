"""Many gates judged at once, by the tests that the gate uses."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tests.builders import measured, trials_of

from bench.gate_trust.regression_tests import FALLEN, OPEN, UNDECIDED, Key, RegressionTests
from bench.gate_trust.worlds import Booleans, Gates
from passgate.tasks.gates.evidence import alpha_of_one
from passgate.tasks.gates.guards import held_against

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """What came of some gates, by gate and task."""

    blocked: Booleans
    """The task blocks."""
    trials: Integers
    """That were run, the first k included."""

    @property
    def red(self) -> Booleans:
        return np.asarray(self.blocked.any(axis=1))


class Judge:
    """The tests of some gates. Their baselines are held against many runs."""

    def __init__(self, gates: Gates, tests: RegressionTests) -> None:
        self._tests, self._blocks = tests, gates.plan.gate_policy.regression.undecided == "block"
        tasks, policy = gates.plan.tasks, gates.plan.gate_policy
        failed = measured(*[(task, trials_of(task, "f" * task.k)) for task in tasks]).tasks
        places = {task.name: place for place, task in enumerate(tasks)}
        self._numbers: dict[Key, int] = {}
        self._of = np.full(gates.rates.shape, -1)
        """Which test each task has; -1 where its baseline does not guard it."""
        for gate in range(len(gates.rates)):
            held = held_against(policy, failed, gates.baseline(gate))
            alpha = alpha_of_one(policy.regression, len(held))
            for name, before in held.items():
                key = Key(before, alpha)
                self._of[gate, places[name]] = self._numbers.setdefault(key, len(self._numbers))

    @property
    def most(self) -> int:
        """The most trials of a task."""
        return self._tests.most

    def judged(self, now: Booleans) -> Judged:
        """Give every failed task its confirming trials, as the gate does."""
        k, most = self._tests.k, self._tests.most
        tested = ~now[..., :k].all(axis=-1) & (self._of >= 0)
        which, courses = self._of[tested], np.cumsum(~now[..., :most][tested], axis=-1)[:, k - 1 :]
        keys = list(self._numbers)
        wanted = np.unique(which)
        self._tests.prepare(keys[number] for number in wanted)
        answers, trials = np.zeros(len(courses), dtype=np.int8), np.full(len(courses), k)
        for number in wanted:
            rows = which == number
            said = self._tests.answers(keys[number])[np.arange(most - k + 1), courses[rows]]
            end = np.argmax(said != OPEN, axis=1)
            answers[rows] = said[np.arange(len(said)), end]
            trials[rows] = _in_rounds(courses[rows], k + end, k, self._tests.round_ends(keys[number]))
        found = Judged(np.zeros_like(tested), np.full(tested.shape, k))
        found.blocked[tested] = (answers == FALLEN) | ((answers == UNDECIDED) & self._blocks)
        found.trials[tested] = trials
        return found


def _in_rounds(courses: Integers, ends: Integers, k: int, round_ends: Integers) -> Integers:
    """How many trials have run when each test has ended: rounds go on until it has."""
    run = np.full(len(courses), k)
    while (going_on := run < ends).any():
        run[going_on] = round_ends[run[going_on] - k, courses[going_on, run[going_on] - k]]
    return run
