"""Latency and cost against the baseline, paired by task.

The plain figures alone would be red on an unchanged agent every few runs, so what a limit is held against is the
one-sided bound of the paired ratio; the plain figures stand beside it.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.baseline import Baseline, FiguresOfRuns, pooled
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import Limits, Rule
from passgate.tasks.model.verdict import Comparison, Reason
from passgate.tasks.stats.estimators import percentile
from passgate.tasks.stats.ratios import CONFIDENCE, Floats, paired_ratio, paired_tasks

LATENCY = "latency P95"
COST = "cost"
# 1 + 15 / 100 is not 1.15: a ratio that is just at the limit does not exceed it.
_ROUNDING = 1e-9
Booleans = npt.NDArray[np.bool_]
Figures = Mapping[str, tuple[Sequence[float], FiguresOfRuns]]
"""Of each task: its trials now and in the runs of the baseline."""


def compare_with_baseline(limits: Limits, measurement: Measurement, baseline: Baseline) -> tuple[Comparison, ...]:
    """The comparisons that the limits ask for and the baseline allows."""
    pairs = [(task, baseline.of(task.name)) for task in measurement.tasks]
    # Paired: a task without figures on one of the sides says nothing of a change.
    times = {task.name: (task.wall_times, before.wall_times) for task, before in pairs}
    times = {name: (now, before) for name, (now, before) in times.items() if now and pooled(before)}
    costs = {task.name: (task.costs, before.costs) for task, before in pairs}
    costs = {name: (now, before) for name, (now, before) in costs.items() if now and pooled(before)}
    percent, milliseconds = limits.latency_p95_increase_pct, limits.latency_p95_increase_ms
    texts = [f"+{limit:g} {unit}" for limit, unit in ((percent, "%"), (milliseconds, "ms")) if limit is not None]
    found = []
    if times and texts:
        earlier = percentile([value for _, before in times.values() for value in pooled(before)], 95)
        current = percentile([value for now, _ in times.values() for value in now], 95)
        found.append(_comparison(LATENCY, "s", earlier or 0.0, current or 0.0, times, " and ".join(texts)))
    if costs and limits.cost_increase_pct is not None:
        # Per trial, so that another number of trials is no other price.
        earlier = sum(fmean(pooled(before)) for _, before in costs.values())
        current = sum(fmean(now) for now, _ in costs.values())
        found.append(_comparison(COST, "$", earlier, current, costs, f"+{limits.cost_increase_pct:g} %"))
    return tuple(found)


def _comparison(name: str, unit: str, before: float, now: float, figures: Figures, limit: str) -> Comparison:
    current = {task: values for task, (values, _) in figures.items()}
    earlier = {task: runs for task, (_, runs) in figures.items()}
    ratio = paired_ratio(current, earlier)
    return Comparison(
        name=name,
        unit=unit,
        baseline=before,
        current=now,
        pairs=len(paired_tasks(current, earlier)),
        runs=len({run for _, runs in figures.values() for run in runs}),
        drift=ratio.drift if ratio else None,
        ratio=ratio.ratio if ratio else None,
        ratio_lower_bound=ratio.lower_bound if ratio else None,
        limit=limit,
        confidence=CONFIDENCE,
    )


def dear_after_nothing(measurement: Measurement, baseline: Baseline) -> int:
    """How many tasks cost something that cost 0 in every trial of the baseline: no ratio says by how much they rose."""
    pairs = [(task.costs, pooled(baseline.of(task.name).costs)) for task in measurement.tasks]
    return sum(bool(before) and not any(before) and any(now) for now, before in pairs)


def limit_reasons(limits: Limits, comparisons: tuple[Comparison, ...]) -> Iterator[Reason]:
    """A reason for every limit that the bound exceeds."""
    for comparison in comparisons:
        rule = Rule.LATENCY if comparison.name == LATENCY else Rule.COST
        bound = comparison.ratio_lower_bound
        if bound is not None and exceeds(limits, rule, np.asarray(bound), comparison.baseline).any():
            message = (
                f"{comparison.name} went from {comparison.baseline:.4g} to {comparison.current:.4g} {comparison.unit}; "
                f"compared task by task it is at least {bound:.3f} times the baseline (limit {comparison.limit})"
            )
            yield Reason(rule=rule, blocking=True, message=message)


def exceeds(limits: Limits, rule: Rule, bounds: Floats, before: float) -> Booleans:
    """Which lower bounds of a ratio are over the limits of latency or of cost, where the plain figure was `before`.

    A limit in milliseconds is held against the increase of the plain figure, in seconds, that a bound stands for.
    """
    percent, milliseconds = limits.cost_increase_pct, None
    if rule is Rule.LATENCY:
        percent, milliseconds = limits.latency_p95_increase_pct, limits.latency_p95_increase_ms
    exceeded: Booleans = np.zeros_like(bounds, dtype=bool)
    if percent is not None:
        exceeded = exceeded | (bounds > 1 + percent / 100 + _ROUNDING)
    if milliseconds is not None:
        exceeded = exceeded | (before * (bounds - 1) > milliseconds / 1000 + _ROUNDING)
    return exceeded
