"""What of a verdict needs the reader's eye, the worst first."""

from typing import NamedTuple

from passgate.tasks.model.measurement import TaskMeasurement, TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Reason, Verdict

TASK_LIMIT = 50
REASON_LIMIT = 50


class Finding(NamedTuple):
    """A task that did not pass, or that the verdict or a violation speaks against all the same."""

    task: TaskMeasurement
    reasons: tuple[Reason, ...]

    @property
    def name(self) -> str:
        return f"{self.task.suite}/{self.task.task_id}"

    @property
    def is_failure(self) -> bool:
        """Whether the task is red: it failed, or something else than missing evidence blocks on it."""
        return self.task.state is TaskState.FAILED or any(
            reason.blocking and reason.rule is not Rule.MISSING_EVIDENCE for reason in self.reasons
        )

    @property
    def is_undecided(self) -> bool:
        """Whether the task is neither red nor green."""
        return not self.is_failure and (
            self.task.state is TaskState.UNDECIDED or any(reason.blocking for reason in self.reasons)
        )


class ViolationGroup(NamedTuple):
    """The same violation in one or more trials."""

    rule: str
    message: str
    trials: tuple[int, ...]


def every_task(verdict: Verdict) -> tuple[Finding, ...]:
    """Each measured task with the reasons that name it, in the measurement's order."""
    reasons: dict[tuple[Suite | None, str | None], list[Reason]] = {}
    for reason in verdict.reasons:
        reasons.setdefault((reason.suite, reason.task_id), []).append(reason)
    return tuple(
        Finding(task, tuple(reasons.get((task.suite, task.task_id), ()))) for task in verdict.measurement.tasks
    )


def findings(verdict: Verdict) -> tuple[Finding, ...]:
    """The tasks to look at: those with violations first, then what blocks, what failed, what is open."""
    return tuple(sorted(filter(_is_remarkable, every_task(verdict)), key=_severity))


def ordered_reasons(verdict: Verdict) -> tuple[Reason, ...]:
    """Every reason, the blocking ones first."""
    return tuple(sorted(verdict.reasons, key=lambda reason: not reason.blocking))


def reasons_without_task(verdict: Verdict) -> tuple[Reason, ...]:
    """Blocking reasons that no measured task carries, such as a limit or a task that never ran."""
    measured = {(task.suite, task.task_id) for task in verdict.measurement.tasks}
    return tuple(
        reason for reason in verdict.reasons if reason.blocking and (reason.suite, reason.task_id) not in measured
    )


def reason_subject(reason: Reason) -> str:
    """`suite/task_id`, the suite alone, or nothing."""
    return "/".join(part for part in (reason.suite, reason.task_id) if part)


def violation_groups(task: TaskMeasurement) -> tuple[ViolationGroup, ...]:
    """The violations of a task, equal ones together, in the order of their first trial."""
    groups: dict[tuple[str, str], list[int]] = {}
    for violation in sorted(task.violations, key=lambda violation: violation.trial):
        groups.setdefault((violation.rule, violation.message), []).append(violation.trial)
    return tuple(ViolationGroup(rule, message, tuple(trials)) for (rule, message), trials in groups.items())


def _is_remarkable(finding: Finding) -> bool:
    return bool(
        finding.task.state is not TaskState.PASSED
        or finding.task.violations
        or any(reason.blocking for reason in finding.reasons)
    )


def _severity(finding: Finding) -> tuple[int, float, int, str]:
    task = finding.task
    if task.violations:
        rank = 0
    elif any(reason.blocking for reason in finding.reasons) and finding.is_failure:
        rank = 1
    else:
        rank = 2 if finding.is_failure else 3
    share = task.passed / task.n if task.n else 1.0
    return rank, share, list(Suite).index(task.suite), task.task_id
