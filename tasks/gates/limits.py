"""Latency and cost against the baseline, paired by task.

The plain figures alone would be red on an unchanged agent every few runs, so a limit blocks only when the paired
ratio's one-sided bound exceeds it too.
"""

from collections.abc import Iterator, Sequence

from passgate.tasks.model.measurement import Baseline, Measurement
from passgate.tasks.model.policy import Limits, Rule
from passgate.tasks.model.verdict import Comparison, Reason
from passgate.tasks.stats.comparisons import paired_ratio
from passgate.tasks.stats.percentiles import percentile

LATENCY = "latency P95"
COST = "cost"

Figures = list[tuple[Sequence[float], Sequence[float]]]
"""Per task: its trials now and at the baseline."""


def compare_with_baseline(limits: Limits, measurement: Measurement, baseline: Baseline) -> tuple[Comparison, ...]:
    """The comparisons that the limits ask for and the baseline allows."""
    pairs = [
        (task, baseline.tasks[name])
        for task in measurement.tasks
        if (name := f"{task.suite}/{task.task_id}") in baseline.tasks
    ]
    times: Figures = [
        (task.wall_times, before.wall_times) for task, before in pairs if before.wall_times and task.wall_times
    ]
    costs: Figures = [(task.costs, before.costs) for task, before in pairs if before.costs and task.costs]
    found = []
    if times and (limits.latency_p95_increase_pct is not None or limits.latency_p95_increase_ms is not None):
        found.append(_latency(limits, times))
    if costs and limits.cost_increase_pct is not None:
        found.append(_cost(limits.cost_increase_pct, costs))
    return tuple(found)


def _latency(limits: Limits, figures: Figures) -> Comparison:
    texts = []
    if limits.latency_p95_increase_pct is not None:
        texts.append(f"+{limits.latency_p95_increase_pct:g} %")
    if limits.latency_p95_increase_ms is not None:
        texts.append(f"+{limits.latency_p95_increase_ms:g} ms")
    now, before = (percentile([value for task in figures for value in task[side]], 95) or 0.0 for side in (0, 1))
    return _comparison(LATENCY, "s", now, before, figures, " and ".join(texts))


def _cost(limit: float, figures: Figures) -> Comparison:
    """Costs are compared per trial, so that another number of trials is no other price."""
    now, before = (sum(sum(task[side]) / len(task[side]) for task in figures) for side in (0, 1))
    return _comparison(COST, "$", now, before, figures, f"+{limit:g} %")


def _comparison(name: str, unit: str, now: float, before: float, figures: Figures, limit: str) -> Comparison:
    ratio = paired_ratio([task[0] for task in figures], [task[1] for task in figures])
    return Comparison(
        name=name,
        unit=unit,
        baseline=before,
        current=now,
        pairs=len(figures),
        ratio=ratio.ratio if ratio else None,
        ratio_lower_bound=ratio.lower_bound if ratio else None,
        limit=limit,
    )


def limit_reasons(limits: Limits, comparisons: tuple[Comparison, ...]) -> Iterator[Reason]:
    """A reason for every limit that is exceeded beyond doubt."""
    for comparison in comparisons:
        rule = Rule.LATENCY if comparison.name == LATENCY else Rule.COST
        if any(_exceeded(comparison, percent, absolute) for percent, absolute in _limits_of(limits, rule)):
            yield Reason(
                rule=rule,
                blocking=True,
                message=(
                    f"{comparison.name} went from {comparison.baseline:.4g} to {comparison.current:.4g} "
                    f"{comparison.unit}, paired by task at least x{comparison.ratio_lower_bound:.3f} "
                    f"(limit {comparison.limit})"
                ),
            )


def _limits_of(limits: Limits, rule: Rule) -> list[tuple[float | None, float | None]]:
    """Each limit as (percent, absolute in the comparison's unit)."""
    if rule is Rule.COST:
        return [(limits.cost_increase_pct, None)]
    milliseconds = limits.latency_p95_increase_ms
    return [(limits.latency_p95_increase_pct, None), (None, None if milliseconds is None else milliseconds / 1000)]


def _exceeded(comparison: Comparison, percent: float | None, absolute: float | None) -> bool:
    bound = comparison.ratio_lower_bound
    if bound is None:
        return False
    increase = comparison.current - comparison.baseline
    if percent is not None:
        return increase > comparison.baseline * percent / 100 and bound > 1 + percent / 100
    return absolute is not None and increase > absolute and bound > 1
