"""Measure: trials in, numbers with their uncertainty out."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

import numpy as np

from passgate.tasks.model.measurement import (
    Interval,
    Measurement,
    SuiteMeasurement,
    TaskMeasurement,
    TaskState,
    TrialViolation,
)
from passgate.tasks.model.metrics import MeanMetrics, TrialMetrics
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import MEASURED, Trial, TrialStatus
from passgate.tasks.stats.decision import decide, score_of
from passgate.tasks.stats.estimators import pass_at_k, pass_hat_k
from passgate.tasks.stats.intervals import suite_interval, wilson_interval
from passgate.tasks.stats.percentiles import percentile


def measure(tasks: Sequence[EvalTask], trials: Iterable[Trial]) -> Measurement:
    """The numbers of every planned task and suite. A planned trial that is not there is missing, like an error."""
    by_task: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_task[trial.task_id].append(trial)
    measured = measure_tasks(tasks, [sorted(by_task[task.task_id], key=lambda t: t.trial) for task in tasks])
    every = [trial for group in by_task.values() for trial in group]
    costs = [trial.metrics.cost for trial in every if trial.metrics.cost is not None]
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
    """The numbers of tasks from the trials of each."""
    n = np.array([_count(group, TrialStatus.PASSED, TrialStatus.FAILED) for group in groups], dtype=np.int64)
    c = np.array([_count(group, TrialStatus.PASSED) for group in groups], dtype=np.int64)
    k = np.array([task.k for task in tasks], dtype=np.int64)
    estimates = zip(pass_at_k(n, c, k), pass_hat_k(n, c, k), strict=True)
    return [
        _task(task, group, _defined(any_of_k), _defined(all_of_k))
        for task, group, (any_of_k, all_of_k) in zip(tasks, groups, estimates, strict=True)
    ]


def _task(task: EvalTask, trials: Sequence[Trial], any_of_k: float | None, all_of_k: float | None) -> TaskMeasurement:
    failed = [trial for trial in trials if trial.status is TrialStatus.FAILED]
    errors = [trial for trial in trials if trial.status in {TrialStatus.ERROR, TrialStatus.NOT_RUN}]
    passed = _count(trials, TrialStatus.PASSED)
    n = passed + len(failed)
    scores = [trial.score for trial in trials if trial.status in MEASURED and trial.score is not None]
    return TaskMeasurement(
        suite=task.suite,
        task_id=task.task_id,
        file=task.file,
        line=task.line,
        task_digest=task.task_digest,
        grader_digest=task.grader_digest,
        metric=task.metric,
        k=task.k,
        planned=task.k,
        passed=passed,
        failed=len(failed),
        errors=len(errors),
        state=decide(
            task.metric,
            passed=passed,
            failed=len(failed),
            planned=task.k,
            scores=scores,
            threshold=task.scoring.threshold,
        ),
        pass_at_k=any_of_k,
        pass_hat_k=all_of_k,
        score=score_of(task.metric, scores, task.k),
        pass_rate=passed / n if n else None,
        pass_rate_interval=_interval(wilson_interval(n, passed)),
        failed_trials=tuple(trial.trial for trial in failed),
        error_trials=tuple(trial.trial for trial in errors),
        failure=failed[0].reason if failed else "",
        error=errors[0].reason if errors else "",
        violations=tuple(
            TrialViolation(trial=trial.trial, rule=violation.rule, message=violation.message)
            for trial in trials
            for violation in trial.violations
        ),
        metrics=_mean_metrics(trials),
        tracked_metrics=task.tracked_metrics,
        wall_times=_known(trials, "wall_time_seconds"),
        costs=_known(trials, "cost"),
    )


def _suite(suite: Suite, tasks: Sequence[TaskMeasurement]) -> SuiteMeasurement:
    values = [task.value for task in tasks if task.value is not None]
    value = fmean(values) if len(values) == len(tasks) else None
    costs = [cost for task in tasks for cost in task.costs]
    steps = [task.metrics.steps for task in tasks if task.metrics.steps is not None]
    smallest, largest = min(task.k for task in tasks), max(task.k for task in tasks)
    return SuiteMeasurement(
        suite=suite,
        tasks=len(tasks),
        tasks_passed=sum(task.state is TaskState.PASSED for task in tasks),
        tasks_undecided=sum(task.state is TaskState.UNDECIDED for task in tasks),
        trials_passed=sum(task.passed for task in tasks),
        trials_measured=sum(task.n for task in tasks),
        trials_error=sum(task.planned - task.n for task in tasks),
        metric=", ".join(sorted({str(task.metric) for task in tasks})),
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


def _count(trials: Sequence[Trial], *statuses: TrialStatus) -> int:
    return sum(trial.status in statuses for trial in trials)


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(bounds: tuple[float, float]) -> Interval:
    return Interval(low=bounds[0], high=bounds[1])
