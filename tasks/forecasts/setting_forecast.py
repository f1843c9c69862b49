"""Forecast what a gate will do under one policy, from simulated runs."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from statistics import fmean
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions, trials_of
from passgate.tasks.forecasts.drawn_trials import Booleans, Draws, drawn_baseline, setting_seed
from passgate.tasks.forecasts.simulated_gate import Runs, SimulatedGate, TaskTests
from passgate.tasks.gates.guards import needless
from passgate.tasks.gates.limits import exceeds
from passgate.tasks.model.baseline import all_figures
from passgate.tasks.model.forecast import AGENT_FALLS, FALLS, AgentFall, Catch, Cause, CurvePoint, Effort
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.stats.estimators import percentile
from passgate.tasks.stats.ratios import FiguresOfTasks, Floats, estimate_noise, simulated_bounds

DRAWS: Final = 100  # Baselines that are drawn where tasks have none: what they say decides how the gate acts
_AT_ONCE: Final = 12_000  # Runs times tasks that are simulated together against a baseline that is known
_OF_THE_CURVE: Final = (10, 1_000)  # The most baselines and runs for each point of the curve: a plot shows no more
_Cause = tuple[Rule, Suite | None, str]  # A rule, and the suite or the task that it blocks on


@dataclass(frozen=True)
class SimulatedLimits:
    """The bounds that simulated gates hold against their limits; `None` if nothing can be compared."""

    latency: Floats | None
    latency_p95_seconds: float  # At the baseline
    cost: Floats | None
    cost_per_trial: float  # At the baseline

    def exceeded(self, gate: GatePolicy) -> dict[Rule, Booleans]:
        """Return in which runs each of a gate's blocking limits is exceeded."""
        found = {}
        if self.latency is not None:
            found[Rule.LATENCY] = exceeds(gate.limits, Rule.LATENCY, self.latency, self.latency_p95_seconds, 1)
        if self.cost is not None and gate.limits.cost_increase_pct is not None:
            found[Rule.COST] = exceeds(gate.limits, Rule.COST, self.cost, self.cost_per_trial, 1)
        return {rule: runs for rule, runs in found.items() if rule in gate.blocks_on}


NO_LIMITS = SimulatedLimits(None, 0.0, None, 0.0)


def simulate_limits(tasks: Sequence[TaskAssumptions], gates: int, seed: int) -> SimulatedLimits:
    """Simulate the bounds of a number of gates, with the noise that there was at the baseline."""
    known = {task.name: task.known for task in tasks if task.known}
    times = {name: before.wall_times for name, before in known.items()}
    costs = {name: before.costs for name, before in known.items()}
    prices = [fmean(figures) for runs in costs.values() if (figures := all_figures(runs))]
    return SimulatedLimits(
        latency=_bounds(times, gates, seed),
        latency_p95_seconds=percentile([value for runs in times.values() for value in all_figures(runs)], 95) or 0.0,
        # Another seed: with the same one, latency and cost would rise and fall together.
        cost=_bounds(costs, gates, seed + 1),
        cost_per_trial=fmean(prices) if prices else 0.0,
    )


def _bounds(figures: FiguresOfTasks, gates: int, seed: int) -> Floats | None:
    noise = estimate_noise(figures)
    return None if noise is None else simulated_bounds(noise, gates, seed)


@dataclass(frozen=True)
class Simulation:
    """How much is simulated, and what every policy that is compared has in common."""

    gates: int
    seed: int
    limits: SimulatedLimits = NO_LIMITS
    tests: TaskTests = field(default_factory=TaskTests)

    def sizes(self, setting: Setting) -> list[int]:
        """Return the numbers of runs against each drawn baseline, or in each part of those against a known one."""
        is_drawn = any(task.known is None for task in setting.tasks)
        parts = min(DRAWS, self.gates) if is_drawn else max(-(-self.gates * len(setting.tasks) // _AT_ONCE), 1)
        return [len(part) for part in np.array_split(np.arange(self.gates), parts)]


class SettingForecast:
    """What a gate will do with one setting. What nobody asks for is not simulated."""

    def __init__(self, setting: Setting, simulation: Simulation) -> None:
        self.setting, self._rates = setting, np.array([task.rate for task in setting.tasks])
        self._is_drawn = any(task.known is None for task in setting.tasks)
        self._parts: list[tuple[SimulatedGate, Draws, dict[Rule, Booleans]]] = []
        exceeded, begin = simulation.limits.exceeded(setting.plan.gate_policy), 0
        for number, size in enumerate(simulation.sizes(setting)):
            seed = (*setting_seed(setting, simulation.seed), number)
            if self._is_drawn or not number:
                baseline = drawn_baseline(setting, np.random.default_rng(seed))
                gate = SimulatedGate(setting, baseline, simulation.tests)
            limits = {rule: runs[begin : begin + size] for rule, runs in exceeded.items()}
            self._parts.append((gate, Draws(seed, size, len(setting.tasks)), limits))
            begin += size
        simulation.tests.prepare(key for gate, _, _ in self._parts for key in gate.keys.values())

    def _runs(self, rates: npt.ArrayLike, *, violates: bool) -> list[Runs]:
        return [gate.run(rates, draws, limits=limits, violates=violates) for gate, draws, limits in self._parts]

    @cached_property
    def _unchanged(self) -> list[Runs]:
        return self._runs(self._rates, violates=True)

    def _all(self, part: Callable[[Runs], npt.ArrayLike]) -> Floats:
        """Return a part of all unchanged runs, as numbers."""
        return np.concatenate([np.asarray(part(runs), dtype=float) for runs in self._unchanged])

    @cached_property
    def red(self) -> float:
        """Return how often the gate is FAIL on an unchanged agent."""
        return float(self._all(lambda runs: runs.red).mean())

    @property
    def red_error(self) -> float:
        """Return the standard error of `red`."""
        return self._standard_error(lambda runs: runs.red)

    @property
    def confirming_error(self) -> float:
        """Return the standard error of `confirming`."""
        return self._standard_error(lambda runs: runs.confirming)

    def _standard_error(self, part: Callable[[Runs], npt.ArrayLike]) -> float:
        """Return the standard error of the mean of a part: runs against one baseline depend on each other."""
        means = np.array([np.mean(np.asarray(part(runs), dtype=float)) for runs in self._unchanged])
        values = means if self._is_drawn else self._all(part)
        return float(values.std() / sqrt(max(len(values) - 1, 1)))

    @cached_property
    def inconclusive(self) -> float:
        """Return how often it is INCONCLUSIVE on an unchanged agent."""
        return float(self._all(lambda runs: runs.inconclusive).mean())

    @cached_property
    def confirming(self) -> float:
        """Return how many confirming trials an unchanged agent is expected to get."""
        return float(self._all(lambda runs: runs.confirming).mean())

    @cached_property
    def blocked(self) -> list[float]:
        """Return how often each task blocks, by its failure or by a violation."""
        return _column_means(self._all(lambda runs: runs.blocked | runs.vetoed))

    @cached_property
    def withheld(self) -> list[float]:
        """Return how likely it is of each task that it may not block but for a violation."""
        return _column_means(np.array([gate.settled for gate, _, _ in self._parts], dtype=float))

    @cached_property
    def vetoed(self) -> float:
        """Return how often the gate is FAIL by a violation."""
        return float(self._all(lambda runs: runs.vetoed.any(axis=1)).mean())

    @cached_property
    def able(self) -> list[int]:
        """Return which tasks make the gate red by their failure, if they fall to 0."""
        found = [gate.own_blocks(0 * self._rates, draws).any(axis=0) for gate, draws, _ in self._parts]
        return np.flatnonzero(np.any(found, axis=0)).tolist()

    @cached_property
    def effort(self) -> Effort:
        """Return the trials of an unchanged agent, with the means of the baseline as their cost and time."""
        setting, plan = self.setting, self.setting.plan
        # One pass decides the OR rule and one failure the AND rule. Whether early stopping then leaves out the rest
        # depends on the policy, so the gate's own code is asked.
        stops = []
        for task in plan.tasks:
            status = TrialStatus.PASSED if task.metric is Metric.PASS_AT_K else TrialStatus.FAILED
            stops.append(needless(plan, task, trials_of(task, status, 1)) is not None)
        decisive = np.array(stops, dtype=bool)
        first = np.mean([gate.expected_trials(self._rates, draws, decisive) for gate, draws, _ in self._parts], axis=0)
        k = np.array([task.failed.k for task in setting.tasks])
        trials = first + self._all(lambda runs: np.maximum(runs.trials - k, 0)).mean(axis=0)
        known = [task.known for task in setting.tasks]
        seconds = _in_all(trials, [all_figures(one.wall_times) if one else () for one in known])
        return Effort(
            planned=int(k.sum()),
            confirming=self.confirming,
            saved=max(float(k.sum() - first.sum()), 0.0),
            cost=_in_all(trials, [all_figures(one.costs) if one else () for one in known]),
            seconds=seconds and seconds / (plan.request.jobs or plan.policy.concurrency.trials),
        )

    def red_if_all_keep(self, share: float) -> float:
        """Return how often the gate is red if every task passes this share of what it passed."""
        runs = self._runs(self._rates * share, violates=False)
        return float(np.mean(np.concatenate([one.red for one in runs])))

    def agent_falls(self, strict: "SettingForecast") -> tuple[AgentFall, ...]:
        """Return how often the gate is red if all tasks pass less often, beside a strict policy."""
        return tuple(
            AgentFall(share=share, red=self.red_if_all_keep(share), strict_red=strict.red_if_all_keep(share))
            for share in AGENT_FALLS
        )

    def caught(self, fallen_to: float) -> list[float]:
        """Return how often each task that has fallen makes the gate red by its own failure."""
        rates = np.full(len(self._rates), fallen_to)
        return _column_means(np.concatenate([gate.own_blocks(rates, draws) for gate, draws, _ in self._parts]))

    def catches(self, strict: "SettingForecast") -> tuple[Catch, ...]:
        """Return how surely one task is caught that falls to each of `FALLS`, beside a strict policy."""
        found = []
        for fallen_to in FALLS:
            falling = [place for place in self.able if self._rates[place] > fallen_to]
            of_policy, of_strict = (one.caught(fallen_to) if falling else [] for one in (self, strict))
            caught, strictly = ([chances[place] for place in falling] for chances in (of_policy, of_strict))
            worst = min(caught, default=None)
            found.append(
                Catch(
                    pass_rate=fallen_to,
                    tasks=len(falling),
                    mean=fmean(caught) if caught else None,
                    worst=worst,
                    worst_task="" if worst is None else self.setting.tasks[falling[caught.index(worst)]].name,
                    strict_mean=fmean(strictly) if strictly else None,
                    strict_worst=min(strictly, default=None),
                )
            )
        return tuple(found)

    def curve(self, strict: "SettingForecast", rates: Sequence[float]) -> tuple[CurvePoint, ...]:
        """Return how often the gate is red, and a strict one, when one task that can block has each of these rates."""
        return tuple(
            CurvePoint(pass_rate=rate, red=self.red_at(rate, self.able), strict_red=strict.red_at(rate, self.able))
            for rate in rates
        )

    def red_at(self, rate: float, able: Sequence[int]) -> float:
        """Return how often the gate is red when one of these tasks has this rate, each in turn."""
        if not able:
            return self.red
        reds: list[Booleans] = []
        baselines, runs = _OF_THE_CURVE
        for gate, draws, limits in self._parts[:baselines]:
            rates = np.tile(self._rates, (draws.runs, 1))
            # The tasks take turns over all runs.
            turns = (np.arange(draws.runs) + sum(map(len, reds))) % len(able)
            rates[np.arange(draws.runs), np.array(able)[turns]] = rate
            reds.append(gate.run(rates, draws, limits=limits).red)
            if sum(map(len, reds)) >= runs:
                break
        return float(np.mean(np.concatenate(reds)))

    def causes(self) -> list[Cause]:
        """Return what makes the gate red on an unchanged agent, by rule and task, the most frequent first."""
        chances: dict[_Cause, float] = defaultdict(float)
        runs_in_all = sum(draws.runs for _, draws, _ in self._parts)
        for (gate, _, _), runs in zip(self._parts, self._unchanged, strict=True):
            for key, count in self._counts(gate, runs):
                chances[key] += count / runs_in_all
        return _shared(chances)

    def _counts(self, gate: SimulatedGate, runs: Runs) -> Iterator[tuple[_Cause, float]]:
        """Yield in how many of some runs each rule has blocked."""
        blocks_on = self.setting.plan.gate_policy.blocks_on
        blocked, vetoed = runs.blocked.sum(axis=0).tolist(), runs.vetoed.sum(axis=0).tolist()
        for place, task in enumerate(self.setting.tasks):
            if blocked[place] and (rule := gate.rule(place)) is not None:
                yield (rule, None, task.name), blocked[place]
            vetoes = {rule: share for rule, share in task.violations.items() if share and rule in blocks_on}
            for rule, share in vetoes.items():
                yield (rule, None, task.name), vetoed[place] * share / sum(vetoes.values())
        suites = {Rule.THRESHOLD: runs.thresholds_missed, Rule.SUITE_REGRESSION: runs.suites_fallen}
        for rule, of_suites in suites.items():
            for suite, count in zip(Suite, of_suites.sum(axis=0).tolist(), strict=True):
                yield (rule, suite, ""), count
        for rule, exceeded in runs.limits_exceeded.items():
            yield (rule, None, ""), float(exceeded.sum())

    def rules(self) -> list[Cause]:
        """Return the same by rule alone."""
        by_rule: dict[_Cause, float] = defaultdict(float)
        for cause in self.causes():
            by_rule[cause.rule, None, ""] += cause.chance
        return _shared(by_rule)


def _column_means(values: npt.NDArray[Any]) -> list[float]:
    return [float(mean) for mean in values.mean(axis=0)]


def _in_all(trials: Floats, figures: Sequence[Sequence[float]]) -> float | None:
    """Return the sum over the tasks of trials times the mean figure of each."""
    means = [fmean(values) if values else None for values in figures]
    known = [mean for mean in means if mean is not None]
    if not known:
        return None
    others = fmean(known)
    return float(trials @ np.array([others if mean is None else mean for mean in means]))


def _shared(chances: Mapping[_Cause, float]) -> list[Cause]:
    """Return the causes that have a chance, each with its share of all, the most frequent first."""
    whole = sum(chances.values())
    known = [
        Cause(rule=rule, suite=suite, task=task, chance=chance, share=chance / whole)
        for (rule, suite, task), chance in chances.items()
        if chance > 0
    ]
    return sorted(known, key=lambda cause: (-cause.chance, cause.rule, cause.task))
