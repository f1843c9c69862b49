"""What a gate will do under one policy, and how often an unchanged agent exceeds its limits of latency and cost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from statistics import fmean
from typing import NamedTuple, TypeVar

from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions, trials_of
from passgate.tasks.forecasts.chances import GateChances, GateTask
from passgate.tasks.forecasts.first_trials import expected_trials
from passgate.tasks.forecasts.run_shifts import shifts_of
from passgate.tasks.forecasts.suite_chances import SuiteChances, TestsOfSuites
from passgate.tasks.forecasts.task_forecast import (
    ChancesByAdmission,
    ChancesOfTasks,
    RegressionTests,
    TaskChances,
    weighted_sum,
)
from passgate.tasks.gates.early_stopping import needless
from passgate.tasks.gates.limits import exceeds
from passgate.tasks.model.baseline import pooled
from passgate.tasks.model.forecast import AGENT_FALLS, FALLS, AgentFall, Catch, Cause, CurvePoint, Effort
from passgate.tasks.model.policy import VETOES, GatePolicy, Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.stats.estimators import percentile
from passgate.tasks.stats.ratios import Noise, Pair, simulated_bounds
from passgate.tasks.stats.run_effects import Floats

Item = TypeVar("Item")

_NO_TEST = SuiteChances(0.0, 0.0)
_NO_NOISE = Noise({}, 0.0, 0)


@dataclass(frozen=True)
class SimulatedLimits:
    """The bounds that simulated gates hold against their limits; `None` if nothing can be compared."""

    latency: Floats | None
    latency_p95_seconds: float  # at the baseline
    cost: Floats | None
    cost_per_trial: float  # at the baseline

    def chances(self, gate: GatePolicy) -> dict[Rule, float]:
        """How often each of a gate's blocking limits is exceeded."""
        found = {}
        if self.latency is not None:
            found[Rule.LATENCY] = exceeds(gate.limits, Rule.LATENCY, self.latency, self.latency_p95_seconds, 1)
        if self.cost is not None and gate.limits.cost_increase_pct is not None:
            found[Rule.COST] = exceeds(gate.limits, Rule.COST, self.cost, self.cost_per_trial, 1)
        return {rule: float(exceeded.mean()) for rule, exceeded in found.items() if rule in gate.blocks_on}


NO_LIMITS = SimulatedLimits(None, 0.0, None, 0.0)


def simulate_limits(
    tasks: Sequence[TaskAssumptions], noises: Mapping[Rule, Noise], gates: int, seed: int
) -> SimulatedLimits:
    """Simulate as many gates, with the noise that there was at the baseline."""
    known = [(task.name, task.failed.k, task.known) for task in tasks if task.known]
    times = {name: (pooled(before.wall_times), k) for name, k, before in known}
    costs = {name: (pooled(before.costs), k) for name, k, before in known}
    return SimulatedLimits(
        latency=_bounds(times, noises.get(Rule.LATENCY, _NO_NOISE), gates, seed),
        latency_p95_seconds=percentile([value for before, _ in times.values() for value in before], 95) or 0.0,
        # Another seed: with the same one, latency and cost would rise and fall together.
        cost=_bounds(costs, noises.get(Rule.COST, _NO_NOISE), gates, seed + 1),
        cost_per_trial=fmean(prices) if (prices := [fmean(before) for before, _ in costs.values() if before]) else 0.0,
    )


def _bounds(figures: Mapping[str, tuple[Sequence[float], int]], noise: Noise, gates: int, seed: int) -> Floats | None:
    """`figures` are those of each task at the baseline, and how many a run will have."""
    counted = {name: (sum(value > 0 for value in before), k) for name, (before, k) in figures.items()}
    pairs = [Pair(before, k, noise.spreads.get(name)) for name, (before, k) in counted.items() if before]
    return simulated_bounds(pairs, gates, seed, drift=noise.drift, runs=noise.runs)


class _RunChances(NamedTuple):
    """What comes of one run."""

    chances: GateChances
    suites: Mapping[Suite, SuiteChances]


class _Run(NamedTuple):
    """The runs that have one shift, with the pass rates that tasks have there."""

    setting: Setting
    tasks: ChancesOfTasks

    def fallen(self, index: int, rate: float) -> TaskChances:
        """The chances of a task that has fallen to a rate."""
        return self.tasks.of(self.setting.tasks[index], rate)

    def unchanged(self, suites: TestsOfSuites, limits: Mapping[Rule, float]) -> _RunChances:
        """What comes of tasks with their own rates."""
        rates = [task.rate for task in self.setting.tasks]
        return self._gate([self.tasks.by_admission(task) for task in self.setting.tasks], rates, suites, limits)

    def fallen_to(self, rates: Sequence[float], suites: TestsOfSuites, limits: Mapping[Rule, float]) -> _RunChances:
        """What comes of tasks that have all fallen to these rates."""
        tasks = zip(self.setting.tasks, rates, strict=True)
        return self._gate([self.tasks.by_admission(task, rate) for task, rate in tasks], rates, suites, limits)

    def _gate(
        self,
        chances: Sequence[ChancesByAdmission],
        rates: Sequence[float],
        suites: TestsOfSuites,
        limits: Mapping[Rule, float],
    ) -> _RunChances:
        tasks, gate = self.setting.tasks, self.setting.plan.gate_policy
        members = [GateTask(task.failed.suite, one) for task, one in zip(tasks, chances, strict=True)]
        of_suites = suites.chances({task.name: rate for task, rate in zip(tasks, rates, strict=True)})
        falls = {suite: one.fallen for suite, one in of_suites.items()}
        return _RunChances(GateChances(gate, members, limits, falls), of_suites)


class SettingForecast:
    """Everything that is computed for one policy. What nobody asks for is not computed."""

    def __init__(self, setting: Setting, limits: SimulatedLimits, tests: RegressionTests) -> None:
        self.setting = setting
        self._limits = limits.chances(setting.plan.gate_policy)
        self._shifts = shifts_of(setting.spread)
        self._runs = [self._shifted(place, tests) for place in range(len(self._shifts.values))]

    @cached_property
    def _suites(self) -> TestsOfSuites:
        return TestsOfSuites(self.setting, self._runs[0].tasks)

    @cached_property
    def _unchanged(self) -> list[_RunChances]:
        return [run.unchanged(self._suites, self._limits) for run in self._runs]

    @cached_property
    def task_chances(self) -> list[TaskChances]:
        """What comes of each task of an unchanged agent."""
        return [
            weighted_sum((run.tasks.of(run.setting.tasks[index]), weight) for run, weight in self._weighted(self._runs))
            for index in range(len(self.setting.tasks))
        ]

    def _shifted(self, place: int, tests: RegressionTests) -> "_Run":
        """A run with one of the shifts. What a task without a baseline would have there depends on its own rate."""
        tasks = tuple(
            one if one.known is None else replace(one, rate=self._shifts.rates(one.rate)[place])
            for one in self.setting.tasks
        )
        shifted = replace(self.setting, tasks=tasks)
        return _Run(shifted, ChancesOfTasks(shifted, tests))

    def _weighted(self, of_runs: Sequence[Item]) -> Iterator[tuple[Item, float]]:
        return zip(of_runs, self._shifts.weights, strict=True)

    def _mean(self, of_runs: Sequence[float]) -> float:
        return sum(value * weight for value, weight in self._weighted(of_runs))

    @cached_property
    def red(self) -> float:
        """How often the gate is FAIL on an unchanged agent."""
        return self._mean([one.chances.red for one in self._unchanged])

    @cached_property
    def red_error(self) -> float:
        """The standard error of `red`; 0 where it is computed."""
        return 0.0

    @cached_property
    def confirming(self) -> float:
        """How many confirming trials an unchanged agent is expected to get."""
        of_suites = self._mean([sum(suite.confirming for suite in one.suites.values()) for one in self._unchanged])
        return sum(chances.confirming for chances in self.task_chances) + of_suites

    @cached_property
    def confirming_error(self) -> float:
        """The standard error of `confirming`; 0 where it is computed."""
        return 0.0

    @cached_property
    def passed(self) -> float:
        """How often the gate is PASS on an unchanged agent."""
        return self._mean([one.chances.passed for one in self._unchanged])

    @property
    def vetoed(self) -> float:
        """How often it is FAIL by a veto."""
        vetoes = (sum(chances.red.get(rule, 0.0) for rule in VETOES) for chances in self.task_chances)
        return 1 - prod(1 - min(chance, 1.0) for chance in vetoes)

    @cached_property
    def able(self) -> list[int]:
        """Which tasks make the gate red by their failure, if they fall deep enough."""
        tasks = self.setting.tasks
        return [index for index, one in enumerate(tasks) if self._runs[0].tasks.of(one, 0.0).blocks > 0]

    @cached_property
    def effort(self) -> Effort:
        """The trials of an unchanged agent, and what they cost by the means of the baseline. A task whose cost or time
        is not known there gets the mean of the others.
        """
        tasks, request = self.setting.tasks, self.setting.plan.request
        planned_tasks = {task.name: task for task in self.setting.plan.tasks}
        first = [_first_trials(self.setting.plan, planned_tasks[task.name], task) for task in tasks]
        planned = sum(task.failed.k for task in tasks)
        trials = [one + chances.confirming for one, chances in zip(first, self.task_chances, strict=True)]
        seconds = _in_all(trials, [pooled(task.known.wall_times) if task.known else () for task in tasks])
        at_once = request.jobs or self.setting.plan.policy.concurrency.trials
        return Effort(
            planned=planned,
            confirming=self.confirming,
            saved=max(planned - sum(first), 0.0),
            cost=_in_all(trials, [pooled(task.known.costs) if task.known else () for task in tasks]),
            seconds=None if seconds is None else seconds / at_once,
        )

    def caught(self, index: int, fallen_to: float) -> float:
        """How often a task that has fallen makes the gate red by its own failure."""
        rates = self._shifts.rates(fallen_to)
        return self._mean([run.fallen(index, rate).blocks for run, rate in zip(self._runs, rates, strict=True)])

    def agent_falls(self, strict: "SettingForecast") -> tuple[AgentFall, ...]:
        """How often the gate is red if all tasks pass less often, beside a strict policy."""
        return tuple(
            AgentFall(share=share, red=self.red_if_all_keep(share), strict_red=strict.red_if_all_keep(share))
            for share in AGENT_FALLS
        )

    def red_if_all_keep(self, share: float) -> float:
        """How often the gate is red if every task passes this share of what it passed."""
        rates = [self._shifts.rates(one.rate * share) for one in self.setting.tasks]
        reds = [
            run.fallen_to([of_task[place] for of_task in rates], self._suites, self._limits).chances.red
            for place, run in enumerate(self._runs)
        ]
        return self._mean(reds)

    def catches(self, strict: "SettingForecast") -> tuple[Catch, ...]:
        """How surely one task is caught that falls to each of `FALLS`, beside a strict policy."""
        found = []
        for fallen_to in FALLS:
            falling = [index for index in self.able if self.setting.tasks[index].rate > fallen_to]
            caught = {index: self.caught(index, fallen_to) for index in falling}
            strictly = [strict.caught(index, fallen_to) for index in falling]
            worst = min(caught, key=lambda index: caught[index], default=None)
            found.append(
                Catch(
                    pass_rate=fallen_to,
                    tasks=len(falling),
                    mean=fmean(caught.values()) if caught else None,
                    worst=None if worst is None else caught[worst],
                    worst_task="" if worst is None else self.setting.tasks[worst].name,
                    strict_mean=fmean(strictly) if strictly else None,
                    strict_worst=min(strictly, default=None),
                )
            )
        return tuple(found)

    def causes(self) -> list[Cause]:
        """What makes the gate red on an unchanged agent, by rule and task, the most frequent first."""
        tasks = self.setting.tasks
        found = [
            Cause(rule=rule, task=task.name, chance=chance, share=0.0)
            for task, chances in zip(tasks, self.task_chances, strict=True)
            for rule, chance in chances.red.items()
        ]
        for suite in Suite:
            if any(task.failed.suite is suite for task in tasks):
                missed = self._mean([one.chances.threshold_missed(suite) for one in self._unchanged])
                fallen = self._mean([one.suites.get(suite, _NO_TEST).fallen for one in self._unchanged])
                found += [
                    Cause(rule=rule, suite=suite, chance=chance, share=0.0)
                    for rule, chance in ((Rule.THRESHOLD, missed), (Rule.SUITE_REGRESSION, fallen))
                ]
        found += [Cause(rule=rule, chance=chance, share=0.0) for rule, chance in self._limits.items()]
        return shared(found)

    def rules(self) -> list[Cause]:
        """The same by rule alone."""
        by_rule: dict[Rule, float] = defaultdict(float)
        for cause in self.causes():
            by_rule[cause.rule] += cause.chance
        return shared([Cause(rule=rule, chance=chance, share=0.0) for rule, chance in by_rule.items()])

    def red_at(self, rate: float, able: Sequence[int]) -> float:
        """How often the gate is red when one of these tasks has this pass rate and all others are unchanged."""
        return fmean(self._red_with(index, rate) for index in able) if able else self.red

    def _red_with(self, index: int, rate: float) -> float:
        """How often the gate is red when one task has this pass rate. The test of its suite is left as it is."""
        rates = self._shifts.rates(rate)
        reds = [
            one.chances.red_with(index, run.tasks.by_admission(run.setting.tasks[index], rates[place]))
            for place, (run, one) in enumerate(zip(self._runs, self._unchanged, strict=True))
        ]
        return self._mean(reds)

    def curve(self, strict: "SettingForecast", rates: Sequence[float]) -> tuple[CurvePoint, ...]:
        """The curve of the tasks that can block by falling, under this policy and under a strict one."""
        return tuple(
            CurvePoint(pass_rate=rate, red=self.red_at(rate, self.able), strict_red=strict.red_at(rate, self.able))
            for rate in rates
        )


def _first_trials(plan: Plan, task: EvalTask, assumed: TaskAssumptions) -> float:
    """How many of the first k trials are expected to be run."""
    # One pass decides the OR rule and one failure the AND rule. Whether early stopping then leaves out the rest depends
    # on the policy, so the gate's own code is asked.
    status = TrialStatus.PASSED if task.metric is Metric.PASS_AT_K else TrialStatus.FAILED
    stops = needless(plan, task, trials_of(task, status, 1)) is not None
    return expected_trials(assumed.rule, assumed.trials(plan.gate_policy), stops=stops)


def _in_all(trials: Sequence[float], figures: Sequence[Sequence[float]]) -> float | None:
    """The sum over the tasks of trials times the mean figure of each."""
    means = [fmean(values) if values else None for values in figures]
    known = [mean for mean in means if mean is not None]
    if not known:
        return None
    others = fmean(known)
    return sum(count * (others if mean is None else mean) for count, mean in zip(trials, means, strict=True))


def shared(causes: Sequence[Cause]) -> list[Cause]:
    """The causes that have a chance, each with its share of all, the most frequent first."""
    whole = sum(cause.chance for cause in causes)
    known = [cause.model_copy(update={"share": cause.chance / whole}) for cause in causes if cause.chance > 0]
    return sorted(known, key=lambda cause: (-cause.chance, cause.rule, cause.task))
