"""How often the test of a whole suite finds it fallen where no test of a task does, by the tests that the gate uses.

The failures of a suite are those of its tasks in runs that the tasks' own tests do not block.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.task_forecast import ChancesOfTasks
from passgate.tasks.forecasts.unblocked_tasks import Layer, TaskTest, UnblockedTask, unblocked_task, untested
from passgate.tasks.gates.exemptions import exemptions
from passgate.tasks.gates.suite_evidence import TestedSuite, tested_suites
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Finding
from passgate.tasks.stats.suite_regression import SuiteRegressionTest, trials_at

Floats = npt.NDArray[np.float64]


class SuiteChances(NamedTuple):
    """Of one suite in one run, of which no task blocks."""

    fallen: float
    confirming: float
    """The trials that its test is expected to ask for beyond those of the tasks."""


class TestsOfSuites:
    """The tests of the suites of a setting in which every task has a baseline. In others there are none."""

    def __init__(self, setting: Setting, chances: ChancesOfTasks) -> None:
        known = {task.name: task.known for task in setting.tasks if task.known is not None}
        is_known = len(known) == len(setting.tasks)
        baseline = Baseline.model_construct(branch=setting.branch, young=setting.young, tasks=known)
        self._tested = list(_tested(setting, baseline)) if is_known else []
        tested = {task.name for one in self._tested for task in one.tasks}
        self._tests = {
            task.name: chances.blocking_test(task, known[task.name]) for task in setting.tasks if task.name in tested
        }

    def chances(self, rates: Mapping[str, float]) -> dict[Suite, SuiteChances]:
        """What the tests do with tasks of these pass rates, by `suite/task_id`."""
        looks = max((tested.test.looks for tested in self._tested), default=0)
        names = {task.name: task.k for tested in self._tested for task in tested.tasks}
        unblocked = {name: _unblocked(self._tests[name], rates[name], k, looks) for name, k in names.items()}
        suites = ((tested, _UnblockedSuite([unblocked[task.name] for task in tested.tasks])) for tested in self._tested)
        return {tested.suite: SuiteChances(*suite.course(tested.test)) for tested, suite in suites}


@lru_cache(maxsize=4096)
def _unblocked(test: TaskTest | None, rate: float, k: int, looks: int) -> UnblockedTask:
    sizes = [trials_at(look, k) for look in range(looks)]
    return untested(rate, sizes) if test is None else unblocked_task(test, rate, sizes)


class _UnblockedSuite:
    """The tasks of a suite in runs that their own tests do not block."""

    def __init__(self, tasks: Sequence[UnblockedTask]) -> None:
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
