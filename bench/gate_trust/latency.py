"""Section d: limits on latency and cost, held against figures that scatter from trial to trial and from run to run."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tests.builders import a_baseline_task, a_plan, a_policy, a_task, a_trial

from bench.gate_trust.figures import Block, Figure, Target, share
from bench.gate_trust.setting import RUNS, TASKS, Scale, shipped_gate
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.gates.limits import exceeds, exceeds_of_a_task
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import Limits, Policy, Rule
from passgate.tasks.model.trial import TrialMetrics
from passgate.tasks.stats.measurement import measure_trials
from passgate.tasks.stats.ratios import LEAST_PAIRS, P95, PAIRED, TOTAL, Figures, run_ratios, task_ratios

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

SIGMAS = (0.3, 0.5, 0.8)
THIN = (3, 2)
"""Runs at the baseline."""
FEW = (5, LEAST_PAIRS, 10)
WHOLE_RUN = ((0.05, 0.0), (0.1, 0.0), (0.2, 0.0), (0.1, 0.5), (0.2, 0.8))
"""By how much whole runs differ, as a standard deviation of logarithms, and the correlation of a run with the next."""
MOST_RED = 0.01
"""Of an unchanged agent, by latency and cost together."""
LEAST_POWER = 0.9
_CHUNK = 250
_SAMPLE = 15
_K = 3
_SECONDS, _DOLLARS = 10.0, 0.1  # What a trial takes and costs: far above the floors


class Noise(NamedTuple):
    """What a trial takes: lognormal with the same median in all tasks."""

    sigma: float
    tasks: int = TASKS
    runs: int = RUNS
    whole_run: float = 0.0
    persistence: float = 0.0


class Found(NamedTuple):
    """Which gates are red, by each kind of bound."""

    paired: Booleans
    task: Booleans
    plain: Booleans

    @property
    def any(self) -> Booleans:
        return self.paired | self.task | self.plain


def noisy(name: str, noise: Noise, scale: Scale) -> Block:
    """How often each bound is red on an unchanged agent, and on agents that have become slower or dearer."""
    limits, rng = shipped_gate().limits, scale.generator("latency", noise)
    gates = _figures(noise, scale.gates, rng)
    latency, same = _judged(gates, limits, Rule.LATENCY), _agreeing(gates, limits, min(_SAMPLE, scale.gates))
    cost = _judged(_figures(noise, scale.gates, rng), limits, Rule.COST)
    targets = noise.runs == RUNS
    figures = [
        *(share(f"latency unchanged: red, {kind}", getattr(latency, kind)) for kind in Found._fields),
        *(share(f"cost unchanged: red, {kind}", getattr(cost, kind)) for kind in Found._fields),
        share("latency or cost unchanged: red", latency.any | cost.any, target=Target(MOST_RED) if targets else None),
        *_changed(noise, gates, limits),
    ]
    sampled = min(_SAMPLE, scale.gates)
    line = f"decided by the gate's own code: {same} of {sampled} gates the same"
    return Block(f"{name}: {_described(noise)}", figures, [line], [f"{name}: {line}"] if same < sampled else [])


def few_pairs(name: str, scale: Scale) -> Block:
    """Gates of few tasks."""
    limits, figures = shipped_gate().limits, []
    enough = [tasks for tasks in FEW if tasks >= LEAST_PAIRS]
    for noise in (Noise(sigma, tasks) for tasks in enough for sigma in SIGMAS):
        gates = _figures(noise, scale.gates, scale.generator("latency", noise))
        label = f"latency, {noise.tasks} tasks, sigma {noise.sigma}"
        unchanged = _judged(gates, limits, Rule.LATENCY)
        slower = _judged(_slower(gates, 1.3), limits, Rule.LATENCY)
        figures += [
            share(f"{label}: red unchanged", unchanged.any),
            share(f"{label}: red at +30 %", slower.paired),
            share(f"{label}: one 10 x", _judged(_slower(gates, 10, 1), limits, Rule.LATENCY).task),
        ]
    lines = [f"{tasks} tasks: not judged, a note says so" for tasks in FEW if tasks not in enough]
    return Block(f"{name}: latency, few tasks x {_K}, {RUNS} runs at the baseline", figures, lines)


def busy(name: str, scale: Scale) -> Block:
    """Trials of half a second on a machine whose load changes from run to run."""
    noise, limits = Noise(0.3, whole_run=0.3, persistence=0.5), shipped_gate().limits
    gates = _figures(noise, scale.gates, scale.generator("busy", noise))
    none = limits.model_copy(update={"latency_floor_ms": 0.0})
    figures = [
        share(f"latency unchanged: red, {text}", _judged(gates, floor, Rule.LATENCY, level=0.5).any, target=most)
        for text, floor, most in (("floor as shipped", limits, Target(0.001)), ("no floor", none, None))
    ]
    return Block(f"{name}: trials of half a second, {_described(noise)}", figures)


def _changed(noise: Noise, gates: Figures, limits: Limits) -> list[Figure]:
    found = []
    steady = noise.sigma == SIGMAS[0] and noise.runs == RUNS
    concentrated = Target(LEAST_POWER, "at least") if noise.sigma < SIGMAS[-1] and noise.runs == RUNS else None
    for rule in (Rule.LATENCY, Rule.COST):
        slower = _judged(_slower(gates, 1.3), limits, rule)
        everywhere = Target(LEAST_POWER, "at least") if steady and not noise.whole_run else None
        found += [share(f"{rule}: red at +30 %", slower.any if rule is Rule.COST else slower.paired, target=everywhere)]
        found += [
            share(f"{rule}: {text}", _judged(changed, limits, rule).any, target=target)
            for text, changed, target in (
                ("one task 10 x", _slower(gates, 10, 1), concentrated),
                ("one task 3 x", _slower(gates, 3, 1), None),
                ("3 tasks 5 x", _slower(gates, 5, 3), concentrated),
                ("one trial of ten 10 x", _hanging(gates), None),
            )
        ]
    return found


def _slower(gates: Figures, factor: float, tasks: int | None = None) -> Figures:
    """With some of the tasks, or all, slower or dearer."""
    now = gates.now.copy()
    now[:, :tasks] += np.log(factor)
    return gates._replace(now=now)


def _hanging(gates: Figures) -> Figures:
    hangs = np.random.default_rng(1).random(gates.now.shape) < 0.1
    return gates._replace(now=gates.now + hangs * np.log(10))


def _figures(noise: Noise, gates: int, rng: np.random.Generator) -> Figures:
    """Logarithms by gate, task, run and trial. The run under test follows those of the baseline."""
    runs = rng.normal(0, 1, (gates, noise.runs + 1))
    for run in range(1, noise.runs + 1):
        runs[:, run] = noise.persistence * runs[:, run - 1] + np.sqrt(1 - noise.persistence**2) * runs[:, run]
    trials = rng.normal(0, noise.sigma, (gates, noise.tasks, noise.runs + 1, _K))
    trials += noise.whole_run * runs[:, None, :, None]
    return Figures(tuple(f"golden/t{task}" for task in range(noise.tasks)), trials[:, :, -1], trials[:, :, :-1])


def _judged(gates: Figures, limits: Limits, rule: Rule, level: float | None = None) -> Found:
    """By the functions that judge in a gate."""
    level = level or (_SECONDS if rule is Rule.LATENCY else _DOLLARS)
    parts = []
    for first in range(0, len(gates.now), _CHUNK):
        part = gates._replace(now=gates.now[first : first + _CHUNK], before=gates.before[first : first + _CHUNK])
        parts.append(_judged_part(part, limits, rule, level))
    return Found(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _judged_part(part: Figures, limits: Limits, rule: Rule, level: float) -> Found:
    pairs, statistic = len(part.tasks), P95 if rule is Rule.LATENCY else TOTAL
    means = level * np.exp(part.before.mean((-1, -2)))
    before = level * np.exp(statistic.logarithm(part.before.reshape(len(part.before), pairs, -1)))
    whole, of_run = (run_ratios(one, part).bounds for one in (PAIRED, statistic))
    each = np.asarray(exceeds_of_a_task(limits, rule, task_ratios(part), means).any(1))
    return Found(exceeds(limits, rule, whole, before, pairs), each, exceeds(limits, rule, of_run, before, pairs))


def _agreeing(gates: Figures, limits: Limits, sample: int) -> int:
    """Of how many gates the gate itself says the same, of trials that took so long."""
    found = 0
    for gate in range(sample):
        one = gates._replace(now=gates.now[[gate]] + np.log(1.25), before=gates.before[[gate]])
        found += bool(_judged(one, limits, Rule.LATENCY).any[0]) == _is_red(one)
    return found


def _is_red(one: Figures) -> bool:
    plan = a_plan(*(a_task(task_id=name.partition("/")[2]) for name in one.tasks), policy=_policy())
    now, before = _SECONDS * np.exp(one.now[0]), _SECONDS * np.exp(one.before[0])
    trials = [
        a_trial(task, number, metrics=TrialMetrics(wall_time_seconds=took))
        for task, times in zip(plan.tasks, now.tolist(), strict=True)
        for number, took in enumerate(times)
    ]
    entries = {
        task.name: a_baseline_task(wall_times={f"r{run:03}": tuple(of_run) for run, of_run in enumerate(runs)})
        for task, runs in zip(plan.tasks, before.tolist(), strict=True)
    }
    ruling = rule_on(plan, plan.gate_policy, measure_trials(plan.tasks, trials), Baseline(branch="main", tasks=entries))
    return Rule.LATENCY in {reason.rule for reason in ruling.reasons if reason.blocking}


def _policy() -> Policy:
    shipped = shipped_gate()
    blocks_on = [*shipped.blocks_on, Rule.LATENCY]  # as shipped latency is only reported
    return a_policy(suites=["golden"], limits=shipped.limits.model_dump(), admission=False, blocks_on=blocks_on)


def _described(noise: Noise) -> str:
    whole = f", whole runs by {noise.whole_run}" if noise.whole_run else ""
    lasting = f" that persist by {noise.persistence}" if noise.persistence else ""
    return f"{noise.tasks} tasks x {_K}, {noise.runs} runs at the baseline, sigma {noise.sigma}{whole}{lasting}"
