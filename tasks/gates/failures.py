"""Failed tasks: what a failure means in the light of the baseline."""

from collections.abc import Iterable, Iterator, Mapping

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
    counts = f"{task.passed} of {task.n} passed, {in_trials(task.failed_trials)} failed"
    return f"{_rule_of(task)}; {counts}: {task.failure}"


def in_trials(trials: tuple[int, ...]) -> str:
    """`trial 4`, `trials 1, 2 and 5 more`."""
    shown = ", ".join(str(trial) for trial in trials[:10])
    more = f" and {len(trials) - 10} more" if len(trials) > 10 else ""
    return f"trial{'s' if len(trials) != 1 else ''} {shown}{more}"


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _rule_of(task: TaskMeasurement) -> str:
    if task.sequential is not None:
        return f"the sequential test requires a pass rate of {task.sequential.accept:g}"
    match task.metric:
        case Metric.PASS_HAT_K:
            return f"pass^{task.k} requires every trial to pass"
        case Metric.PASS_AT_K:
            return f"pass@{task.k} requires one trial to pass"
        case Metric.MEAN:
            return f"the mean score of {task.k} trials is {_shown(task.score)}"
        case Metric.CONFIDENCE_INTERVAL:
            return f"the lower bound of the mean score of {task.k} trials is {_shown(task.score)}"


def _shown(score: float | None) -> str:
    return "unknown" if score is None else f"{score:.3g}"


def failed_tasks(
    policy: GatePolicy,
    tasks: Iterable[TaskMeasurement],
    baseline: Baseline,
    confirmed: Mapping[str, Confirmation],
) -> Iterator[Reason]:
    """A reason for each failed task. One that may not block is of a task that is no worse than it was, or of which the
    baseline cannot say how it was.
    """
    for task in tasks:
        if task.state is not TaskState.FAILED:
            continue
        before = baseline.of(task.name)
        if is_weighed(policy, task):
            yield _weighed(policy, task, before, confirmed.get(task.name))
        elif before.state is BaselineState.GREEN:
            yield _failure(task, _was_green(before), fallen=True)
        else:
            yield _failure(task, "")


def _weighed(
    policy: GatePolicy, task: TaskMeasurement, before: BaselineTask, confirmation: Confirmation | None
) -> Reason:
    match before.state:
        case BaselineState.RED:
            return _failure(task, f"failed at the baseline too ({_runs(before)}); ", may_block=False)
        case BaselineState.UNRELIABLE:
            return _failure(task, f"the baseline is not reliable ({_runs(before)}); ", may_block=False)
        case BaselineState.GREEN if confirmation is not None:
            return _confirmed(policy, task, confirmation)
        case BaselineState.GREEN:
            return _failure(task, _was_green(before), fallen=True)
        case _:
            return _failure(task, "")


def _confirmed(policy: GatePolicy, task: TaskMeasurement, confirmation: Confirmation) -> Reason:
    counts = (
        f"{confirmation.passed} of {confirmation.n} trials passed now, "
        f"{confirmation.baseline_passed} of {confirmation.baseline_n} before"
    )
    match confirmation.finding:
        case Finding.FALLEN:
            return _failure(task, f"regression confirmed: {counts}; ", fallen=True)
        case Finding.FITS:
            return _failure(task, f"fits its baseline: {counts}; ", fallen=True, may_block=False)
        case Finding.UNDECIDED:
            blocks = policy.regression.undecided == "block"
            effect = "and the policy blocks on that" if blocks else "and the policy only reports that"
            setting = f"`regression.undecided: {policy.regression.undecided}`"
            message = f"possible regression: {counts}; too few trials to confirm it, {effect} ({setting}); "
            return _failure(task, message, fallen=True, may_block=blocks)
        case Finding.UNFINISHED:
            message = f"possible regression: {counts}; more trials are needed to decide; "
            return _failure(task, message, fallen=True, may_block=False)


def _failure(task: TaskMeasurement, before: str, *, fallen: bool = False, may_block: bool = True) -> Reason:
    """`fallen`: from green, which makes it a regression of a golden task."""
    rule = Rule.GOLDEN_REGRESSION if fallen and task.suite is Suite.GOLDEN else Rule.TASK_FAILED
    return of_task(rule, task, before + why_failed(task), task.failed_trials, may_block=may_block)


def _was_green(before: BaselineTask) -> str:
    return f"passed at the baseline ({_runs(before)}); "


def _runs(before: BaselineTask) -> str:
    return f"{before.runs_green} of {len(before.runs)} runs green, {before.passed} of {before.n} trials passed"
