"""Many gates judged at once, by the tests that the gate uses."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tests.builders import measured, trials_of

from bench.gate_trust.regression_tests import FALLEN, OPEN, UNDECIDED, Key, RegressionTests
from bench.gate_trust.worlds import Booleans, Gates
from passgate.tasks.gates.evidence import LEAST_SLICE, SLICE, alpha_of_one, slice_of
from passgate.tasks.gates.guards import held_against
from passgate.tasks.gates.suite_evidence import tested_suites
from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.suite_regression import SuiteRegressionTest, trials_at

Integers = npt.NDArray[np.int64]


_Test = tuple[Key, Integers]
"""A test, and how many of a task's trials have failed by each number from k on."""


class _Tested(NamedTuple):
    """The failed tasks of a gate that have a test."""

    places: Integers
    tests: list[_Test]
    answers: npt.NDArray[np.int8]
    ends: Integers
    """After how many trials each test ends."""


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
        self._most_confirming = policy.most_confirming(sum(task.k for task in tasks))
        failed = measured(*[(task, trials_of(task, "f" * task.k)) for task in tasks]).tasks
        places = {task.name: place for place, task in enumerate(tasks)}
        self._numbers: dict[Key, int] = {}
        self._of = np.full(gates.rates.shape, -1)
        """Which test each task has; -1 where its baseline does not guard it."""
        self._suites: dict[bool, list[tuple[SuiteRegressionTest | None, Integers]]] = {True: [], False: []}
        """By whether a run is bounded: the test of a suite looks as often as the run may pay for."""
        free = policy.model_copy(update={"regression": policy.regression.model_copy(update={"max_confirming": 100.0})})
        measurement = measured(*[(task, trials_of(task, "f" * task.k)) for task in tasks])
        for gate in range(len(gates.rates)):
            baseline = gates.baseline(gate)
            held = held_against(policy, failed, baseline)
            for bounded, of_policy in ((True, policy), (False, free)):
                of_suite = [(one.test, one.tasks) for one in tested_suites(of_policy, measurement, baseline, ())]
                test, in_it = of_suite[0] if of_suite else (None, [])
                members = np.array([places[task.name] for task in in_it], dtype=np.int64)
                self._suites[bounded].append((test, members))
            alpha = alpha_of_one(policy, len(held))
            for name, before in held.items():
                key = Key(before, alpha)
                self._of[gate, places[name]] = self._numbers.setdefault(key, len(self._numbers))

    @property
    def most(self) -> int:
        """The most trials of a task."""
        return self._tests.most

    def judged(self, now: Booleans, bounded: bool = True) -> Judged:
        """Give every failed task its confirming trials, as the gate does; without a bound where not `bounded`, as a
        forecast counts them. `now` may hold the first gates alone.
        """
        k, most, of = self._tests.k, self._tests.most, self._of[: len(now)]
        tested = ~now[..., :k].all(axis=-1) & (of >= 0)
        which, courses = of[tested], np.cumsum(~now[..., :most][tested], axis=-1)[:, k - 1 :]
        keys = list(self._numbers)
        wanted = np.unique(which)
        self._tests.prepare(keys[number] for number in wanted)
        answers, ends = np.zeros(len(courses), dtype=np.int8), np.full(len(courses), k)
        for number in wanted:
            rows = which == number
            said = self._tests.answers(keys[number])[np.arange(most - k + 1), courses[rows]]
            ends[rows] = k + np.argmax(said != OPEN, axis=1)
            answers[rows] = said[np.arange(len(said)), ends[rows] - k]
        found = Judged(np.zeros_like(tested), np.full(tested.shape, k), np.zeros(len(now), dtype=bool))
        gates, places = np.nonzero(tested)
        for gate in range(len(now)):
            rows = np.flatnonzero(gates == gate)
            tests = [(keys[number], courses[row]) for number, row in zip(which[rows], rows, strict=True)]
            tasks = _Tested(places[rows], tests, answers[rows], ends[rows])
            self._run(gate, now[gate], tasks, found, bounded=bounded)
        return found

    def _run(self, gate: int, now: Booleans, tasks: _Tested, found: Judged, *, bounded: bool) -> None:
        """The rounds of one gate: until it is FAIL, until nothing is open, or until its confirming trials are spent."""
        k, trials = self._tests.k, found.trials[gate]
        most = self._most_confirming if bounded else trials.size * self._tests.most
        while True:
            run = trials[tasks.places]
            ended = tasks.ends <= run
            blocks = (tasks.answers == FALLEN) | ((tasks.answers == UNDECIDED) & self._blocks)
            found.blocked[gate, tasks.places] = ended & blocks
            look, finding = self._look(self._suites[bounded][gate], now, trials)
            found.suite_fallen[gate] = finding is Finding.FALLEN and not (ended & blocks).any()
            left = most - int((trials - k).sum())
            if (ended & blocks).any() or finding is Finding.FALLEN or left <= 0:
                return
            wanted = [(row, self._next_end(tasks.tests[row], int(run[row]))) for row in np.flatnonzero(~ended)]
            is_short, room = sum(end - run[row] for row, end in wanted) > left, left
            if is_short:
                wanted.sort(key=lambda pair: _unlikely(tasks.tests[pair[0]], int(run[pair[0]]), k))
                room = min(left, max(-(-left // SLICE), LEAST_SLICE))
            for row, end in wanted:
                more = end - int(run[row])
                more = slice_of(room, int(run[row]), more) if is_short else more
                trials[tasks.places[row]] += more
                room -= more
            if wanted:
                continue
            _, members = self._suites[bounded][gate]
            missing = np.maximum(trials_at(look, k) - trials[members], 0)
            if finding is not Finding.UNFINISHED or missing.sum() > left:
                return
            trials[members] += missing

    def _next_end(self, test: _Test, run: int) -> int:
        key, course = test
        return int(self._tests.round_ends(key)[run - self._tests.k, course[run - self._tests.k]])

    def _look(
        self, suite: tuple[SuiteRegressionTest | None, Integers], now: Booleans, trials: Integers
    ) -> tuple[int, Finding]:
        """The look at which the test of the suite ends, or that is missing, and what it says."""
        test, members = suite
        k = self._tests.k
        for look in range(test.looks if test else 0):
            size = trials_at(look, k)
            if (trials[members] < size).any():
                return look, Finding.UNFINISHED
            assert test is not None
            finding = test.conclude(look, int((~now[members, :size]).sum()))
            if finding is not Finding.UNFINISHED:
                return look, finding
        return 0, Finding.FITS


def _unlikely(test: _Test, run: int, k: int) -> float:
    key, course = test
    failed = int(course[run - k])
    return key.before.chance_of_so_few([False] * failed + [True] * (run - failed))
