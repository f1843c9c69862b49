"""How often the test of a whole suite finds it fallen where no test of a task does, by the tests that the gate uses.

The failures of a suite are those of its tasks in runs that the tasks' own tests do not block.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions
from passgate.tasks.forecasts.calm_tasks import CalmTask, Layer, TaskTest, calm_task, untested
from passgate.tasks.forecasts.first_trials import MOST_TRIALS
from passgate.tasks.forecasts.task_forecast import ChancesOfTasks
from passgate.tasks.gates.exemptions import exemptions
from passgate.tasks.gates.suite_evidence import TestedSuite, tested_suites
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.suite_regression import SuiteRegressionTest, trials_at

Floats = npt.NDArray[np.float64]

_DRAWS: Final = 24  # Of the baselines of tasks that have none
_SEED: Final = 0


class SuiteChances(NamedTuple):
    """Of one suite in one run, of which no task blocks."""

    fallen: float
    confirming: float
    """The trials that its test is expected to ask for beyond those of the tasks."""


class TestsOfSuites:
    """The tests of the suites of a setting, with every baseline that is looked at."""

    def __init__(self, setting: Setting, chances: ChancesOfTasks) -> None:
        baselines = list(_baselines(setting))
        self._share = 1 / max(len(baselines), 1)
        self._tested = [tested for baseline in baselines for tested in _tested(setting, baseline)]
        likely = {task.name: (task, _likely(setting, task)) for task in setting.tasks} if baselines else {}
        chances.prepare(likely.values())
        self._tests = {name: chances.blocking_test(*one) for name, one in likely.items()}

    def chances(self, rates: Mapping[str, float]) -> dict[Suite, SuiteChances]:
        """What the tests do with tasks of these pass rates, by `suite/task_id`: the mean over the baselines."""
        looks = max((tested.test.looks for tested in self._tested), default=0)
        names = {task.name: task.k for tested in self._tested for task in tested.tasks}
        calm = {name: _calm(self._tests[name], rates[name], k, looks) for name, k in names.items()}
        known: dict[tuple[str, ...], _Calm] = {}
        found: dict[Suite, SuiteChances] = {}
        for tested in self._tested:
            members = tuple(task.name for task in tested.tasks)
            if members not in known:
                known[members] = _Calm([calm[name] for name in members])
            fallen, confirming = known[members].course(tested.test)
            before = found.get(tested.suite, SuiteChances(0.0, 0.0))
            found[tested.suite] = SuiteChances(
                before.fallen + self._share * fallen, before.confirming + self._share * confirming
            )
        return found


def _likely(setting: Setting, task: TaskAssumptions) -> BaselineTask:
    """The baseline of a task; where it has none, the one that is expected."""
    if task.known is not None:
        return task.known
    n = setting.plan.policy.baseline.runs * task.failed.k
    return BaselineTask(state=BaselineState.GREEN, passed=round(task.rate * n), n=n)


@lru_cache(maxsize=4096)
def _calm(test: TaskTest | None, rate: float, k: int, looks: int) -> CalmTask:
    sizes = [trials_at(look, k) for look in range(looks)]
    return untested(rate, sizes) if test is None else calm_task(test, rate, sizes)


class _Calm:
    """The tasks of a suite in runs that their own tests do not block."""

    def __init__(self, tasks: Sequence[CalmTask]) -> None:
        self._first: Floats = reduce(np.convolve, [task.first for task in tasks])
        self._layers = [_together(layers) for layers in zip(*(task.layers for task in tasks), strict=True)]

    def course(self, test: SuiteRegressionTest) -> tuple[float, float]:
        """How often a test finds the suite fallen, and how many trials it asks for that no test of a task does."""
        fallen, confirming, reached = 0.0, 0.0, self._first
        for look in range(test.looks):
            findings = [test.conclude(look, failed) for failed in range(len(reached))]
            fallen += float(reached[[one is Finding.FALLEN for one in findings]].sum())
            live = np.where([one is Finding.UNFINISHED for one in findings], reached, 0.0)
            if look + 1 == test.looks or not live.any():
                break
            layer = self._layers[look]
            confirming += float(live.sum()) * (len(layer.failures) - 1 - layer.own)
            reached = _added(reached, live, layer)
        return fallen, confirming


def _together(layers: Sequence[Layer]) -> Layer:
    """A layer of a suite from those of its tasks, which are independent of each other."""
    return Layer(
        failures=reduce(np.convolve, [layer.failures for layer in layers]),
        variance=sum(layer.variance for layer in layers),
        covariance=sum(layer.covariance for layer in layers),
        own=sum(layer.own for layer in layers),
    )


def _added(before: Floats, live: Floats, layer: Layer) -> Floats:
    """The chances of each number of failures after a layer, of those that go on."""
    more, added, counts = layer.failures, np.arange(len(layer.failures)), np.arange(len(before))
    mean = more @ added
    spread = float(more @ (added - mean) ** 2)
    if not spread or not layer.variance:
        return np.convolve(live, more)
    # A task that has failed and is not blocked has passed later: the more failures there were, the fewer come. Each
    # number of failures tilts the chances of what comes, which moves their mean along the regression line.
    slope = layer.covariance / layer.variance
    middle = float(before @ counts / before.sum())
    after = np.zeros(len(before) + len(more) - 1)
    for failed in np.flatnonzero(live):
        tilted = more * np.exp(slope * (failed - middle) / spread * (added - mean))
        after[failed : failed + len(more)] += live[failed] * tilted / tilted.sum()
    return after


def _tested(setting: Setting, baseline: Baseline) -> Iterator[TestedSuite]:
    """The suites that a baseline guards, in a run that has measured every trial."""
    plan, gate = setting.plan, setting.plan.gate_policy
    measurement = Measurement(
        suites=(), tasks=tuple(task.failed for task in setting.tasks), latency_p95_seconds=None, cost=None, isolation=()
    )
    exempt = exemptions(gate, plan.quarantine, measurement, baseline, plan.created_at.date())
    # Without a share of alpha the test blocks nothing, and asks for no trials.
    return tested_suites(gate, measurement, baseline, exempt.settled) if gate.suites_alpha else iter(())


def _baselines(setting: Setting) -> Iterator[Baseline]:
    """The one that there is; where tasks have none, some that runs of such an agent give."""
    known = {task.name: task.known for task in setting.tasks if task.known is not None}
    unknown = [task for task in setting.tasks if task.known is None]
    if not setting.plan.gate_policy.suites_alpha:
        return
    rng = np.random.default_rng(_SEED)
    for _ in range(_DRAWS if unknown else 1):
        drawn = {task.name: _drawn(task, setting.plan.policy.baseline.runs, rng) for task in unknown}
        yield Baseline.model_construct(branch=setting.branch, tasks=known | drawn)


def _drawn(task: TaskAssumptions, runs: int, rng: np.random.Generator) -> BaselineTask:
    k = task.failed.k
    passed = rng.random((min(runs, max(1, MOST_TRIALS // k)), k)) < task.rate
    names = [f"{len(passed) - number:06}" for number in range(len(passed))]
    greens = [task.rule.is_green(k - int(count)) for count in passed.sum(axis=1)]
    counts = {name: (int(count), k) for name, count in zip(names, passed.sum(axis=1), strict=True)}
    # Without validation, which would take most of the time.
    return BaselineTask.model_construct(
        state=BaselineState.NONE if None in greens else state_of([bool(green) for green in greens]),
        runs=tuple(names),
        passed=int(passed.sum()),
        n=passed.size,
        counts=counts,
        newest=tuple(passed.reshape(-1).tolist()),
    )
