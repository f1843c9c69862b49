"""The decision of a gate, with its reasons."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from statistics import fmean
from typing import Final, NamedTuple

from passgate.tasks.gates.evidence import (
    confirmations,
    missing_of_suites,
    suite_confirmations,
    suite_notes,
    suite_reasons,
)
from passgate.tasks.gates.guards import (
    blocks_on_falls,
    exemptions,
    guarding_counts,
    is_weighed,
    is_young,
    quarantine_notes,
)
from passgate.tasks.gates.limits import compare_with_baseline, limit_reasons
from passgate.tasks.gates.notes import baseline_notes, counted, drift_notes, limit_notes, measurement_notes, plan_notes
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.measurement import Measurement, TaskMeasurement, TaskState
from passgate.tasks.model.policy import VETOES, GatePolicy, Rule
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import (
    Comparison,
    Confirmation,
    Decision,
    Exemption,
    Finding,
    Reason,
    SuiteConfirmation,
)
from passgate.tasks.stats.estimators import binomial
from passgate.tasks.stats.regression import ENOUGH

_YOUNG: Final = "`baseline.young: report`"
_DOUBT: Final = 0.01  # The chance that the late errors of a run are doubted although they come at one rate
_PRIOR: Final = (1, 100)  # Late errors and attempts that count beside those of the other tasks: little is known of few
_OPEN: Final = frozenset({Rule.MISSING_EVIDENCE, Rule.SIGN_OFF})  # Rules that leave a gate undecided rather than failed


class Ruling(Frozen):
    """A decision with what led to it."""

    decision: Decision
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    confirmations: tuple[Confirmation, ...] = ()
    suite_confirmations: tuple[SuiteConfirmation, ...] = ()
    not_admitted: tuple[Exemption, ...] = ()
    quarantined: tuple[Exemption, ...] = ()
    young: int = 0
    unarmed: int = 0
    awaiting_sign_off: bool = False


def rule_on(plan: RunContext, policy: GatePolicy, measurement: Measurement, baseline: Baseline) -> Ruling:
    """Decide by a gate's policy. FAIL needs a blocking reason, PASS needs complete evidence, and a person's approval
    where the policy asks for it or the change makes the agent another. The plan says what day it is.
    """
    comparisons = () if plan.agent.is_reference else compare_with_baseline(policy.limits, measurement, baseline)
    exempt = exemptions(policy, plan.quarantine, measurement, baseline, plan.created_at.date())
    confirmed = confirmations(policy, measurement, baseline, exempt.settled)
    suites = suite_confirmations(policy, measurement, baseline, exempt.settled)
    by_task, any_passed = {one.task: one for one in confirmed}, any(task.passed for task in measurement.tasks)
    failed = tuple(failed_tasks(policy, measurement.tasks, baseline, by_task, any_passed=any_passed))
    found = [
        *_vetoes(measurement),
        *failed,
        *suite_reasons(suites),
        *_thresholds(policy, measurement, exempt.tasks),
        *limit_reasons(policy.limits, comparisons, measurement, exempt.tasks),
        *_missing_evidence(plan, policy, measurement, exempt.settled),
        *_nothing_passed(plan, policy, measurement, failed),
        *_doubtful_errors(measurement),
    ]
    reasons = [reason.model_copy(update={"blocking": _blocks(reason, policy, exempt.settled)}) for reason in found]
    blocking = {reason.rule for reason in reasons if reason.blocking}
    if not blocking - _OPEN:
        # Nothing else has decided the gate, so what is still open does.
        missing = [*_unconfirmed(measurement, confirmed), *missing_of_suites(suites)]
        reasons += [one for one in missing if f"{one.suite}/{one.task_id}" not in exempt.settled]
        blocking |= {reason.rule for reason in missing}
    undecided = Decision.INCONCLUSIVE if blocking else Decision.PASS
    decision = Decision.FAIL if blocking - _OPEN else undecided
    # The trials are of the merge base's agent: they say nothing about the agent that the change makes.
    able = [task for task in measurement.tasks if blocks_on_falls(policy, task)]
    # Reference solutions prove graders, and an agent that passes nothing blocks without a baseline.
    able = able if any_passed and not plan.agent.is_reference else []
    other_agent = plan.base.agent if plan.base.agent is not None and plan.base.agent.by_base else None
    awaiting = decision is Decision.PASS and (policy.sign_off or other_agent is not None)
    if awaiting:
        decision = Decision.INCONCLUSIVE
        why = f"{other_agent.note}; " if other_agent is not None else ""
        command = f"passgate sign-off {plan.run_id} --by NAME --decision approve|reject --reason TEXT"
        reasons.append(Reason(rule=Rule.SIGN_OFF, blocking=True, message=f"{why}awaiting sign-off: {command}"))
    return Ruling(
        decision=decision,
        reasons=tuple(sorted(reasons, key=lambda reason: not reason.blocking)),
        notes=(
            *plan_notes(plan),
            *baseline_notes(plan, measurement, baseline),
            *drift_notes(policy, measurement, baseline),
            *quarantine_notes(plan.quarantine, baseline, plan.created_at.date()),
            *measurement_notes(measurement),
            *suite_notes(suites, measurement.tasks),
            *limit_notes(plan, policy, measurement, baseline, comparisons),
        ),
        comparisons=comparisons,
        confirmations=confirmed,
        suite_confirmations=suites,
        not_admitted=exempt.not_admitted,
        quarantined=exempt.quarantined,
        young=sum(is_young(policy, task, baseline) for task in able),
        unarmed=sum(task.name in exempt.settled or not _can_block(policy, task, baseline) for task in able),
        awaiting_sign_off=awaiting,
    )


def _can_block(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> bool:
    """Return whether the baseline lets a failure of the task block beside tasks that pass, however it fails."""
    is_held = is_weighed(policy, task) and guarding_counts(baseline.of(task.name), baseline.young) is not None
    is_reported = is_young(policy, task, baseline)
    return is_held or _failure_meaning(policy, task, baseline, None, is_reported=is_reported).may_block


def _blocks(reason: Reason, policy: GatePolicy, exempt: Collection[str]) -> bool:
    # First of all: neither quarantine nor admission buys a veto back.
    if reason.rule in VETOES:
        return reason.rule in policy.blocks_on
    if f"{reason.suite}/{reason.task_id}" in exempt:
        return False
    return reason.blocking and (reason.rule in policy.blocks_on or reason.rule in _OPEN)


def _vetoes(measurement: Measurement) -> Iterator[Reason]:
    """Yield each violated rule of each task: no other result can offset it."""
    for task in measurement.tasks:
        for rule in dict.fromkeys(violation.rule for violation in task.violations):
            hits = [violation for violation in task.violations if violation.rule == rule]
            trials = tuple(dict.fromkeys(hit.trial for hit in hits if not hit.run_id))
            numbers = f" ({trial_numbers(trials)})" if trials else ""
            yield _of_task(Rule(rule), task, f"{hits[0].message}{numbers}", trials)


def failed_tasks(
    policy: GatePolicy,
    tasks: Iterable[TaskMeasurement],
    baseline: Baseline,
    confirmed: Mapping[str, Confirmation],
    *,
    any_passed: bool,
) -> Iterator[Reason]:
    """Yield a reason for each failed task. It may not block where the task is no worse than it was at the baseline, or
    where the baseline does not tell. `any_passed`: the agent has passed a trial of any task; one that passes nothing at
    all has no bad luck, and that needs no baseline.
    """
    for task in tasks:
        if task.state is not TaskState.FAILED:
            continue
        is_reported = any_passed and is_young(policy, task, baseline)
        meaning = _failure_meaning(policy, task, baseline, confirmed.get(task.name), is_reported=is_reported)
        is_regression = meaning.fallen and task.suite is Suite.GOLDEN
        rule = Rule.GOLDEN_REGRESSION if is_regression else Rule.TASK_FAILED
        message = meaning.text + _why_failed(task)
        yield _of_task(rule, task, message, task.failed_trials, may_block=meaning.may_block)


class _Meaning(NamedTuple):
    text: str
    fallen: bool = False  # Below its baseline or from green, which makes it a regression of a golden task
    may_block: bool = True


def _failure_meaning(
    policy: GatePolicy,
    task: TaskMeasurement,
    baseline: Baseline,
    confirmation: Confirmation | None,
    *,
    is_reported: bool,
) -> _Meaning:
    """Return what a failure means by the baseline and by the confirming trials. `is_reported`: a young baseline lets it
    block only when a fall is shown.
    """
    before = baseline.of(task.name)
    weighed, was_green = is_weighed(policy, task), before.state is BaselineState.GREEN
    if weighed and confirmation is not None:
        return _confirmed(policy, confirmation, is_reported=is_reported, was_green=was_green)
    runs = f"{before.runs_green} of {len(before.runs)} runs green, {before.passed} of {before.n} trials passed"
    if weighed and was_green and guarding_counts(before, baseline.young) is None:
        return _Meaning(f"its newest runs at the baseline are worse than those before ({runs}); ", may_block=False)
    if was_green:
        return _Meaning(f"passed at the baseline ({runs}); ", fallen=True)
    if weighed and before.state is BaselineState.RED:
        return _Meaning(f"failed at the baseline too ({runs}); ", may_block=False)
    if weighed and before.state is BaselineState.UNRELIABLE:
        return _Meaning(f"the baseline is not reliable ({runs}); ", may_block=False)
    if is_reported:
        return _Meaning(f"no run on {baseline.branch} has decided it yet ({_YOUNG}); ", may_block=False)
    return _Meaning("")


def _confirmed(policy: GatePolicy, confirmation: Confirmation, *, is_reported: bool, was_green: bool) -> _Meaning:
    """Return what a failure means that the baseline guards."""
    counts = (
        f"{confirmation.passed} of {confirmation.n} trials passed now, "
        f"{confirmation.baseline_passed} of {confirmation.baseline_n} before"
    )
    if confirmation.before_edit:
        counts += f", judged against its version before the edit ({counted(confirmation.before_edit, 'trial')})"
    match confirmation.finding:
        case Finding.FALLEN:
            return _Meaning(f"regression confirmed: {counts}; ", fallen=True)
        case Finding.FITS:
            return _Meaning(f"no large fall shown: {counts}; ", fallen=was_green, may_block=False)
        case Finding.UNDECIDED:
            # A test that is not thin ends undecided only where the run has no trials left.
            is_thin = confirmation.baseline_n < ENOUGH
            blocks = is_thin and policy.regression.undecided == "block" and not is_reported
            effect = "and the policy blocks on that" if blocks else "and the policy only reports that"
            setting = _YOUNG if is_reported else f"`regression.undecided: {policy.regression.undecided}`"
            setting = setting if is_thin else f"`regression.max_confirming: {policy.regression.max_confirming:g}`"
            text = f"possible regression: {counts}; too few trials to confirm it, {effect} ({setting}); "
            return _Meaning(text, fallen=True, may_block=blocks)
        case Finding.UNFINISHED:
            # Missing evidence has a reason of its own, which leaves the gate undecided; this one must not fail it.
            text = f"possible regression: {counts}; not decided by confirming trials; "
            return _Meaning(text, fallen=True, may_block=False)


def _why_failed(task: TaskMeasurement) -> str:
    """Return by which rule a task has failed, and how its first failed trial did."""
    score = "unknown" if task.score is None else f"{task.score:.3g}"
    passes = "one trial" if task.needed == 1 else f"{task.needed} trials"
    rule = {
        Metric.PASS_HAT_K: f"pass^{task.k} requires every trial to pass",
        Metric.PASS_AT_K: f"pass@{task.k} requires {passes} to pass",
        Metric.MEAN: f"the mean score of {task.k} trials is {score}",
        Metric.CONFIDENCE_INTERVAL: f"the lower bound of the mean score of {task.k} trials is {score}",
    }[task.metric]
    numbers = f", {trial_numbers(task.failed_trials)} failed" if task.failed_trials else ""
    return f"{rule}; {task.passed} of {task.n} passed{numbers}: {task.failure}"


def _thresholds(policy: GatePolicy, measurement: Measurement, exempt: Collection[str]) -> Iterator[Reason]:
    for suite in measurement.suites:
        least = policy.thresholds.get(suite.suite)
        tasks = [task for task in measurement.tasks if task.suite is suite.suite and task.name not in exempt]
        if least is None or not tasks:
            continue
        values = [task.value for task in tasks if task.value is not None]
        if len(values) == len(tasks):
            bound, most = "", fmean(values)
        else:
            # Where too few trials were measured for a value, what is decided bounds it: the rest may still be 1.
            bound, most = "at most ", sum(task.state is not TaskState.FAILED for task in tasks) / len(tasks)
        if most < least:
            message = f"{suite.metric} is {bound}{most:.1%}, the threshold is {least:.1%}"
            yield Reason(rule=Rule.THRESHOLD, blocking=True, suite=suite.suite, message=message)


def _missing_evidence(
    plan: RunContext, policy: GatePolicy, measurement: Measurement, exempt: Collection[str]
) -> Iterator[Reason]:
    for task in measurement.tasks:
        if task.state is TaskState.UNDECIDED:
            missing = task.planned - task.n
            why = task.error or "they were not run"
            message = f"{missing} of {task.planned} trials could not be measured: {why}"
            yield _of_task(Rule.MISSING_EVIDENCE, task, message, task.error_trials)
    # Tasks that name no suite are judged as golden; with no others the gate does not miss the other suites.
    present = {suite.suite for suite in measurement.suites}
    if plan.unselected:
        yield _gap(f"--task left out {counted(plan.unselected, 'task')} of the gate: a partial run cannot pass")
    elif not plan.tasks or not all(task.suite_assumed for task in plan.tasks):
        for suite in policy.suites:
            if suite not in present:
                yield _gap(f"the suite {suite!s} has no tasks in this gate", suite)
    if not any(task.n for task in measurement.tasks):
        yield _gap("no trial was measured")
    if measurement.tasks and all(task.name in exempt for task in measurement.tasks):
        yield _gap("no task can block this gate: every task is quarantined or not admitted yet")


def _unconfirmed(measurement: Measurement, confirmed: Iterable[Confirmation]) -> Iterator[Reason]:
    """Yield a reason for each failed task whose confirming trials could not be run."""
    unfinished = {one.task for one in confirmed if one.finding is Finding.UNFINISHED}
    for task in measurement.tasks:
        if task.name in unfinished:
            errors = f"{task.confirming_errors} ended in errors" if task.confirming_errors else "they were not run"
            yield _of_task(Rule.MISSING_EVIDENCE, task, f"confirming trials are missing: {errors}")


def _nothing_passed(
    plan: RunContext, policy: GatePolicy, measurement: Measurement, failed: Sequence[Reason]
) -> Iterator[Reason]:
    """Yield a reason where all has failed, here and at the baseline: such a gate would pass whatever the agent does."""
    blocks_on_failures = not {Rule.TASK_FAILED, Rule.GOLDEN_REGRESSION}.isdisjoint(policy.blocks_on)
    none_passed = any(task.n for task in measurement.tasks) and not any(task.passed for task in measurement.tasks)
    if blocks_on_failures and none_passed and failed and not any(reason.blocking for reason in failed):
        yield _gap(
            "no trial passed, and no failure blocks because the agent was no better at the baseline: "
            f"run one trial with `passgate doctor {quote(str(plan.agent))} --try`"
        )


def _doubtful_errors(measurement: Measurement) -> Iterator[Reason]:
    """Yield a reason for each task that passed beside errors which the provider does not explain.

    After such an error an agent could know how its trial goes: a bad trial that becomes one is tried again, and passes.
    A provider's trouble hits every task alike, so errors of a task are doubted that are more than the rate in the
    others explains.
    """
    # How often the agent came so far that it could know.
    reached = {task.name: task.n + len(task.confirming) + task.late_errors for task in measurement.tasks}
    errors, attempts = sum(task.late_errors for task in measurement.tasks), sum(reached.values())
    for task in measurement.tasks:
        own = reached[task.name]
        if not task.late_errors or task.state is not TaskState.PASSED:
            continue
        rate = (errors - task.late_errors + _PRIOR[0]) / (attempts - own + _PRIOR[1])
        if sum(binomial(own, rate)[task.late_errors :]) >= _DOUBT / len(measurement.tasks):
            continue
        message = (
            f"{task.late_errors} of {own} attempts became an error after the agent had begun its work, "
            f"more than in the other tasks, so a trial that went badly may have been tried again: {task.late_error}"
        )
        yield _of_task(Rule.MISSING_EVIDENCE, task, message)


def _of_task(
    rule: Rule, task: TaskMeasurement, message: str, trials: tuple[int, ...] = (), *, may_block: bool = True
) -> Reason:
    return Reason(
        rule=rule,
        blocking=may_block,
        message=message,
        suite=task.suite,
        task_id=task.task_id,
        trials=trials,
        file=task.file,
        line=task.line,
    )


def _gap(message: str, suite: Suite | None = None) -> Reason:
    return Reason(rule=Rule.MISSING_EVIDENCE, blocking=True, suite=suite, message=message)
