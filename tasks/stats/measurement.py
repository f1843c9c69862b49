"""Trials in, numbers with their uncertainty out."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isnan
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from passgate.tasks.model.measurement import (
    Interval,
    Measurement,
    SuiteMeasurement,
    TaskMeasurement,
    TaskState,
    TrialViolation,
)
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import MEASURED, MeanMetrics, Trial, TrialMetrics, TrialStatus
from passgate.tasks.stats.decision import decide_by, score_of
from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k, percentile, suite_interval, wilson_interval

ACCEPTED: Final = "share accepted"
"""What the value of a suite is whose tasks are decided by sequential tests."""
_ESTIMATED: Final = {Metric.PASS_AT_K: "pass_at_k", Metric.PASS_HAT_K: "pass_hat_k"}


def measurement_of(tasks: Sequence[EvalTask], trials: Iterable[Trial]) -> Measurement:
    """The numbers of every planned task and suite. A planned trial that is not there is missing, like an error."""
    by_task: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_task[trial.task_id].append(trial)
    measured = measure_tasks(tasks, [sorted(by_task[task.task_id], key=lambda t: t.trial) for task in tasks])
    every = [trial for group in by_task.values() for trial in group]
    costs = [cost for trial in every for cost in (trial.metrics.cost, trial.unmeasured_cost) if cost is not None]
    return Measurement(
        suites=tuple(
            _suite(suite, [task for task in measured if task.suite is suite])
            for suite in Suite
            if any(task.suite is suite for task in measured)
        ),
        tasks=tuple(measured),
        latency_p95_seconds=percentile([time for task in measured for time in task.wall_times], 95),
        cost=sum(costs) if costs else None,
        isolation=tuple(sorted({trial.isolation for trial in every if trial.isolation})),
    )


def measure_tasks(tasks: Sequence[EvalTask], groups: Sequence[Sequence[Trial]]) -> list[TaskMeasurement]:
    """The numbers of tasks from the trials of each, in their order; those beyond the first k have only confirmed."""
    planned = [[trial for trial in group if trial.trial < task.k] for task, group in zip(tasks, groups, strict=True)]
    n = np.array([_count(group, TrialStatus.PASSED, TrialStatus.FAILED) for group in planned], dtype=np.int64)
    c = np.array([_count(group, TrialStatus.PASSED) for group in planned], dtype=np.int64)
    k = np.array([task.k for task in tasks], dtype=np.int64)
    estimates = zip(pass_at_k(n, c, k), pass_hat_k(n, c, k), strict=True)
    return [
        _task(task, first, group[len(first) :], _Estimates(float(any_of_k), float(all_of_k)))
        for task, first, group, (any_of_k, all_of_k) in zip(tasks, planned, groups, estimates, strict=True)
    ]


class _Estimates(NamedTuple):
    """NaN where fewer than k trials were measured."""

    pass_at_k: float
    pass_hat_k: float


def _task(
    task: EvalTask, trials: Sequence[Trial], confirming: Sequence[Trial], estimates: _Estimates
) -> TaskMeasurement:
    by_status = {status: [trial for trial in trials if trial.status is status] for status in TrialStatus}
    passed, failed, errors, not_run = (by_status[status] for status in TrialStatus)
    measured = [trial for trial in trials if trial.status in MEASURED]
    scores = [trial.score for trial in measured if trial.score is not None]
    state = decide_by(task, trials)
    stopped_early = any(trial.left_out for trial in not_run)
    missing = [*errors, *(trial for trial in not_run if not trial.left_out)]
    n = 0 if stopped_early else len(passed) + len(failed)
    return TaskMeasurement(
        suite=task.suite,
        task_id=task.task_id,
        file=task.file,
        line=task.line,
        task_digest=task.task_digest,
        grader_digest=task.grader_digest,
        metric=task.metric,
        sequential=task.sequential,
        k=task.k,
        planned=task.k,
        passed=len(passed),
        failed=len(failed),
        errors=len(errors),
        not_run=len(not_run),
        stopped_early=stopped_early,
        state=state,
        **_known_estimates(task, trials, state, estimates),
        score=score_of(task.metric, scores, task.k),
        pass_rate=len(passed) / n if n else None,
        pass_rate_interval=_interval(wilson_interval(n, len(passed) if n else 0)),
        failed_trials=tuple(trial.trial for trial in failed),
        error_trials=tuple(trial.trial for trial in errors),
        failure=failed[0].reason if failed else "",
        error=missing[0].reason if missing else "",
        violations=_violations([*trials, *confirming]),
        metrics=_mean_metrics(measured),
        tracked_metrics=task.tracked_metrics,
        wall_times=_known(measured, "wall_time_seconds"),
        costs=_known(measured, "cost"),
        unmeasured_cost=_unmeasured_cost(trials),
        models=tuple(sorted({name for trial in trials for name in trial.model.split(", ") if name})),
        confirming=tuple(trial.status is TrialStatus.PASSED for trial in confirming if trial.status in MEASURED),
        confirming_errors=sum(trial.status not in MEASURED and not trial.left_out for trial in confirming),
        reused_from=next((trial.reused_from for trial in trials if trial.reused_from), ""),
    )


def _known_estimates(
    task: EvalTask, trials: Sequence[Trial], state: TaskState, estimates: _Estimates
) -> dict[str, float | None]:
    """pass@k and pass^k. Where k trials are not there, because the task was decided without the others, its own of the
    two is 1 or 0: the OR rule has a pass among its k trials, the AND rule a failure, so with the others measured it
    would be the same. The other one is not known, nor are both where a sequential test decides: it would be an
    estimate from trials that were stopped because of how they had passed.
    """
    known = {name: None if isnan(value) else value for name, value in estimates._asdict().items()}
    only_not_run = all(trial.status is not TrialStatus.ERROR for trial in trials) and len(trials) == task.k
    if only_not_run and task.sequential is None and task.metric in _ESTIMATED:
        name = _ESTIMATED[task.metric]
        known[name] = state.indicator if known[name] is None else known[name]
    return known


def _violations(trials: Sequence[Trial]) -> tuple[TrialViolation, ...]:
    return tuple(
        TrialViolation(trial=trial.trial, rule=violation.rule, message=violation.message)
        for trial in trials
        for violation in trial.violations
    )


def _suite(suite: Suite, tasks: Sequence[TaskMeasurement]) -> SuiteMeasurement:
    values = [task.value for task in tasks if task.value is not None]
    value = fmean(values) if len(values) == len(tasks) else None
    costs = [cost for task in tasks for cost in (*task.costs, task.unmeasured_cost) if cost is not None]
    steps = [task.metrics.steps for task in tasks if task.metrics.steps is not None]
    smallest, largest = min(task.k for task in tasks), max(task.k for task in tasks)
    return SuiteMeasurement(
        suite=suite,
        tasks=len(tasks),
        tasks_passed=sum(task.state is TaskState.PASSED for task in tasks),
        tasks_undecided=sum(task.state is TaskState.UNDECIDED for task in tasks),
        trials_passed=sum(task.passed for task in tasks),
        trials_measured=sum(task.n for task in tasks),
        trials_error=sum(task.planned - task.n - task.not_run for task in tasks),
        trials_not_run=sum(task.not_run for task in tasks),
        metric=", ".join(sorted({str(task.metric) if task.sequential is None else ACCEPTED for task in tasks})),
        k=str(smallest) if smallest == largest else f"{smallest}-{largest}",
        value=value,
        interval=None if value is None else _interval(suite_interval(value, len(tasks))),
        steps=fmean(steps) if steps else None,
        cost=sum(costs) if costs else None,
        wall_time_seconds=sum(time for task in tasks for time in task.wall_times),
    )


def _mean_metrics(trials: Sequence[Trial]) -> MeanMetrics:
    known = {name: _known(trials, name) for name in TrialMetrics.model_fields}
    return MeanMetrics(**{name: fmean(values) if values else None for name, values in known.items()})


def _known(trials: Sequence[Trial], metric: str) -> tuple[float, ...]:
    values = (getattr(trial.metrics, metric) for trial in trials)
    return tuple(value for value in values if value is not None)


def _unmeasured_cost(trials: Sequence[Trial]) -> float | None:
    costs = [trial.unmeasured_cost for trial in trials]
    costs += [trial.metrics.cost for trial in trials if trial.status not in MEASURED]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _count(trials: Sequence[Trial], *statuses: TrialStatus) -> int:
    return sum(trial.status in statuses for trial in trials)


def _interval(bounds: tuple[float, float]) -> Interval:
    return Interval(low=bounds[0], high=bounds[1])
