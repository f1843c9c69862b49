"""Latency and cost against the baseline: of all tasks together, of each task, and the plain figure of the whole run.

Limits are held against one-sided bounds of ratios: the plain figures, which are shown beside them, would be red on an
unchanged agent every few runs.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.baseline import Baseline, FiguresOfRuns, all_figures
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import Limits, Rule
from passgate.tasks.model.verdict import Comparison, Reason, SlowerTask
from passgate.tasks.stats.estimators import percentile

if TYPE_CHECKING:
    from passgate.tasks.stats.ratios import Figures, Statistic

LATENCY = "latency P95"
COST = "cost"
# 1 + 15 / 100 is not 1.15: a ratio that is just at the limit does not exceed it.
_ROUNDING = 1e-9
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
TaskFigures = Mapping[str, tuple[Sequence[float], FiguresOfRuns]]
"""Of each task: its trials now and in the runs of the baseline."""


def compare_with_baseline(limits: Limits, measurement: Measurement, baseline: Baseline) -> tuple[Comparison, ...]:
    """Return the comparisons that the limits ask for and the baseline allows."""
    pairs = [(task, baseline.of(task.name)) for task in measurement.tasks]
    # Paired: a task without figures on one of the sides says nothing of a change.
    times = {task.name: (task.wall_times, before.wall_times) for task, before in pairs}
    times = {name: (now, before) for name, (now, before) in times.items() if now and all_figures(before)}
    costs = {task.name: (task.costs, before.costs) for task, before in pairs}
    costs = {name: (now, before) for name, (now, before) in costs.items() if now and all_figures(before)}
    if not times and not costs:
        return ()
    from passgate.tasks.stats import ratios  # Not needed by the first runs of a project

    percent, milliseconds = limits.latency_p95_increase_pct, limits.latency_p95_increase_ms
    texts = [f"+{limit:g} {unit}" for limit, unit in ((percent, "%"), (milliseconds, "ms")) if limit is not None]
    found = []
    if times and texts:
        earlier = percentile([value for _, before in times.values() for value in all_figures(before)], 95) or 0.0
        current = percentile([value for now, _ in times.values() for value in now], 95) or 0.0
        plain = {"name": LATENCY, "unit": "s", "baseline": earlier, "current": current, "limit": " and ".join(texts)}
        found.append(_comparison(plain, ratios.P95, times, limits))
    if costs and limits.cost_increase_pct is not None:
        # Per trial, so that another number of trials is no other price.
        earlier = sum(fmean(all_figures(before)) for _, before in costs.values())
        current = sum(fmean(now) for now, _ in costs.values())
        limit = f"+{limits.cost_increase_pct:g} %"
        plain = {"name": COST, "unit": "$", "baseline": earlier, "current": current, "limit": limit}
        found.append(_comparison(plain, ratios.TOTAL, costs, limits))
    return tuple(found)


def _comparison(plain: dict[str, Any], statistic: "Statistic", figures: TaskFigures, limits: Limits) -> Comparison:
    """Return a comparison with these plain figures, which a statistic gives for each run."""
    from passgate.tasks.stats import ratios

    current = {task: values for task, (values, _) in figures.items()}
    compared = ratios.paired_figures(current, {task: runs for task, (_, runs) in figures.items()})
    pairs, runs = len(compared.tasks), len({run for _, runs in figures.values() for run in runs})
    comparison = Comparison(
        **plain, pairs=pairs, runs=runs, ratio=None, ratio_lower_bound=None, confidence=ratios.CONFIDENCE
    )
    if not compared.comparable:
        return comparison
    paired, of_run = ratios.run_ratios(ratios.PAIRED, compared), ratios.run_ratios(statistic, compared)
    plain_ratio = comparison.current / comparison.baseline if comparison.baseline else np.inf
    return comparison.model_copy(
        update={
            "drift": float(paired.drift[0]),
            "persistence": float(paired.persistence[0]),
            "ratio": float(paired.ratios[0]),
            "ratio_lower_bound": float(paired.bounds[0]),
            "plain_lower_bound": min(float(of_run.bounds[0]), plain_ratio),
            "slower_tasks": tuple(_slower_tasks(comparison.name, compared, ratios.task_ratios(compared)[0], limits)),
        }
    )


def _slower_tasks(name: str, compared: "Figures", bounds: Floats, limits: Limits) -> Iterator[SlowerTask]:
    """Yield the tasks that are over the limit of a single task, the worst first."""
    rule = Rule.LATENCY if name == LATENCY else Rule.COST
    before, now = (
        np.exp([np.nanmean(of_task) for of_task in side[0]]).tolist() for side in (compared.before, compared.now)
    )
    # The bound is of another figure than the means that are shown: no reason may say more than these do.
    bounds = np.minimum(bounds, np.array(now) / np.array(before))
    exceeded = exceeds_of_a_task(limits, rule, bounds, np.array(before))
    for place in np.argsort(-bounds).tolist():
        if exceeded[place]:
            task, bound = compared.tasks[place], float(bounds[place])
            yield SlowerTask(task=task, baseline=before[place], current=now[place], lower_bound=bound)


def dear_after_nothing(measurement: Measurement, baseline: Baseline) -> int:
    """Return how many tasks cost something that cost 0 in every trial of the baseline: their rise has no ratio."""
    pairs = [(task.costs, all_figures(baseline.of(task.name).costs)) for task in measurement.tasks]
    return sum(bool(before) and not any(before) and any(now) for now, before in pairs)


def limit_reasons(
    limits: Limits, comparisons: tuple[Comparison, ...], measurement: Measurement, exempt: Collection[str] = ()
) -> Iterator[Reason]:
    """Yield a reason for every limit that a bound exceeds. Of single tasks, those that are exempt do not block."""
    tasks = {task.name: task for task in measurement.tasks}
    for comparison in comparisons:
        rule = Rule.LATENCY if comparison.name == LATENCY else Rule.COST
        if (found := _whole_run(limits, rule, comparison)) is not None:
            yield Reason(rule=rule, blocking=True, message=found)
        for slower in comparison.slower_tasks:
            task, blocking = tasks.get(slower.task), slower.task not in exempt
            message = (
                f"{slower.task}: {rule} went from {slower.baseline:.4g} to {slower.current:.4g} {comparison.unit} a "
                f"trial, {slower.current / slower.baseline:.3g} times the baseline; it is at least "
                f"{slower.lower_bound:.3g} times the baseline (limit of a task +{limits.task_increase_pct:g} %)"
            )
            file, line = (task.file, task.line) if task else (None, None)
            yield Reason(rule=rule, blocking=blocking, message=message, file=file, line=line)


def _whole_run(limits: Limits, rule: Rule, comparison: Comparison) -> str | None:
    """Return which bounds of the whole run are over the limit, in words."""
    texts = []
    for bound, text in (
        (comparison.ratio_lower_bound, "compared task by task it is at least {:.3f} times the baseline"),
        (comparison.plain_lower_bound, "the figure itself is at least {:.3f} times that of the baseline's runs"),
    ):
        before, pairs = comparison.baseline, comparison.pairs
        if bound is not None and exceeds(limits, rule, np.asarray(bound), before, pairs).any():
            texts.append(text.format(bound))
    if not texts:
        return None
    quantities = f"{comparison.baseline:.4g} to {comparison.current:.4g} {comparison.unit}"
    return f"{comparison.name} went from {quantities}; {'; '.join(texts)} (limit {comparison.limit})"


def exceeds_of_a_task(limits: Limits, rule: Rule, bounds: Floats, before: Floats) -> Booleans:
    """Return which lower bounds of single tasks exceed their limit, where a trial of the task took or cost `before`."""
    if limits.task_increase_pct is None:
        return np.zeros_like(bounds, dtype=bool)
    return (bounds > 1 + limits.task_increase_pct / 100 + _ROUNDING) & _above_floor(limits, rule, before, bounds)


def exceeds(limits: Limits, rule: Rule, bounds: Floats, before: Floats | float, pairs: int) -> Booleans:
    """Return which lower bounds of a ratio are over the limits of latency or of cost, where the plain figure was
    `before`.

    A limit in milliseconds is held against the increase of the plain figure, in seconds, that a bound stands for. So is
    the floor of a limit in percent; that of cost is for one trial, and the plain figure has one trial of each task.
    """
    percent, milliseconds = limits.cost_increase_pct, None
    if rule is Rule.LATENCY:
        percent, milliseconds = limits.latency_p95_increase_pct, limits.latency_p95_increase_ms
    exceeded: Booleans = np.zeros_like(bounds, dtype=bool)
    if percent is not None:
        of_one = before if rule is Rule.LATENCY else before / max(pairs, 1)
        above = _above_floor(limits, rule, of_one, bounds)
        exceeded = exceeded | ((bounds > 1 + percent / 100 + _ROUNDING) & above)
    if milliseconds is not None:
        exceeded = exceeded | (before * (bounds - 1) > milliseconds / 1000 + _ROUNDING)
    return exceeded


def _above_floor(limits: Limits, rule: Rule, before: Floats | float, bounds: Floats) -> Booleans:
    """Return whether the increase that a bound stands for is more than one that never blocks."""
    floor = limits.latency_floor_ms / 1000 if rule is Rule.LATENCY else limits.cost_floor_usd
    return np.asarray(before * (bounds - 1) > floor + _ROUNDING)
