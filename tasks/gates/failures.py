"""Failed tasks: what a failure means in the light of the baseline."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from passgate.tasks.gates.evidence import is_weighed
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import TaskMeasurement, TaskState
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.verdict import Confirmation, Finding, Reason


def of_task(
    rule: Rule, task: TaskMeasurement, message: str, trials: tuple[int, ...] = (), *, may_block: bool = True
) -> Reason:
    """A reason with the place of its task. Whether it blocks the gate's policy has to say too."""
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


def gap(message: str, suite: Suite | None = None) -> Reason:
    """Evidence that is missing."""
    return Reason(rule=Rule.MISSING_EVIDENCE, blocking=True, suite=suite, message=message)


def why_failed(task: TaskMeasurement) -> str:
    """By which rule a task has failed, and how its first failed trial did."""
    score = "unknown" if task.score is None else f"{task.score:.3g}"
    if task.sequential is not None:
        rule = f"the sequential test requires a pass rate of {task.sequential.accept:g}"
    else:
        rule = {
            Metric.PASS_HAT_K: f"pass^{task.k} requires every trial to pass",
            Metric.PASS_AT_K: f"pass@{task.k} requires one trial to pass",
            Metric.MEAN: f"the mean score of {task.k} trials is {score}",
            Metric.CONFIDENCE_INTERVAL: f"the lower bound of the mean score of {task.k} trials is {score}",
        }[task.metric]
    counts = f"{task.passed} of {task.n} passed, {in_trials(task.failed_trials)} failed"
    return f"{rule}; {counts}: {task.failure}"


def in_trials(trials: tuple[int, ...]) -> str:
    """`trial 4`, `trials 1, 2 and 5 more`."""
    shown = ", ".join(str(trial) for trial in trials[:10])
    more = f" and {len(trials) - 10} more" if len(trials) > 10 else ""
    return f"trial{'s' if len(trials) != 1 else ''} {shown}{more}"


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {noun}{'s' if number != 1 else ''}"


def failed_tasks(
    policy: GatePolicy, tasks: Iterable[TaskMeasurement], baseline: Baseline, confirmed: Mapping[str, Confirmation]
) -> Iterator[Reason]:
    """A reason for each failed task. One that may not block is of a task that is no worse than it was, or of which the
    baseline cannot say how it was.
    """
    for task in tasks:
        if task.state is not TaskState.FAILED:
            continue
        meaning = _in_the_light_of(policy, task, baseline.of(task.name), confirmed.get(task.name))
        is_regression = meaning.fallen and task.suite is Suite.GOLDEN
        rule = Rule.GOLDEN_REGRESSION if is_regression else Rule.TASK_FAILED
        message = meaning.text + why_failed(task)
        yield of_task(rule, task, message, task.failed_trials, may_block=meaning.may_block)


class _Meaning(NamedTuple):
    text: str
    fallen: bool = False
    """From green, which makes it a regression of a golden task."""
    may_block: bool = True


def _in_the_light_of(
    policy: GatePolicy, task: TaskMeasurement, before: BaselineTask, confirmation: Confirmation | None
) -> _Meaning:
    """What a failure means by the baseline and by the confirming trials."""
    runs = f"{before.runs_green} of {len(before.runs)} runs green, {before.passed} of {before.n} trials passed"
    weighed = is_weighed(policy, task)
    if before.state is BaselineState.GREEN and not (weighed and confirmation):
        return _Meaning(f"passed at the baseline ({runs}); ", fallen=True)
    if weighed and before.state is BaselineState.RED:
        return _Meaning(f"failed at the baseline too ({runs}); ", may_block=False)
    if weighed and before.state is BaselineState.UNRELIABLE:
        return _Meaning(f"the baseline is not reliable ({runs}); ", may_block=False)
    if before.state is not BaselineState.GREEN or confirmation is None:
        return _Meaning("")
    counts = (
        f"{confirmation.passed} of {confirmation.n} trials passed now, "
        f"{confirmation.baseline_passed} of {confirmation.baseline_n} before"
    )
    match confirmation.finding:
        case Finding.FALLEN:
            return _Meaning(f"regression confirmed: {counts}; ", fallen=True)
        case Finding.FITS:
            return _Meaning(f"fits its baseline: {counts}; ", fallen=True, may_block=False)
        case Finding.UNDECIDED:
            blocks = policy.regression.undecided == "block"
            effect = "and the policy blocks on that" if blocks else "and the policy only reports that"
            setting = f"`regression.undecided: {policy.regression.undecided}`"
            text = f"possible regression: {counts}; too few trials to confirm it, {effect} ({setting}); "
            return _Meaning(text, fallen=True, may_block=blocks)
        case Finding.UNFINISHED:
            # Missing evidence has a reason of its own, which leaves the gate undecided; this one must not fail it.
            text = f"possible regression: {counts}; more trials are needed to decide; "
            return _Meaning(text, fallen=True, may_block=False)
