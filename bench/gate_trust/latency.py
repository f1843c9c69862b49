"""Section d: limits on latency and cost, held against figures that scatter from trial to trial."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tests.builders import a_baseline_task, a_plan, a_policy, a_task, a_trial

from bench.gate_trust.figures import Block, Figure, Target, share
from bench.gate_trust.setting import TASKS, Scale, shipped_gate
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import Policy, Rule
from passgate.tasks.model.trial import TrialMetrics
from passgate.tasks.stats.estimators import percentile
from passgate.tasks.stats.measurement import measurement_of
from passgate.tasks.stats.ratios import LEAST_PAIRS, paired_ratio

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]

SIGMAS = (0.3, 0.5, 0.8)
BEFORE = (60, 9, 6)
"""Baseline trials of a task."""
DEARER = 1.3
FEW = (5, LEAST_PAIRS, 10)
WHOLE_RUN = (0.05, 0.1, 0.2)
"""How much a whole run may be slower or faster than another, as a standard deviation of its logarithm."""
TARGETED_DRIFT = 0.1
"""Up to so much of it an unchanged agent must not be red more often than without any."""
MOST_RED = 0.02
LEAST_POWER = 0.9
_SAMPLE = 60
_K = 3


class Noise(NamedTuple):
    """What a trial takes: lognormal with the same median in all tasks."""

    sigma: float
    tasks: int = TASKS
    before: int = 60
    whole_run: float = 0.0


class _Found(NamedTuple):
    """Of an unchanged agent; per gate."""

    bound: Floats
    """Of the paired ratio; NaN where there is none."""
    p95: Floats
    """Now / before."""
    total: Floats
    same: int
    """Of a sample, how many gates were decided so by the gate's own code."""


def noisy(name: str, noise: Noise, scale: Scale) -> Block:
    """How often each rule is red on an unchanged agent, and on one of which every trial takes 30 % more."""
    found, targets = _simulated(noise, scale), noise.before == BEFORE[0] and noise.whole_run <= TARGETED_DRIFT
    limits = shipped_gate().limits
    latency, cost = 1 + (limits.latency_p95_increase_pct or 0) / 100, 1 + (limits.cost_increase_pct or 0) / 100
    figures = [
        *_paired(noise, found, "latency, paired", latency, targets=targets),
        share("latency, plain P95: red unchanged", found.p95 > latency),
        share("latency, plain P95: red at +30 %", found.p95 * DEARER > latency),
        *_paired(noise, found, "cost, paired", cost, targets=False),
        share("cost, plain total: red unchanged", found.total > cost),
        share("cost, plain total: red at +30 %", found.total * DEARER > cost),
    ]
    sampled = min(_SAMPLE, scale.gates)
    line = f"decided by the gate's own code: {found.same} of {sampled} gates the same"
    return Block(f"{name}: {_described(noise)}", figures, [line], [f"{name}: {line}"] if found.same < sampled else [])


def few_pairs(name: str, scale: Scale) -> Block:
    """Gates of few tasks."""
    limit = 1 + (shipped_gate().limits.latency_p95_increase_pct or 0) / 100
    enough = [tasks for tasks in FEW if tasks >= LEAST_PAIRS]
    figures = [
        figure
        for tasks in enough
        for sigma in SIGMAS
        for noise in [Noise(sigma, tasks)]
        for figure in _paired(noise, _simulated(noise, scale), f"{tasks} tasks, sigma {sigma}", limit)
    ]
    lines = [f"{tasks} tasks: not judged, a note says so" for tasks in FEW if tasks not in enough]
    return Block(f"{name}: latency, few tasks x {_K}, 60 baseline trials each", figures, lines)


def _paired(noise: Noise, found: _Found, what: str, limit: float, *, targets: bool = False) -> list[Figure]:
    return [
        share(
            f"{what}: red {at}",
            found.bound * factor > limit,
            target=target if targets else None,
        )
        for at, factor, target in (
            ("unchanged", 1.0, Target(MOST_RED)),
            (
                "at +30 %",
                DEARER,
                Target(LEAST_POWER, "at least") if noise.sigma == SIGMAS[0] and not noise.whole_run else None,
            ),
        )
    ]


def _simulated(noise: Noise, scale: Scale) -> _Found:
    rng = scale.generator("latency", noise)
    bounds, p95, totals, same = [], [], [], 0
    names = [f"t{number}" for number in range(noise.tasks)]
    for gate in range(scale.gates):
        now, before = _figures(noise, rng)
        current, baseline = (dict(zip(names, side, strict=True)) for side in (now.tolist(), _by_run(before)))
        ratio = paired_ratio(current, baseline)
        bounds.append(ratio.lower_bound if ratio else np.nan)
        p95.append(_percentile(now) / _percentile(before))
        totals.append(now.mean() / before.mean())
        if gate < _SAMPLE:
            same += _agrees(now, before, bounds[-1], p95[-1])
    return _Found(np.array(bounds), np.array(p95), np.array(totals), same)


def _figures(noise: Noise, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Of one gate: by task and trial, now and at the baseline. Each run may be slower or faster as a whole."""
    of_runs = rng.normal(0, noise.whole_run, noise.before // _K + 1)
    now = rng.normal(0, noise.sigma, (noise.tasks, _K)) + of_runs[0]
    before = rng.normal(0, noise.sigma, (noise.tasks, noise.before)) + np.repeat(of_runs[1:], _K)
    return np.exp(now), np.exp(before)


def _by_run(figures: Floats) -> list[dict[str, tuple[float, ...]]]:
    """Of each task, the baseline's figures by their run."""
    runs = range(0, figures.shape[1], _K)
    return [{str(first): tuple(task[first : first + _K]) for first in runs} for task in figures.tolist()]


def _percentile(figures: Floats) -> float:
    """By the nearest rank, as `percentile`, of which a sample is held against it."""
    flat, rank = figures.ravel(), max(0, -(-figures.size * 95 // 100) - 1)
    return float(np.partition(flat, rank)[rank])


def _agrees(now: Floats, before: Floats, bound: float, p95: float) -> bool:
    """Whether the gate says the same of trials that took so long and cost as much."""
    plan = a_plan(*(a_task(task_id=f"t{number}") for number in range(len(now))), policy=_policy())
    trials = [
        a_trial(task, number, metrics=TrialMetrics(wall_time_seconds=took, cost=took))
        for task, times in zip(plan.tasks, now.tolist(), strict=True)
        for number, took in enumerate(times)
    ]
    entries = {
        task.name: a_baseline_task(wall_times=times, costs=times)
        for task, times in zip(plan.tasks, _by_run(before), strict=True)
    }
    ruling = rule_on(plan, plan.gate_policy, measurement_of(plan.tasks, trials), Baseline(branch="main", tasks=entries))
    blocking = {reason.rule for reason in ruling.reasons if reason.blocking}
    limits = shipped_gate().limits
    expected = {
        rule
        for rule, percent in ((Rule.LATENCY, limits.latency_p95_increase_pct), (Rule.COST, limits.cost_increase_pct))
        if percent is not None and bound > 1 + percent / 100
    }
    plain = (percentile(now.ravel().tolist(), 95) or 0) / (percentile(before.ravel().tolist(), 95) or 1)
    return blocking == expected and abs(plain - p95) < 1e-9


def _policy() -> Policy:
    return a_policy(suites=["golden"], limits=shipped_gate().limits.model_dump(), admission=False)


def _described(noise: Noise) -> str:
    whole = f", whole runs by {noise.whole_run}" if noise.whole_run else ""
    return f"{noise.tasks} tasks x {_K}, {noise.before} baseline trials each, sigma {noise.sigma}{whole}"
