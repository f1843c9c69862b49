"""The decision of a gate: its reasons, and what the reader of a verdict should know beside them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from shlex import quote
from statistics import fmean
from typing import Final, NamedTuple

from passgate.tasks.gates.evidence import confirmations
from passgate.tasks.gates.exemptions import exemptions, quarantine_notes
from passgate.tasks.gates.guards import blocks_on_falls, drift_in_force, guarding_counts, is_weighed, is_young
from passgate.tasks.gates.late_errors import attempts_of, doubtful
from passgate.tasks.gates.limits import COST, compare_with_baseline, dear_after_nothing, limit_reasons
from passgate.tasks.gates.suite_evidence import missing_of_suites, suite_confirmations, suite_notes, suite_reasons
from passgate.tasks.model.agent import judging_agent, own_agent
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.baseline import Baseline, BaselineState, Repeat
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
from passgate.tasks.stats.ratios import LEAST_PAIRS, LEAST_RUNS
from passgate.tasks.stats.regression import ENOUGH

_FROM_NOTHING: Final = "the baseline cost is 0, so the increase has no ratio"
_YOUNG: Final = "`baseline.young: report`"
_NAMED: Final = 10  # Tasks that notes of one kind name
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
        why = f"{judging_agent(other_agent)}; " if other_agent is not None else ""
        command = f"passgate sign-off {plan.run_id} --by NAME --decision approve|reject --reason TEXT"
        reasons.append(Reason(rule=Rule.SIGN_OFF, blocking=True, message=f"{why}awaiting sign-off: {command}"))
    return Ruling(
        decision=decision,
        reasons=tuple(sorted(reasons, key=lambda reason: not reason.blocking)),
        notes=(
            *_plan_notes(plan),
            *_baseline_notes(plan, measurement, baseline),
            *_drift_notes(policy, measurement, baseline),
            *quarantine_notes(plan.quarantine, baseline, plan.created_at.date()),
            *_measurement_notes(measurement),
            *suite_notes(suites, measurement.tasks),
            *_limit_notes(plan, policy, measurement, baseline, comparisons),
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
    """Whether the baseline lets a failure of the task block beside tasks that pass, however it fails."""
    is_held = is_weighed(policy, task) and guarding_counts(baseline.of(task.name), baseline.young) is not None
    is_reported = is_young(policy, task, baseline)
    return is_held or _meaning_of(policy, task, baseline, None, is_reported=is_reported).may_block


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
            yield _of_task(Rule(rule), task, f"{hits[0].message} ({trial_numbers(trials)})", trials)


def failed_tasks(
    policy: GatePolicy,
    tasks: Iterable[TaskMeasurement],
    baseline: Baseline,
    confirmed: Mapping[str, Confirmation],
    *,
    any_passed: bool,
) -> Iterator[Reason]:
    """A reason for each failed task. It may not block where the task is no worse than it was at the baseline, or where
    the baseline does not tell. `any_passed`: the agent has passed a trial of any task; one that passes nothing at all
    has no bad luck, and that needs no baseline.
    """
    for task in tasks:
        if task.state is not TaskState.FAILED:
            continue
        is_reported = any_passed and is_young(policy, task, baseline)
        meaning = _meaning_of(policy, task, baseline, confirmed.get(task.name), is_reported=is_reported)
        is_regression = meaning.fallen and task.suite is Suite.GOLDEN
        rule = Rule.GOLDEN_REGRESSION if is_regression else Rule.TASK_FAILED
        message = meaning.text + _why_failed(task)
        yield _of_task(rule, task, message, task.failed_trials, may_block=meaning.may_block)


class _Meaning(NamedTuple):
    text: str
    fallen: bool = False  # Below its baseline or from green, which makes it a regression of a golden task
    may_block: bool = True


def _meaning_of(
    policy: GatePolicy,
    task: TaskMeasurement,
    baseline: Baseline,
    confirmation: Confirmation | None,
    *,
    is_reported: bool,
) -> _Meaning:
    """What a failure means by the baseline and by the confirming trials. `is_reported`: a young baseline lets it block
    only when a fall is shown.
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
    """What a failure means that the baseline guards."""
    counts = (
        f"{confirmation.passed} of {confirmation.n} trials passed now, "
        f"{confirmation.baseline_passed} of {confirmation.baseline_n} before"
    )
    if confirmation.before_edit:
        counts += f", judged against its version before the edit ({_counted(confirmation.before_edit, 'trial')})"
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
    """By which rule a task has failed, and how its first failed trial did."""
    score = "unknown" if task.score is None else f"{task.score:.3g}"
    rule = {
        Metric.PASS_HAT_K: f"pass^{task.k} requires every trial to pass",
        Metric.PASS_AT_K: f"pass@{task.k} requires one trial to pass",
        Metric.MEAN: f"the mean score of {task.k} trials is {score}",
        Metric.CONFIDENCE_INTERVAL: f"the lower bound of the mean score of {task.k} trials is {score}",
    }[task.metric]
    counts = f"{task.passed} of {task.n} passed, {trial_numbers(task.failed_trials)} failed"
    return f"{rule}; {counts}: {task.failure}"


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
    exempt: Collection[str],
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
        yield _gap(f"--task left out {_counted(plan.unselected, 'task')} of the gate: a partial run cannot pass")
    elif not plan.tasks or not all(task.suite_assumed for task in plan.tasks):
        for suite in policy.suites:
            if suite not in present:
                yield _gap(f"the suite {suite!s} has no tasks in this gate", suite)
    if not any(task.n for task in measurement.tasks):
        yield _gap("no trial was measured")
    if measurement.tasks and all(task.name in exempt for task in measurement.tasks):
        yield _gap("no task can block this gate: every task is quarantined or not admitted yet")


def _unconfirmed(measurement: Measurement, confirmed: Iterable[Confirmation]) -> Iterator[Reason]:
    """A reason for each failed task whose confirming trials could not be run."""
    unfinished = {one.task for one in confirmed if one.finding is Finding.UNFINISHED}
    for task in measurement.tasks:
        if task.name in unfinished:
            errors = f"{task.confirming_errors} ended in errors" if task.confirming_errors else "they were not run"
            yield _of_task(Rule.MISSING_EVIDENCE, task, f"confirming trials are missing: {errors}")


def _nothing_passed(
    plan: RunContext, policy: GatePolicy, measurement: Measurement, failed: Sequence[Reason]
) -> Iterator[Reason]:
    """A reason where all has failed, here and at the baseline: such a gate would pass whatever the agent does."""
    blocks_on_failures = not {Rule.TASK_FAILED, Rule.GOLDEN_REGRESSION}.isdisjoint(policy.blocks_on)
    none_passed = any(task.n for task in measurement.tasks) and not any(task.passed for task in measurement.tasks)
    if blocks_on_failures and none_passed and failed and not any(reason.blocking for reason in failed):
        yield _gap(
            "no trial passed, and no failure blocks because the agent was no better at the baseline: "
            f"run one trial with `passgate doctor {quote(str(plan.agent))} --try`"
        )


def _doubtful_errors(measurement: Measurement) -> Iterator[Reason]:
    """A reason for each task that passed beside errors which the provider does not explain."""
    for task in doubtful(measurement.tasks):
        message = (
            f"{task.late_errors} of {attempts_of(task)} attempts became an error after the agent had begun its work, "
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


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _plan_notes(plan: RunContext) -> Iterator[str]:
    yield from plan.request_notes
    if plan.base.judged_by == "base":
        edited = _counted(len(plan.base.edits), "file")
        why = f"this change edits what it is judged by ({edited}): " if plan.base.edits else ""
        yield f"{why}this run uses the files of {plan.base.name}"
    if plan.base.prefect_edits:
        edited = ", ".join(plan.base.prefect_edits)
        yield f"this change edits Prefect settings ({edited}), which can name code: this run does not use Prefect"
    if plan.base.agent is not None:
        agent = plan.base.agent
        yield judging_agent(agent) if agent.by_base else own_agent(agent)
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


def _baseline_notes(plan: RunContext, measurement: Measurement, baseline: Baseline) -> Iterator[str]:
    if baseline.repeats:
        yield _repeat_note(baseline.repeats)
    if baseline.left_out:
        yield baseline.left_out
    states = Counter(baseline.of(task.name).state for task in measurement.tasks)
    without = states[BaselineState.NEW] + states[BaselineState.NONE]
    if without:
        yield (
            f"no baseline for {without} of {len(measurement.tasks)} tasks: the history has no run on {baseline.branch} "
            "with the same agent, model, task and graders"
        )
    edited = {task.name: trials for task in measurement.tasks if (trials := baseline.of(task.name).before_edit)}
    for name, trials in islice(edited.items(), _NAMED):
        yield f"{name} is judged against its version before the edit, {_counted(trials, 'trial')}"
    if len(edited) > _NAMED:
        yield f"so are {_counted(len(edited) - _NAMED, 'more task')}"
    for name, was in islice(baseline.renamed.items(), _NAMED):
        yield f"{name} keeps the history of {was}, which has the same inputs and graders"
    if len(baseline.renamed) > _NAMED:
        yield f"so do {_counted(len(baseline.renamed) - _NAMED, 'more task')}"
    if baseline.pinned and plan.pins is not None:
        yield f"the baseline is pinned: {plan.pins.reason} ({plan.pins.by}); `passgate baseline clear` removes the pin"


def _repeat_note(repeats: Sequence[Repeat]) -> str:
    which = f"run {len(repeats) + 1} of this commit"
    red = [one for one in repeats if one.failed]
    if not red:
        return f"{which}; no task failed before"
    names = list(dict.fromkeys(name for one in red for name in one.failed))
    more = f" and {_counted(len(names) - _NAMED, 'more task')}" if len(names) > _NAMED else ""
    runs = f"{len(red)} of {_counted(len(repeats), 'earlier run')}"
    return f"{which}; red before, in {runs}: {', '.join(names[:_NAMED])}{more}"


def _drift_notes(policy: GatePolicy, measurement: Measurement, baseline: Baseline) -> Iterator[str]:
    """The drift that every test of this verdict allows for, and the run that has no part in it."""
    drift = drift_in_force(policy, measurement.tasks, baseline)
    if drift.outlier:
        counts = [baseline.of(task.name).counts.get(drift.outlier, (0, 0)) for task in measurement.tasks]
        passed, n = (sum(of_task) for of_task in zip(*counts, strict=True))
        yield (
            f"the run {drift.outlier} of the baseline is far from all others, {passed} of {n} trials passed: it does "
            "not count as drift between runs"
        )
    if drift.deviation:
        yield (
            f"the pass rates of whole runs of the baseline differ by {100 * drift.deviation:g} points (drift): a "
            "smaller fall of many tasks is not found"
        )


def _measurement_notes(measurement: Measurement) -> Iterator[str]:
    blind = sum(task.n > 0 and task.metrics.steps is None for task in measurement.tasks)
    if blind:
        yield (
            f"in {_counted(blind, 'task')} the agent called no model through the meter and reported no transcript: "
            "passgate could not enforce the budgets of steps, tool calls and tokens"
        )
    late = [task for task in measurement.tasks if task.late_errors]
    if late:
        named = ", ".join(f"{task.name} ({task.late_errors})" for task in late[:_NAMED])
        more = f" and {_counted(len(late) - _NAMED, 'more task')}" if len(late) > _NAMED else ""
        yield f"attempts became errors after the agent had begun its work, in {named}{more}: {late[0].late_error}"
    if "process_group" in measurement.isolation:
        yield (
            "no isolation: bubblewrap does not work on this machine, so agents could read and write every file that "
            "your user can"
        )


def _limit_notes(
    plan: RunContext,
    policy: GatePolicy,
    measurement: Measurement,
    baseline: Baseline,
    comparisons: Sequence[Comparison],
) -> Iterator[str]:
    risen = dear_after_nothing(measurement, baseline)
    for comparison in comparisons:
        of_cost = comparison.name == COST
        if comparison.ratio is None and comparison.current:
            if comparison.pairs < LEAST_PAIRS and of_cost and risen:
                missing = f"in {_counted(risen, 'task')} {_FROM_NOTHING}"
            elif comparison.pairs < LEAST_PAIRS:
                missing = f"too few tasks have a baseline ({comparison.pairs}, at least {LEAST_PAIRS} are required)"
            elif comparison.runs < LEAST_RUNS:
                missing = "the baseline has one run, which does not show how much runs vary"
            else:
                missing = "the baseline runs share no tasks, so they do not show how much runs vary"
            yield f"{comparison.name} is not compared: {missing}"
        elif of_cost and risen:
            yield f"cost is not compared in {_counted(risen, 'task')}: {_FROM_NOTHING}"
    limited = policy.limits.cost_increase_pct is not None and not plan.agent.is_reference
    cost_before = any(baseline.of(task.name).costs for task in measurement.tasks)
    if limited and cost_before and COST not in {comparison.name for comparison in comparisons}:
        yield "cost is not compared: the agent reported its cost at the baseline but not in this run"
