"""The decision of a gate."""

from collections.abc import Iterator

from passgate.tasks.gates.limits import COST, compare_with_baseline, limit_reasons
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.measurement import Baseline, Measurement, TaskMeasurement, TaskState
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.verdict import Comparison, Decision, Reason


class Ruling(Frozen):
    """A decision with what led to it."""

    decision: Decision
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    comparisons: tuple[Comparison, ...]


def rule_on(plan: Plan, policy: GatePolicy, measurement: Measurement, baseline: Baseline) -> Ruling:
    """Decide by a gate's policy. FAIL needs a blocking reason, PASS needs complete evidence."""
    comparisons = () if plan.agent.is_reference else compare_with_baseline(policy.limits, measurement, baseline)
    found = [
        *_vetoes(measurement),
        *_failed_tasks(measurement, baseline),
        *_thresholds(policy, measurement),
        *limit_reasons(policy.limits, comparisons),
        *_missing_evidence(plan, policy, measurement),
    ]
    blocks_on = {*policy.blocks_on, Rule.MISSING_EVIDENCE}
    reasons = [reason.model_copy(update={"blocking": reason.rule in blocks_on}) for reason in found]
    return Ruling(
        decision=_decision(reasons),
        reasons=tuple(sorted(reasons, key=lambda reason: not reason.blocking)),
        notes=tuple(_notes(plan, policy, measurement, baseline, comparisons)),
        comparisons=comparisons,
    )


def _decision(reasons: list[Reason]) -> Decision:
    blocking = {reason.rule for reason in reasons if reason.blocking}
    if blocking - {Rule.MISSING_EVIDENCE}:
        return Decision.FAIL
    return Decision.INCONCLUSIVE if blocking else Decision.PASS


def _vetoes(measurement: Measurement) -> Iterator[Reason]:
    """Each violated rule of each task: no other result buys it back."""
    for task in measurement.tasks:
        for rule in dict.fromkeys(violation.rule for violation in task.violations):
            hits = [violation for violation in task.violations if violation.rule == rule]
            trials = tuple(dict.fromkeys(hit.trial for hit in hits))
            yield _reason(Rule(rule), task, f"{hits[0].message} ({_in_trials(trials)})", trials)


def _failed_tasks(measurement: Measurement, baseline: Baseline) -> Iterator[Reason]:
    for task in measurement.tasks:
        if task.state is not TaskState.FAILED:
            continue
        before = baseline.tasks.get(f"{task.suite}/{task.task_id}")
        message = (
            f"{_rule_of(task)}, {task.passed} of {task.n} passed ({_in_trials(task.failed_trials)}): {task.failure}"
        )
        if task.suite is Suite.GOLDEN and before is not None and before.state is TaskState.PASSED:
            message = f"was green in {before.run_id} ({before.passed} of {before.n}); {message}"
            yield _reason(Rule.GOLDEN_REGRESSION, task, message, task.failed_trials)
        else:
            yield _reason(Rule.TASK_FAILED, task, message, task.failed_trials)


def _thresholds(policy: GatePolicy, measurement: Measurement) -> Iterator[Reason]:
    for suite in measurement.suites:
        least = policy.thresholds.get(suite.suite)
        # Where too few trials were measured for an estimate, what is decided bounds it.
        most = (suite.tasks_passed + suite.tasks_undecided) / suite.tasks if suite.value is None else suite.value
        if least is not None and most < least:
            bound = "at most " if suite.value is None else ""
            yield Reason(
                rule=Rule.THRESHOLD,
                blocking=True,
                suite=suite.suite,
                message=f"{suite.metric} is {bound}{most:.1%}, the threshold is {least:.1%}",
            )


def _missing_evidence(plan: Plan, policy: GatePolicy, measurement: Measurement) -> Iterator[Reason]:
    for task in measurement.tasks:
        if task.state is TaskState.UNDECIDED:
            missing = task.planned - task.n
            why = task.error or "trials were not run"
            message = f"{missing} of {task.planned} trials could not be measured: {why}"
            yield _reason(Rule.MISSING_EVIDENCE, task, message, task.error_trials)
    present = {suite.suite for suite in measurement.suites}
    if plan.unselected:
        yield _gap(f"--task left out {plan.unselected} tasks of the gate: a part of it cannot pass")
    elif not plan.tasks or not all(task.suite_assumed for task in plan.tasks):
        for suite in policy.suites:
            if suite not in present:
                yield _gap(f"the suite {suite!s} has no task in this gate", suite)
    if not any(task.n for task in measurement.tasks):
        yield _gap("not one trial was measured")


def _gap(message: str, suite: Suite | None = None) -> Reason:
    return Reason(rule=Rule.MISSING_EVIDENCE, blocking=True, suite=suite, message=message)


def _reason(rule: Rule, task: TaskMeasurement, message: str, trials: tuple[int, ...]) -> Reason:
    return Reason(
        rule=rule,
        blocking=True,
        message=message,
        suite=task.suite,
        task_id=task.task_id,
        trials=trials,
        file=task.file,
        line=task.line,
    )


def _rule_of(task: TaskMeasurement) -> str:
    match task.metric:
        case Metric.PASS_HAT_K:
            return f"pass^{task.k} needs every trial"
        case Metric.PASS_AT_K:
            return f"pass@{task.k} needs one trial"
        case Metric.MEAN:
            return f"the mean score of {task.k} trials is {_shown(task.score)}"
        case Metric.CONFIDENCE_INTERVAL:
            return f"the lower bound of the mean score of {task.k} trials is {_shown(task.score)}"


def _shown(score: float | None) -> str:
    return "not known" if score is None else f"{score:.3g}"


def _in_trials(trials: tuple[int, ...]) -> str:
    shown = ", ".join(str(trial) for trial in trials[:10])
    more = f" and {len(trials) - 10} more" if len(trials) > 10 else ""
    return f"trial{'s' if len(trials) != 1 else ''} {shown}{more}"


def _notes(
    plan: Plan,
    policy: GatePolicy,
    measurement: Measurement,
    baseline: Baseline,
    comparisons: tuple[Comparison, ...],
) -> Iterator[str]:
    if plan.request.k is not None:
        yield f"--k {plan.request.k} stands in place of the tasks' own k"
    if plan.shipped_policy:
        yield f"there is no {plan.request.gates}: the policy is the one that passgate ships"
    yield from plan.warnings
    assumed = sum(task.suite_assumed for task in plan.tasks)
    if assumed:
        yield (
            f"{assumed} of {len(plan.tasks)} tasks name no suite, nor do their folders: they are judged as golden. "
            "Name one with `suite:` in the eval file"
        )
    without = sum(f"{task.suite}/{task.task_id}" not in baseline.tasks for task in measurement.tasks)
    if without:
        yield (
            f"no baseline for {without} of {len(measurement.tasks)} tasks: no earlier run on {baseline.branch} "
            "with the same agent, task and graders"
        )
    blind = sum(task.n > 0 and task.metrics.steps is None for task in measurement.tasks)
    if blind:
        yield (
            f"in {blind} tasks the agent called no model through the meter and reports no transcript: its budgets of "
            "steps, tool calls and tokens were not held"
        )
    if "process_group" in measurement.isolation:
        yield "no isolation: bubblewrap does not work on this machine, agents could read and write anything"
    for comparison in comparisons:
        if comparison.ratio is None:
            yield f"{comparison.name} is not judged: {comparison.pairs} tasks with a baseline are too few"
    limited = policy.limits.cost_increase_pct is not None and not plan.agent.is_reference
    cost_before = any(entry.costs for entry in baseline.tasks.values())
    if limited and cost_before and COST not in {comparison.name for comparison in comparisons}:
        yield "cost is not judged: the agent reported it at the baseline and does not any more"
