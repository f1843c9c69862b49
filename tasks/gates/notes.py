"""What the reader of a verdict should know beside its reasons."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from passgate.tasks.gates.guards import drift_in_force
from passgate.tasks.gates.limits import COST, dear_after_nothing
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import GatePolicy
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.verdict import Comparison

_FROM_NOTHING: Final = "the baseline cost is 0, so the increase has no ratio"
_NAMED: Final = 10  # Tasks that notes of one kind name


def plan_notes(plan: RunContext) -> Iterator[str]:
    """Say what is particular about the plan: whose files judge, and what the base leaves in doubt."""
    yield from plan.request_notes
    if plan.base.judged_by == "base":
        edited = counted(len(plan.base.edits), "file")
        why = f"this change edits what it is judged by ({edited}): " if plan.base.edits else ""
        yield f"{why}this run uses the files of {plan.base.name}"
    if plan.base.prefect_edits:
        edited = ", ".join(plan.base.prefect_edits)
        yield f"this change edits Prefect settings ({edited}), which can name code: this run does not use Prefect"
    if plan.base.agent is not None:
        yield plan.base.agent.note
    if plan.base.doubt:
        yield f"this change may have chosen who judges it: {plan.base.doubt}"
    if plan.base.note and plan.base.note != plan.base.doubt:
        yield plan.base.note
    yield from plan.warnings
    assumed = sum(task.suite_assumed for task in plan.tasks)
    if assumed:
        yield (
            f"{assumed} of {len(plan.tasks)} tasks have no suite in their file or folder name: passgate judges them as "
            "golden. To choose another suite, set `suite:` in the eval file"
        )


def baseline_notes(plan: RunContext, measurement: Measurement, baseline: Baseline) -> Iterator[str]:
    """Say what the baseline knows and what it lacks."""
    if repeats := baseline.repeats:
        names = list(dict.fromkeys(name for one in repeats for name in one.failed))
        red = f"red before, in {sum(bool(one.failed) for one in repeats)} of {counted(len(repeats), 'earlier run')}"
        before = f"{red}: {_listed(names)}" if names else "no task failed before"
        yield f"run {len(repeats) + 1} of this commit; {before}"
    if baseline.repeated_trials:
        runs, k = {one.reused_from for one in baseline.repeated_trials}, {task.k for task in measurement.tasks}
        size = f"{min(k)} to {max(k)}" if len(k) > 1 else f"{max(k)}"
        yield f"{len(runs) + 1} runs of this commit count together: {size} trials a task"
    states = Counter(baseline.of(task.name).state for task in measurement.tasks)
    without = states[BaselineState.NEW] + states[BaselineState.NONE]
    if without:
        yield (
            f"no baseline for {without} of {len(measurement.tasks)} tasks: the history has no run on {baseline.branch} "
            "with the same agent, model, task and graders"
        )
    edited = {task.name: trials for task in measurement.tasks if (trials := baseline.of(task.name).before_edit)}
    for name, trials in islice(edited.items(), _NAMED):
        yield f"{name} is judged against its version before the edit, {counted(trials, 'trial')}"
    if len(edited) > _NAMED:
        yield f"so are {counted(len(edited) - _NAMED, 'more task')}"
    for name, was in islice(baseline.renamed.items(), _NAMED):
        yield f"{name} keeps the history of {was}, which has the same inputs and graders"
    if len(baseline.renamed) > _NAMED:
        yield f"so do {counted(len(baseline.renamed) - _NAMED, 'more task')}"
    if baseline.pinned and plan.pins is not None:
        yield f"the baseline is pinned: {plan.pins.reason} ({plan.pins.by}); `passgate baseline clear` removes the pin"


def _listed(names: Sequence[str]) -> str:
    more = f" and {counted(len(names) - _NAMED, 'more task')}" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def drift_notes(policy: GatePolicy, measurement: Measurement, baseline: Baseline) -> Iterator[str]:
    """Name the drift that every test of this verdict allows for, and the runs that have no part in it."""
    drift = drift_in_force(policy, measurement.tasks, baseline)
    for run in drift.outliers:
        counts = [baseline.of(task.name).counts.get(run, (0, 0)) for task in measurement.tasks]
        passed, n = (sum(of_task) for of_task in zip(*counts, strict=True))
        yield (
            f"the run {run} of the baseline is far from all others, {passed} of {n} trials passed: it does not count "
            "as drift between runs"
        )
    if drift.deviation:
        yield (
            f"the pass rates of whole runs of the baseline differ by {100 * drift.deviation:g} points (drift): a "
            "smaller fall of many tasks is not found"
        )


def measurement_notes(measurement: Measurement) -> Iterator[str]:
    """Say what could not be measured or was not safe."""
    blind = sum(task.n > 0 and task.metrics.steps is None for task in measurement.tasks)
    if blind:
        yield (
            f"in {counted(blind, 'task')} the agent called no model through the meter and reported no transcript: "
            "passgate could not enforce the budgets of steps, tool calls and tokens"
        )
    late = [task for task in measurement.tasks if task.late_errors]
    if late:
        named = _listed([f"{task.name} ({task.late_errors})" for task in late])
        yield f"attempts became errors after the agent had begun its work, in {named}: {late[0].late_error}"
    if "process_group" in measurement.isolation:
        yield (
            "no isolation: bubblewrap does not work on this machine, so agents could read and write every file that "
            "your user can"
        )


def limit_notes(
    plan: RunContext,
    policy: GatePolicy,
    measurement: Measurement,
    baseline: Baseline,
    comparisons: Sequence[Comparison],
) -> Iterator[str]:
    """Say which limits could not be compared, and why."""
    risen = dear_after_nothing(measurement, baseline)
    for comparison in comparisons:
        from passgate.tasks.stats.ratios import LEAST_PAIRS, LEAST_RUNS

        of_cost = comparison.name == COST
        if comparison.ratio is None and comparison.current:
            if comparison.pairs < LEAST_PAIRS and of_cost and risen:
                missing = f"in {counted(risen, 'task')} {_FROM_NOTHING}"
            elif comparison.pairs < LEAST_PAIRS:
                missing = f"too few tasks have a baseline ({comparison.pairs}, at least {LEAST_PAIRS} are required)"
            elif comparison.runs < LEAST_RUNS:
                missing = "the baseline has one run, which does not show how much runs vary"
            else:
                missing = "the baseline runs share no tasks, so they do not show how much runs vary"
            yield f"{comparison.name} is not compared: {missing}"
        elif of_cost and risen:
            yield f"cost is not compared in {counted(risen, 'task')}: {_FROM_NOTHING}"
    limited = policy.limits.cost_increase_pct is not None and not plan.agent.is_reference
    cost_before = any(baseline.of(task.name).costs for task in measurement.tasks)
    if limited and cost_before and COST not in {comparison.name for comparison in comparisons}:
        yield "cost is not compared: the agent reported its cost at the baseline but not in this run"


def counted(number: int, noun: str) -> str:
    """Say how many of something there are, as in `1 task` and `2 tasks`."""
    return f"{number} {noun}{'s' if number != 1 else ''}"
