"""The decision of a gate."""

from collections.abc import Collection, Iterator
from statistics import fmean

from passgate.tasks.gates.evidence import confirmations
from passgate.tasks.gates.exemptions import exemptions
from passgate.tasks.gates.failures import counted, failed_tasks, gap, in_trials, of_task
from passgate.tasks.gates.limits import compare_with_baseline, limit_reasons
from passgate.tasks.gates.notes import notes
from passgate.tasks.model.agent import judging_agent
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement, TaskState
from passgate.tasks.model.policy import VETOES, GatePolicy, Rule
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.verdict import Comparison, Confirmation, Decision, Exemption, Finding, Reason

_OPEN = frozenset({Rule.MISSING_EVIDENCE, Rule.SIGN_OFF})
"""Rules that leave a gate undecided rather than failed."""


class Ruling(Frozen):
    """A decision with what led to it."""

    decision: Decision
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    confirmations: tuple[Confirmation, ...] = ()
    not_admitted: tuple[Exemption, ...] = ()
    quarantined: tuple[Exemption, ...] = ()
    awaiting_sign_off: bool = False


def rule_on(plan: RunContext, policy: GatePolicy, measurement: Measurement, baseline: Baseline) -> Ruling:
    """Decide by a gate's policy. FAIL needs a blocking reason, PASS needs complete evidence, and a person's approval
    where the policy asks for it or the change makes the agent another. What day it is the plan says.
    """
    comparisons = () if plan.agent.is_reference else compare_with_baseline(policy.limits, measurement, baseline)
    exempt = exemptions(policy, plan.quarantine, measurement, baseline, plan.created_at.date())
    confirmed = confirmations(policy, measurement, baseline, exempt.tasks)
    found = [
        *_vetoes(measurement),
        *failed_tasks(policy, measurement.tasks, baseline, {one.task: one for one in confirmed}),
        *_thresholds(policy, measurement, exempt.tasks),
        *limit_reasons(policy.limits, comparisons),
        *_missing_evidence(plan, policy, measurement, confirmed, exempt.tasks),
    ]
    reasons = [reason.model_copy(update={"blocking": _blocks(reason, policy, exempt.tasks)}) for reason in found]
    blocking = {reason.rule for reason in reasons if reason.blocking}
    undecided = Decision.INCONCLUSIVE if blocking else Decision.PASS
    decision = Decision.FAIL if blocking - _OPEN else undecided
    # The change makes the agent one that its trials, those of the merge base's, say nothing of.
    other_agent = plan.base.agent if plan.base.agent is not None and plan.base.agent.by_base else None
    awaiting = decision is Decision.PASS and (policy.sign_off or other_agent is not None)
    if awaiting:
        decision = Decision.INCONCLUSIVE
        why = f"{judging_agent(other_agent)}; " if other_agent is not None else ""
        command = f"passgate sign-off {plan.run_id} --by NAME --decision approve|reject --reason TEXT"
        reasons.append(Reason(rule=Rule.SIGN_OFF, blocking=True, message=f"{why}awaiting sign-off: {command}"))
    return Ruling(
        decision=decision,
        reasons=tuple(sorted(reasons, key=lambda reason: not reason.blocking)),
        notes=tuple(notes(plan, policy, measurement, baseline, comparisons)),
        comparisons=comparisons,
        confirmations=confirmed,
        not_admitted=exempt.not_admitted,
        quarantined=exempt.quarantined,
        awaiting_sign_off=awaiting,
    )


def _blocks(reason: Reason, policy: GatePolicy, exempt: Collection[str]) -> bool:
    # First of all: neither quarantine nor admission buys a veto back.
    if reason.rule in VETOES:
        return reason.rule in policy.blocks_on
    if f"{reason.suite}/{reason.task_id}" in exempt:
        return False
    return reason.blocking and (reason.rule in policy.blocks_on or reason.rule in _OPEN)


def _vetoes(measurement: Measurement) -> Iterator[Reason]:
    """Each violated rule of each task: no other result buys it back."""
    for task in measurement.tasks:
        for rule in dict.fromkeys(violation.rule for violation in task.violations):
            hits = [violation for violation in task.violations if violation.rule == rule]
            trials = tuple(dict.fromkeys(hit.trial for hit in hits))
            yield of_task(Rule(rule), task, f"{hits[0].message} ({in_trials(trials)})", trials)


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
    plan: RunContext,
    policy: GatePolicy,
    measurement: Measurement,
    confirmed: tuple[Confirmation, ...],
    exempt: Collection[str],
) -> Iterator[Reason]:
    unfinished = {one.task for one in confirmed if one.finding is Finding.UNFINISHED}
    for task in measurement.tasks:
        if task.state is TaskState.UNDECIDED:
            missing = task.planned - task.n
            why = task.error or "they were not run"
            message = f"{missing} of {task.planned} trials could not be measured: {why}"
            yield of_task(Rule.MISSING_EVIDENCE, task, message, task.error_trials)
        elif task.name in unfinished:
            errors = f"{task.confirming_errors} ended in errors" if task.confirming_errors else "they were not run"
            yield of_task(Rule.MISSING_EVIDENCE, task, f"confirming trials are missing: {errors}")
    # Tasks that name no suite are judged as golden; with no others the gate does not miss the other suites.
    present = {suite.suite for suite in measurement.suites}
    if plan.unselected:
        yield gap(f"--task left out {counted(plan.unselected, 'task')} of the gate: a partial run cannot pass")
    elif not plan.tasks or not all(task.suite_assumed for task in plan.tasks):
        for suite in policy.suites:
            if suite not in present:
                yield gap(f"the suite {suite!s} has no tasks in this gate", suite)
    if not any(task.n for task in measurement.tasks):
        yield gap("no trial was measured")
    if measurement.tasks and all(task.name in exempt for task in measurement.tasks):
        yield gap("no task can block this gate: every task is quarantined or not admitted yet")
