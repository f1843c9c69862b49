"""Simulate a gate: many runs of drawn trials at once, decided by the functions that decide a run.

What depends on a task's counts alone is asked of the gate once for each distinct pattern, and looked up for all runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.drawn_trials import FAILED, UNDECIDED, Booleans, Draws, FirstTrials, first_trials
from passgate.tasks.gates import evidence
from passgate.tasks.gates.decide import failed_tasks
from passgate.tasks.gates.guards import blocks_on_falls, exemptions, held_against
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.verdict import Confirmation, Finding
from passgate.tasks.stats.regression import Before, RegressionTest, regression_tests
from passgate.tasks.stats.suite_regression import trials_at

Integers = npt.NDArray[np.int64]

_OPEN, _FITS, _FALLEN, _UNDECIDED, _UNTESTED = range(5)
_AT_ONCE: Final = 60  # Tests that are computed together: more take too much memory


class TestKey(NamedTuple):
    """The arguments of a test; see `regression_tests`."""

    before: Before
    k: int
    red_from: int
    most: int
    alpha: float


class TaskTests:
    """The tests of tasks, each computed once: they take long, and policies that are compared share most of them."""

    def __init__(self) -> None:
        self._tests: dict[TestKey, RegressionTest] = {}
        self._answers: dict[TestKey, npt.NDArray[np.int8]] = {}

    def prepare(self, keys: Iterable[TestKey]) -> None:
        """Compute many tests together, in a fraction of the time that they take one by one."""
        alike: dict[tuple[int, int, int], list[TestKey]] = defaultdict(list)
        for key in sorted(set(keys) - self._tests.keys()):
            alike[key.k, key.red_from, key.most].append(key)
        for (k, red_from, most), group in alike.items():
            for start in range(0, len(group), _AT_ONCE):
                part = group[start : start + _AT_ONCE]
                baselines, alphas = [key.before for key in part], [key.alpha for key in part]
                tests = regression_tests(baselines, alphas, k=k, red_from=red_from, most=most)
                self._tests.update(zip(part, tests, strict=True))

    def test(self, key: TestKey) -> RegressionTest:
        """Return one test."""
        if key not in self._tests:
            self.prepare([key])
        return self._tests[key]

    def answers(self, key: TestKey) -> npt.NDArray[np.int8]:
        """Return what a test concludes: a row per number of trials from k on, a column per number of failures."""
        if key not in self._answers:
            fits, going_on, fallen = self.test(key).findings
            choices = [_FITS, _FALLEN, _OPEN]
            self._answers[key] = np.select([fits, fallen, going_on], choices, _UNDECIDED).astype(np.int8)
        return self._answers[key]


@dataclass(frozen=True)
class Runs:
    """What the gate has decided in simulated runs. Arrays are by run and task, or by run and suite."""

    trials: Integers  # Trials of each task that were measured, confirming ones included
    confirming: Integers  # By run alone
    blocked: Booleans  # The task blocks by its failure
    vetoed: Booleans  # A violation in the task blocks
    open: Booleans  # Errors leave the task undecided, so that evidence is missing
    suites_fallen: Booleans
    thresholds_missed: Booleans
    limits_exceeded: Mapping[Rule, Booleans]
    nothing_passed: Booleans  # By run alone: no trial passed and no failure blocks

    @cached_property
    def red(self) -> Booleans:
        """Return whether each run is FAIL."""
        parts = (self.blocked, self.vetoed, self.suites_fallen, self.thresholds_missed)
        return _any_of(*(part.any(axis=1) for part in parts), *self.limits_exceeded.values())

    @cached_property
    def inconclusive(self) -> Booleans:
        """Return whether each run is INCONCLUSIVE."""
        return ~self.red & (self.open.any(axis=1) | self.nothing_passed)


class _Courses(NamedTuple):
    """Of each failed task with a test: after how many trials it ends, and what it concludes then."""

    ends: Integers
    answers: npt.NDArray[np.int8]


class _SuiteLooks:
    """The test of a suite: what it concludes in each run, and at which look."""

    def __init__(
        self, tested: evidence.TestedSuite, places: Mapping[str, int], failures: npt.NDArray[np.int16]
    ) -> None:
        self.members = np.array([places[task.name] for task in tested.tasks])
        looks = range(tested.test.looks)
        self.sizes = np.array([[trials_at(look, task.k) for task in tested.tasks] for look in looks])
        failed = np.array([failures[sizes, :, self.members].sum(axis=0) for sizes in self.sizes])
        fits, fallen = (np.array(bounds)[:, None] for bounds in (tested.test.fits_below, tested.test.fallen_from))
        self._end = np.argmax((failed < fits) | (failed >= fallen), axis=0)
        self._has_fallen = failed >= fallen

    def conclude(self, trials: Integers) -> tuple[Booleans, Integers]:
        """Return the runs in which the suite has fallen, and by run and member the trials that its next look lacks."""
        enough = np.all(trials[None, :, self.members] >= self.sizes[:, None], axis=2).reshape(len(self.sizes), -1)
        reached = np.where(enough.all(axis=0), len(enough), np.argmin(enough, axis=0))
        is_open = self._end >= reached
        look = np.minimum(reached, len(enough) - 1)
        missing = np.maximum(self.sizes[look] - trials[:, self.members], 0)
        fallen = ~is_open & self._has_fallen[self._end, np.arange(len(trials))]
        return fallen, np.where(is_open[:, None], missing, 0)


class SimulatedGate:
    """A gate with one policy and one baseline."""

    def __init__(self, setting: Setting, baseline: Baseline, tests: TaskTests) -> None:
        self._setting, self._baseline, self._tests = setting, baseline, tests
        plan, self._policy = setting.plan, setting.plan.gate_policy
        self._tasks = tuple(task.failed for task in setting.tasks)
        measurement = Measurement(suites=(), tasks=self._tasks, latency_p95_seconds=None, cost=None, isolation=())
        exempt = exemptions(self._policy, plan.quarantine, measurement, baseline, plan.created_at.date())
        self.settled = np.array([task.name in exempt.settled for task in self._tasks], dtype=bool)
        self._exempt = np.array([task.name in exempt.tasks for task in self._tasks], dtype=bool)
        held = held_against(self._policy, self._tasks, baseline)
        most, alpha = self._policy.regression.max_trials, evidence.alpha_of_one(self._policy, len(held))
        self._most_confirming = self._policy.most_confirming(sum(task.k for task in self._tasks))
        self.keys = {
            place: TestKey(held[task.name], task.k, evidence.least_red_failures(task), most, alpha)
            for place, task in enumerate(self._tasks)
            if task.name in held and task.name not in exempt.settled and blocks_on_falls(self._policy, task)
        }
        self._places = {task.name: place for place, task in enumerate(self._tasks)}
        tested = (
            evidence.tested_suites(self._policy, measurement, baseline, exempt.settled)
            if self._policy.suites_alpha
            else ()
        )
        self._suites = list(tested)
        self._rules = cache(self._ask_rules)
        self._k = np.array([task.k for task in self._tasks], dtype=np.int64)
        looks = [trials_at(one.test.looks - 1, task.k) for one in self._suites for task in one.tasks]
        self._most = max([most if self.keys else 1, *looks, *self._k.tolist()])

    def run(
        self,
        rates: npt.ArrayLike,
        draws: Draws,
        *,
        limits: Mapping[Rule, Booleans] | None = None,
        violates: bool = True,
    ) -> Runs:
        """Simulate runs in which tasks have these pass rates, by task or by run and task. `limits` says in which runs
        each limit is exceeded. An agent that has fallen violates nothing: `violates` is false.
        """
        first = self._first(rates, draws, violates=violates)
        courses = self._courses(first)
        any_passed = first.passed_any
        untested = self._blocking(first, courses, any_passed) & (courses.answers == _UNTESTED)
        missed, exceeded = self._thresholds_missed(first), dict(limits or {})
        decided = _any_of(untested.any(axis=1), missed.any(axis=1), *exceeded.values())
        suites = {one.suite: _SuiteLooks(one, self._places, first.failures) for one in self._suites}
        trials, confirming, fallen = self._confirm(first, courses, suites, decided)
        is_open = courses.ends > trials
        # A run that has spent its confirming trials ends the tests that are still open undecided.
        spent = confirming >= self._most_confirming
        ended = courses._replace(answers=np.where(is_open, _UNDECIDED, courses.answers))
        blocked = self._blocking(first, ended, any_passed) & (~is_open | spent[:, None])
        failing = (first.state == FAILED).any(axis=1)
        blocks_on_failures = not {Rule.TASK_FAILED, Rule.GOLDEN_REGRESSION}.isdisjoint(self._policy.blocks_on)
        return Runs(
            trials=trials,
            confirming=confirming,
            blocked=blocked,
            vetoed=first.vetoed_from <= trials,
            open=(first.state == UNDECIDED) & ~self.settled,
            suites_fallen=fallen,
            thresholds_missed=missed,
            limits_exceeded=exceeded,
            nothing_passed=~any_passed & failing & ~blocked.any(axis=1) & blocks_on_failures,
        )

    def needed_tests(self, rates: npt.ArrayLike, draws: Draws) -> Iterator[TestKey]:
        """Yield the tests of the tasks that fail in any of these runs."""
        failed = (self._first(rates, draws, violates=True).state == FAILED).any(axis=0)
        return (key for place, key in self.keys.items() if failed[place])

    def own_blocks(self, rates: npt.ArrayLike, draws: Draws) -> Booleans:
        """Return, by run and task, whether the task blocks by its own failure, with all trials that its test wants."""
        first = self._first(rates, draws, violates=False)
        return self._blocking(first, self._courses(first), np.ones(draws.runs, dtype=bool))

    def expected_trials(self, rates: npt.ArrayLike, draws: Draws, stops: Booleans) -> npt.NDArray[np.float64]:
        """Return how many planned trials of each task are run where those in `stops` end once they are decided."""
        first = self._first(rates, draws, violates=True)
        ran = np.zeros(first.measured.shape, dtype=np.int64)
        for place, task in enumerate(self._tasks):
            failed = first.failures[: task.k, :, place]
            numbers = np.arange(task.k)[:, None]
            undecided = (failed == numbers) if task.metric is Metric.PASS_AT_K else (failed == 0)
            ran[:, place] = undecided.sum(axis=0) if stops[place] else task.k
        return np.asarray(ran.mean(axis=0))

    def rule(self, place: int) -> Rule | None:
        """Return the rule by which the failure of a task blocks; `None` where none does."""
        answers = (_FALLEN, _UNDECIDED) if place in self.keys else (_UNTESTED,)
        rules = (self._rules(answer, any_passed=passed)[place] for passed in (True, False) for answer in answers)
        return next(filter(None, rules), None)

    def _first(self, rates: npt.ArrayLike, draws: Draws, *, violates: bool) -> FirstTrials:
        return first_trials(self._setting, rates, draws, self._most, violates=violates)

    def _courses(self, first: FirstTrials) -> _Courses:
        """Follow the tests of failed tasks to their ends."""
        ends, answers = np.zeros_like(first.measured), np.full(first.state.shape, _UNTESTED, dtype=np.int8)
        for place, key in self.keys.items():
            runs = np.flatnonzero(first.state[:, place] == FAILED)
            if not len(runs):
                continue
            table = self._tests.answers(key)
            course = table[np.arange(len(table))[:, None], first.failures[key.k : key.k + len(table), runs, place]]
            end = np.argmax(course != _OPEN, axis=0)
            ends[runs, place], answers[runs, place] = key.k + end, course[end, np.arange(len(runs))]
        return _Courses(ends, answers)

    def _confirm(
        self, first: FirstTrials, courses: _Courses, suites: Mapping[Suite, _SuiteLooks], decided: Booleans
    ) -> tuple[Integers, Integers, Booleans]:
        """Confirm failures as a run does; return the trials by task, the confirming ones by run, fallen suites."""
        trials, confirming = first.measured.copy(), np.zeros(len(decided), dtype=np.int64)
        tested = courses.answers != _UNTESTED
        blocking = self._blocking(first, courses, first.passed_any) & tested
        while True:
            is_open = tested & (courses.ends > trials)
            # Trials that errors took from a task that passed count as made up for.
            looks = {suite: test.conclude(np.maximum(trials, self._k)) for suite, test in suites.items()}
            fallen = np.zeros((len(decided), len(Suite)), dtype=bool)
            for suite, (has_fallen, _) in looks.items():
                fallen[:, list(Suite).index(suite)] = has_fallen
            vetoed = (first.vetoed_from <= trials).any(axis=1)
            red = _any_of(decided, vetoed, (blocking & ~is_open).any(axis=1), fallen.any(axis=1))
            left = np.where(red, 0, self._most_confirming - confirming)
            wanted = np.where(is_open & (left > 0)[:, None], self._wanted(first, trials, is_open), 0)
            given = np.zeros_like(trials)
            asking = np.flatnonzero(wanted.any(axis=1))
            if len(asking):
                is_short = wanted[asking].sum(axis=1) > left[asking]
                rarity = np.zeros(wanted[asking].shape)
                rarity[is_short] = self._rarity(first, trials, wanted, asking[is_short])
                given[asking] = evidence.confirming_shares(left[asking], wanted[asking], trials[asking], rarity)
            # Suites come last, as in a run.
            idle_left = np.where(wanted.any(axis=1), 0, left)
            for suite, (_, missing) in looks.items():
                number = missing.sum(axis=1)
                paid = np.where(number <= idle_left, number, 0)
                given[:, suites[suite].members] += np.where((paid > 0)[:, None], missing, 0)
                idle_left = idle_left - paid
            if not given.any():
                return trials, confirming, fallen
            # The looks of suites count errors as made up for, and so do their trials.
            trials = np.where(given > 0, np.maximum(trials, np.where(is_open, trials, self._k)) + given, trials)
            confirming = confirming + given.sum(axis=1)

    def _wanted(self, first: FirstTrials, trials: Integers, is_open: Booleans) -> Integers:
        """Return how many trials the test of each open task asks for."""
        wanted = np.zeros_like(trials)
        for place in np.flatnonzero(is_open.any(axis=0)).tolist():
            key, runs = self.keys[place], np.flatnonzero(is_open[:, place])
            n = trials[runs, place]
            failed = first.failures[n, runs, place]
            round_ends = self._tests.test(key).round_ends[np.maximum(n - key.k, 0), failed]
            wanted[runs, place] = np.where(n < key.k, key.k, round_ends) - n
        return wanted

    def _rarity(
        self, first: FirstTrials, trials: Integers, wanted: Integers, runs: Integers
    ) -> npt.NDArray[np.float64]:
        """Return how rarely an unchanged task would do so badly, by run and task that asks for trials."""
        asking = wanted[runs] > 0
        rarity = np.ones(asking.shape)
        for place in np.flatnonzero(asking.any(axis=0)).tolist():
            rows = np.flatnonzero(asking[:, place])
            n = trials[runs[rows], place]
            failed, before = first.failures[n, runs[rows], place], self.keys[place].before
            rarity[rows, place] = [
                _chance_of_so_few(before, *one) for one in zip(n.tolist(), failed.tolist(), strict=True)
            ]
        return rarity

    def _blocking(self, first: FirstTrials, courses: _Courses, any_passed: Booleans) -> Booleans:
        """Return which failures block by what was found."""
        blocks = np.zeros(first.state.shape, dtype=bool)
        for passed in (True, False):
            rows = any_passed == passed
            if rows.any():
                known = [[rule is not None for rule in self._rules(one, any_passed=passed)] for one in range(5)]
                blocks[rows] = np.array(known)[courses.answers[rows], np.arange(len(self._tasks))]
        return np.asarray(blocks & (first.state == FAILED))

    def _ask_rules(self, answer: int, *, any_passed: bool) -> list[Rule | None]:
        """Return by which rule each task blocks when it has failed and its test has given an answer."""
        findings = {_FITS: Finding.FITS, _FALLEN: Finding.FALLEN, _UNDECIDED: Finding.UNDECIDED}
        if answer == _OPEN:
            return [None] * len(self._tasks)
        confirmed = {
            task.name: Confirmation(
                task=task.name,
                finding=findings[answer],
                passed=0,
                n=0,
                confirming=0,
                baseline_passed=int(key.before.passed),
                baseline_n=self._baseline.of(task.name).n,
                alpha=0.0,
            )
            for task, key in ((self._tasks[place], key) for place, key in self.keys.items())
            if answer in findings
        }
        reasons = failed_tasks(self._policy, self._tasks, self._baseline, confirmed, any_passed=any_passed)
        blocking = [one for one in reasons if one.blocking and one.rule in self._policy.blocks_on]
        rules = {f"{one.suite}/{one.task_id}": one.rule for one in blocking}
        pairs = zip(self._tasks, self.settled, strict=True)
        return [None if settled else rules.get(task.name) for task, settled in pairs]

    def _thresholds_missed(self, first: FirstTrials) -> Booleans:
        """Return, by run and suite, whether the value of a suite is below its threshold."""
        missed = np.zeros((len(first.state), len(Suite)), dtype=bool)
        if Rule.THRESHOLD not in self._policy.blocks_on:
            return missed
        for place, suite in enumerate(Suite):
            least = self._policy.thresholds.get(suite)
            counted = np.array([task.suite is suite for task in self._tasks], dtype=bool) & ~self._exempt
            if least is not None and counted.any():
                missed[:, place] = (first.state[:, counted] != FAILED).mean(axis=1) < least
        return missed


def _any_of(*parts: npt.ArrayLike) -> Booleans:
    return np.asarray(np.any(np.array(parts), axis=0))


@cache
def _chance_of_so_few(before: Before, n: int, failed: int) -> float:
    return before.chance_of_so_few([False] * failed + [True] * (n - failed))
