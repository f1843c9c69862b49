"""Many gates judged at once, by the tests that the gate uses."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tests.builders import measured, trials_of

from bench.gate_trust.regression_tests import FALLEN, OPEN, UNDECIDED, Key, RegressionTests
from bench.gate_trust.worlds import Booleans, Gates
from passgate.tasks.gates.evidence import alpha_of_one
from passgate.tasks.gates.guards import held_against
from passgate.tasks.gates.suite_evidence import tested_suites
from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.suite_regression import SuiteRegressionTest, trials_at

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Judged:
    """What came of some gates, by gate and task."""

    blocked: Booleans
    """The task blocks."""
    trials: Integers
    """That were run, the first k included."""
    suite_fallen: Booleans
    """By gate alone: the suite has fallen, and no task has shown it."""

    @property
    def red(self) -> Booleans:
        return np.asarray(self.blocked.any(axis=1) | self.suite_fallen)


class Judge:
    """The tests of some gates. Their baselines are held against many runs."""

    def __init__(self, gates: Gates, tests: RegressionTests) -> None:
        young = gates.plan.policy.baseline.young
        self._tests = tests
        self._blocks = young == gates.plan.gate_policy.regression.undecided == "block"
        tasks, policy = gates.plan.tasks, gates.plan.gate_policy
        failed = measured(*[(task, trials_of(task, "f" * task.k)) for task in tasks]).tasks
        places = {task.name: place for place, task in enumerate(tasks)}
        self._numbers: dict[Key, int] = {}
        self._of = np.full(gates.rates.shape, -1)
        """Which test each task has; -1 where its baseline does not guard it."""
        self._suites: list[tuple[SuiteRegressionTest | None, Integers]] = []
        measurement = measured(*[(task, trials_of(task, "f" * task.k)) for task in tasks])
        for gate in range(len(gates.rates)):
            baseline = gates.baseline(gate)
            held = held_against(policy, failed, baseline)
            of_suite = [(one.test, one.tasks) for one in tested_suites(policy, measurement, baseline, ())]
            test, in_it = of_suite[0] if of_suite else (None, [])
            self._suites.append((test, np.array([places[task.name] for task in in_it], dtype=np.int64)))
            alpha = alpha_of_one(policy, len(held))
            for name, before in held.items():
                key = Key(before, alpha)
                self._of[gate, places[name]] = self._numbers.setdefault(key, len(self._numbers))

    @property
    def most(self) -> int:
        """The most trials of a task."""
        return self._tests.most

    def judged(self, now: Booleans) -> Judged:
        """Give every failed task its confirming trials, as the gate does. `now` may hold the first gates alone."""
        k, most, of = self._tests.k, self._tests.most, self._of[: len(now)]
        tested = ~now[..., :k].all(axis=-1) & (of >= 0)
        which, courses = of[tested], np.cumsum(~now[..., :most][tested], axis=-1)[:, k - 1 :]
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
        found = Judged(np.zeros_like(tested), np.full(tested.shape, k), np.zeros(len(now), dtype=bool))
        found.blocked[tested] = (answers == FALLEN) | ((answers == UNDECIDED) & self._blocks)
        found.trials[tested] = trials
        fallen = np.zeros_like(tested)
        fallen[tested] = answers == FALLEN
        for gate in np.flatnonzero(~fallen.any(axis=1)):
            self._look_at_suite(int(gate), now[gate], found)
        return found

    def _look_at_suite(self, gate: int, now: Booleans, found: Judged) -> None:
        """What the test of the suite says, and the trials that it takes more."""
        test, members = self._suites[gate]
        k = self._tests.k
        if test is None:
            return
        for look in range(test.looks):
            trials = trials_at(look, k)
            found.trials[gate, members] = np.maximum(found.trials[gate, members], trials)
            finding = test.conclude(look, int((~now[members, :trials]).sum()))
            if finding is not Finding.UNFINISHED:
                found.suite_fallen[gate] = finding is Finding.FALLEN
                return


def _in_rounds(courses: Integers, ends: Integers, k: int, round_ends: Integers) -> Integers:
    """How many trials have run when each test has ended: rounds go on until it has."""
    run = np.full(len(courses), k)
    while (going_on := run < ends).any():
        run[going_on] = round_ends[run[going_on] - k, courses[going_on, run[going_on] - k]]
    return run
