"""What speaks against passing, in words."""

from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.verdict import Reason


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
