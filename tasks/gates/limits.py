"""Latency and cost against the baseline: of all tasks together, of each task, and the plain figure of the whole run.

The plain figures alone would be red on an unchanged agent every few runs, so what a limit is held against are one-sided
bounds of ratios; the plain figures stand beside them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from passgate.tasks.model.baseline import Baseline, FiguresOfRuns, all_figures
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import Limits, Rule
from passgate.tasks.model.verdict import Comparison, Reason, SlowerTask
from passgate.tasks.stats.estimators import percentile
from passgate.tasks.stats.ratios import (
    CONFIDENCE,
    Figures,
    p95,
    paired_figures,
    paired_ratios,
    plain_ratios,
    task_ratios,
    total,
)
from passgate.tasks.stats.run_effects import Floats, cells_of, run_effects

LATENCY = "latency P95"
COST = "cost"
# 1 + 15 / 100 is not 1.15: a ratio that is just at the limit does not exceed it.
_ROUNDING = 1e-9
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
    percent, milliseconds = limits.latency_p95_increase_pct, limits.latency_p95_increase_ms
    texts = [f"+{limit:g} {unit}" for limit, unit in ((percent, "%"), (milliseconds, "ms")) if limit is not None]
    found = []
    if times and texts:
        earlier = percentile([value for _, before in times.values() for value in all_figures(before)], 95)
        current = percentile([value for now, _ in times.values() for value in now], 95)
        plain = _Plain(LATENCY, "s", earlier or 0.0, current or 0.0, p95)
        found.append(_comparison(plain, times, limits, " and ".join(texts)))
    if costs and limits.cost_increase_pct is not None:
        # Per trial, so that another number of trials is no other price.
        earlier = sum(fmean(all_figures(before)) for _, before in costs.values())
        current = sum(fmean(now) for now, _ in costs.values())
        plain = _Plain(COST, "$", earlier, current, total)
        found.append(_comparison(plain, costs, limits, f"+{limits.cost_increase_pct:g} %"))
    return tuple(found)


class _Plain(NamedTuple):
    """What is known of the plain figures of both sides."""

    name: str
    unit: str
    before: float
    now: float
    statistic: Callable[[Floats], Floats]


def _comparison(plain: _Plain, figures: TaskFigures, limits: Limits, limit: str) -> Comparison:
    current = {task: values for task, (values, _) in figures.items()}
    compared = paired_figures(current, {task: runs for task, (_, runs) in figures.items()})
    comparison = Comparison(
        name=plain.name,
        unit=plain.unit,
        baseline=plain.before,
        current=plain.now,
        pairs=len(compared.tasks),
        runs=len({run for _, runs in figures.values() for run in runs}),
        ratio=None,
        ratio_lower_bound=None,
        limit=limit,
        confidence=CONFIDENCE,
    )
    if not compared.comparable:
        return comparison
    cells = cells_of(compared.before)
    effects = run_effects(cells)
    together, each = paired_ratios(compared, cells, effects), task_ratios(compared, cells)
    of_run = plain_ratios(plain.statistic, compared, cells, effects)
    ratio, plain_ratio = float(together.ratios[0]), plain.now / plain.before if plain.before else np.inf
    return comparison.model_copy(
        update={
            "drift": float(np.sqrt(effects.variance[0])),
            "persistence": float(effects.persistence[0]),
            "ratio": ratio,
            "ratio_lower_bound": min(float(together.bounds[0]), ratio),
            "plain_lower_bound": min(float(of_run.bounds[0]), plain_ratio),
            "slower_tasks": tuple(_slower(plain, compared, each.bounds[0], limits)),
        }
    )


def _slower(plain: _Plain, compared: Figures, bounds: Floats, limits: Limits) -> Iterator[SlowerTask]:
    """Yield the tasks that are over the limit of a single task, the worst first."""
    rule = Rule.LATENCY if plain.name == LATENCY else Rule.COST
    before, now = (
        np.exp([np.nanmean(of_task) for of_task in side[0]]).tolist() for side in (compared.before, compared.now)
    )
    # The bound is of another figure than the means that are shown: no reason may say more than these do.
    bounds = np.minimum(bounds, np.array(now) / np.array(before))
    exceeded = exceeds_of_a_task(limits, rule, bounds, np.array(before))
    for place in (place for place in np.argsort(-bounds).tolist() if exceeded[place]):
        yield SlowerTask(
            task=compared.tasks[place], baseline=before[place], current=now[place], lower_bound=float(bounds[place])
        )


def dear_after_nothing(measurement: Measurement, baseline: Baseline) -> int:
    """Return how many tasks cost something that cost 0 in every trial of the baseline: no ratio says by how much they
    rose.
    """
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
            task = tasks.get(slower.task)
            message = (
                f"{slower.task}: {rule} went from {_quantities(slower.baseline, slower.current, comparison.unit)} a "
                f"trial, {slower.current / slower.baseline:.3g} times the baseline; it is at least "
                f"{slower.lower_bound:.3g} times the baseline (limit of a task +{limits.task_increase_pct:g} %)"
            )
            yield Reason(
                rule=rule,
                blocking=slower.task not in exempt,
                message=message,
                file=task.file if task else None,
                line=task.line if task else None,
            )


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
    quantities = _quantities(comparison.baseline, comparison.current, comparison.unit)
    return f"{comparison.name} went from {quantities}; {'; '.join(texts)} (limit {comparison.limit})"


def _quantities(before: float, now: float, unit: str) -> str:
    return f"{before:.4g} to {now:.4g} {unit}"


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
