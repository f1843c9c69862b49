"""Trials in, the states and the numbers of tasks and suites with their intervals out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import isnan
from operator import attrgetter
from statistics import fmean
from typing import Final, NamedTuple, assert_never

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
from passgate.tasks.stats import estimators

_ROUNDING: Final = 1e-9  # The mean of scores that all equal the threshold may come out a hair below it
_ESTIMATED: Final = {Metric.PASS_AT_K: "pass_at_k", Metric.PASS_HAT_K: "pass_hat_k"}


def decide(
    metric: Metric,
    *,
    passed: int,
    failed: int,
    planned: int,
    scores: Sequence[float] = (),
    threshold: float = 0.8,
    needed: int = 1,
) -> TaskState:
    """Return the state of a task by the rule of its metric. pass^k is the AND rule: all planned trials pass. pass@k is
    the OR rule: one of them passes, or `needed` where several runs count together. The other two compare the scores of
    the measured trials with the threshold: their mean, or the lower end of its interval.

    Trials that neither passed nor failed are missing; a task that they could still turn is undecided.
    """
    missing = planned - passed - failed
    match metric:
        case Metric.PASS_HAT_K:
            if failed:
                return TaskState.FAILED
            # Never a pass without a trial that passed, not even where none was planned.
            return TaskState.UNDECIDED if missing or not passed else TaskState.PASSED
        case Metric.PASS_AT_K:
            if passed >= needed:
                return TaskState.PASSED
            return TaskState.UNDECIDED if passed + missing >= needed or not failed else TaskState.FAILED
        case Metric.MEAN:
            # A score lies in 0..1, so these are the least and the greatest mean that the missing trials can make.
            worst, best = ([*scores, *[bound] * (planned - len(scores))] for bound in (0.0, 1.0))
            return _between(fmean(worst), fmean(best), threshold) if scores else TaskState.UNDECIDED
        case Metric.CONFIDENCE_INTERVAL:
            # A missing score could move the bound to either side, and a single score has no interval.
            if len(scores) < max(planned, 2):
                return TaskState.UNDECIDED
            bound = estimators.mean_lower_bound(scores)
            return _between(bound, bound, threshold)
        case _:
            assert_never(metric)


def decide_by(task: EvalTask, trials: Iterable[Trial]) -> TaskState:
    """Return the state of a task by its first k trials, as `decide`; trials that were not measured are missing."""
    measured = [trial for trial in trials if trial.status in MEASURED and trial.trial < task.k]
    passed = sum(trial.status is TrialStatus.PASSED for trial in measured)
    return decide(
        task.metric,
        passed=passed,
        failed=len(measured) - passed,
        planned=task.k,
        scores=[trial.score for trial in measured if trial.score is not None],
        threshold=task.scoring.threshold,
    )


def task_score(metric: Metric, scores: Sequence[float], k: int) -> float | None:
    """Return the value of a task by its trials' scores: their mean, or the lower end of its interval for
    `confidence_interval`. `None` with fewer than k scores, or too few for an interval.
    """
    if len(scores) < k:
        return None
    if metric is Metric.CONFIDENCE_INTERVAL:
        return estimators.mean_lower_bound(scores) if len(scores) > 1 else None
    return fmean(scores)


def _between(least: float, most: float, threshold: float) -> TaskState:
    if least >= threshold - _ROUNDING:
        return TaskState.PASSED
    return TaskState.FAILED if most < threshold - _ROUNDING else TaskState.UNDECIDED


def measure_trials(tasks: Sequence[EvalTask], trials: Iterable[Trial], earlier: Iterable[Trial] = ()) -> Measurement:
    """Return the numbers of every planned task and suite. A planned trial without a result counts as missing.

    The measured trials of `earlier` runs of the same commit, which `reused_from` names, count together with those of
    this run. Whether they were planned or confirming, their own k tells.
    """
    by_task, earlier_by_task = defaultdict[str, list[Trial]](list), defaultdict[str, list[Trial]](list)
    for trial in trials:
        by_task[trial.task_id].append(trial)
    for trial in earlier:
        earlier_by_task[trial.task_id].append(trial)
    samples = [_sample(task, by_task[task.task_id], earlier_by_task[task.task_id]) for task in tasks]
    n, c, k, of_run = np.array([one.counts for one in samples], dtype=np.int64).reshape(-1, 4).T
    # For all tasks at once, because an array operation costs about as much for one task as for a hundred.
    estimates = zip(estimators.pass_at_k(n, c, of_run).tolist(), estimators.pass_hat_k(n, c, k).tolist(), strict=True)
    measured = [
        _task(sample, dict(zip(_ESTIMATED.values(), pair, strict=True)))
        for sample, pair in zip(samples, estimates, strict=True)
    ]
    every = [trial for group in by_task.values() for trial in group]
    return Measurement(
        suites=tuple(
            _suite(suite, of_suite)
            for suite in Suite
            if (of_suite := [task for task in measured if task.suite is suite])
        ),
        tasks=tuple(measured),
        latency_p95_seconds=estimators.percentile([time for task in measured for time in task.wall_times], 95),
        cost=_total(cost for trial in every for cost in (trial.metrics.cost, trial.unmeasured_cost)),
        isolation=tuple(sorted({trial.isolation for trial in every if trial.isolation})),
    )


class _Sample(NamedTuple):
    """The trials by which a task is measured. The confirming ones are those beyond the first k of their run."""

    task: EvalTask  # Its k is the number of planned trials that count
    own: list[Trial]
    confirming: list[Trial]
    earlier: list[Trial]
    earlier_confirming: list[Trial]
    needed: int  # How many passes pass@k requires: one for each run that was decided by itself, and one for this run

    @property
    def planned(self) -> list[Trial]:
        return [*self.own, *self.earlier]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Measured trials, passes, planned trials, and planned trials of a run."""
        measured = sum(trial.status in MEASURED for trial in self.planned)
        passed = sum(trial.status is TrialStatus.PASSED for trial in self.planned)
        return measured, passed, self.task.k, max(self.task.k // self.needed, 1)


def _sample(task: EvalTask, trials: Iterable[Trial], earlier: Iterable[Trial]) -> _Sample:
    ordered = sorted(trials, key=attrgetter("trial"))
    # What this run has reused from an earlier one counts once.
    reused = {trial.reused_from for trial in ordered}
    others = sorted((one for one in earlier if one.reused_from not in reused), key=attrgetter("reused_from", "trial"))
    runs = (list(group) for _, group in groupby(others, attrgetter("reused_from")))
    states = [decide_by(task.model_copy(update={"k": of_run[0].k}), of_run) for of_run in runs]
    planned = [trial for trial in others if trial.trial < trial.k]
    return _Sample(
        task=task.model_copy(update={"k": task.k + len(planned)}) if planned else task,
        own=[trial for trial in ordered if trial.trial < task.k],
        confirming=[trial for trial in ordered if trial.trial >= task.k],
        earlier=planned,
        earlier_confirming=[trial for trial in others if trial.trial >= trial.k],
        needed=1 + sum(state is not TaskState.UNDECIDED for state in states),
    )


def _task(sample: _Sample, estimates: dict[str, float]) -> TaskMeasurement:
    task, trials = sample.task, sample.planned
    confirming = [*sample.earlier_confirming, *sample.confirming]
    by_status = {status: [trial for trial in trials if trial.status is status] for status in TrialStatus}
    passed, failed, errors, not_run = (by_status[status] for status in TrialStatus)
    measured = [trial for trial in trials if trial.status in MEASURED]
    scores = [trial.score for trial in measured if trial.score is not None]
    state = decide(
        task.metric,
        passed=len(passed),
        failed=len(failed),
        planned=task.k,
        scores=scores,
        threshold=task.scoring.threshold,
        needed=sample.needed,
    )
    stopped_early = any(trial.left_out for trial in not_run)
    missing = [*errors, *(trial for trial in not_run if not trial.left_out)]
    # Early stopping depends on how the trials passed, so a share of passes over those that ran would be biased.
    n = 0 if stopped_early else len(measured)
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
        passed=len(passed),
        failed=len(failed),
        errors=len(errors),
        not_run=len(not_run),
        stopped_early=stopped_early,
        state=state,
        **_known_estimates(task, trials, state, estimates),
        score=task_score(task.metric, scores, task.k),
        pass_rate=len(passed) / n if n else None,
        pass_rate_interval=_interval(estimators.wilson_interval(n, len(passed) if n else 0)),
        failed_trials=tuple(trial.trial for trial in sample.own if trial.status is TrialStatus.FAILED),
        error_trials=tuple(trial.trial for trial in errors),
        failure=failed[0].reason if failed else "",
        error=missing[0].reason if missing else "",
        equal_failures=sum(trial.reason == failed[0].reason for trial in failed),
        equal_errors=sum(trial.reason == missing[0].reason for trial in missing),
        violations=tuple(_violations(sample)),
        metrics=MeanMetrics(**{name: known_mean(_known(measured, name)) for name in TrialMetrics.model_fields}),
        tracked_metrics=task.tracked_metrics,
        wall_times=_known(measured, "wall_time_seconds"),
        costs=_known(measured, "cost"),
        unmeasured_cost=_total(
            [trial.unmeasured_cost for trial in trials]
            + [trial.metrics.cost for trial in trials if trial.status not in MEASURED]
        ),
        models=tuple(sorted({name for trial in trials for name in trial.model.split(", ") if name})),
        confirming=tuple(trial.status is TrialStatus.PASSED for trial in confirming if trial.status in MEASURED),
        confirming_errors=sum(trial.status not in MEASURED and not trial.left_out for trial in confirming),
        late_errors=sum(trial.late_errors for trial in (*trials, *confirming)),
        late_error=next((trial.late_error for trial in (*trials, *confirming) if trial.late_error), ""),
        reused_from=next((trial.reused_from for trial in sample.own if trial.reused_from), ""),
        needed=sample.needed,
    )


def _violations(sample: _Sample) -> Iterator[TrialViolation]:
    """Yield the violations of all trials, the confirming ones too: a violation counts wherever it happens."""
    own = [(trial, "") for trial in (*sample.own, *sample.confirming)]
    earlier = [(trial, trial.reused_from) for trial in (*sample.earlier, *sample.earlier_confirming)]
    for trial, run_id in (*own, *earlier):
        for violation in trial.violations:
            yield TrialViolation(trial=trial.trial, rule=violation.rule, message=violation.message, run_id=run_id)


def _known_estimates(
    task: EvalTask, trials: Sequence[Trial], state: TaskState, estimates: dict[str, float]
) -> dict[str, float | None]:
    """Return pass@k and pass^k from estimates that are NaN where fewer than k trials were measured."""
    known = {name: None if isnan(value) else value for name, value in estimates.items()}
    # Trials that were not run because the task was decided without them cannot change the estimate of its own metric:
    # the OR rule has a pass among its k trials, the AND rule a failure. The other estimate stays unknown.
    only_not_run = all(trial.status is not TrialStatus.ERROR for trial in trials) and len(trials) == task.k
    if only_not_run and task.metric in _ESTIMATED:
        name = _ESTIMATED[task.metric]
        known[name] = state.indicator if known[name] is None else known[name]
    return known


def _suite(suite: Suite, tasks: Sequence[TaskMeasurement]) -> SuiteMeasurement:
    values = [task.value for task in tasks if task.value is not None]
    # The mean over some of its tasks would be the value of another suite.
    value = fmean(values) if len(values) == len(tasks) else None
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
        metric=", ".join(sorted({str(task.metric) for task in tasks})),
        k=str(smallest) if smallest == largest else f"{smallest}-{largest}",
        value=value,
        interval=None if value is None else _interval(estimators.suite_interval(value, len(tasks))),
        steps=known_mean(task.metrics.steps for task in tasks),
        cost=_total(cost for task in tasks for cost in (*task.costs, task.unmeasured_cost)),
        wall_time_seconds=sum(time for task in tasks for time in task.wall_times),
    )


def _known(trials: Sequence[Trial], metric: str) -> tuple[float, ...]:
    return tuple(value for trial in trials if (value := getattr(trial.metrics, metric)) is not None)


def known_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; `None` without any."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _total(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values; `None`, which is not 0, where none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _interval(bounds: tuple[float, float]) -> Interval:
    return Interval(low=bounds[0], high=bounds[1])
