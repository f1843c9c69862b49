"""What of a verdict needs the reader's eye, the worst first."""

from typing import NamedTuple

from passgate.tasks.model.measurement import TaskMeasurement, TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Confirmation, Reason, Verdict
from passgate.tasks.model.verdict import Finding as Confirmed
from passgate.tasks.reports import figures

TASK_LIMIT = 50
REASON_LIMIT = 50


class Finding(NamedTuple):
    """A task with what the verdict says of it."""

    task: TaskMeasurement
    reasons: tuple[Reason, ...]
    withheld: str = ""
    """Why the verdict lets it not block, as it is not admitted or quarantined."""
    confirmation: Confirmation | None = None

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def blocks(self) -> bool:
        return any(reason.blocking for reason in self.reasons)

    @property
    def is_failure(self) -> bool:
        """Whether the task is red: it failed, or something else than missing evidence blocks on it."""
        return self.task.state is TaskState.FAILED or any(
            reason.blocking and reason.rule is not Rule.MISSING_EVIDENCE for reason in self.reasons
        )

    @property
    def is_undecided(self) -> bool:
        """Whether the task is neither red nor green."""
        return not self.is_failure and (self.task.state is TaskState.UNDECIDED or self.blocks)

    @property
    def why_not_blocking(self) -> str:
        """Why a task that did not pass does not block.

        Empty where it passed or blocks, where the verdict does not say why, and where there is a violation: no report
        may excuse one.
        """
        if self.task.state is TaskState.PASSED or self.blocks or self.task.violations:
            return ""
        if self.withheld:
            return self.withheld
        if self.confirmation and self.confirmation.finding is not Confirmed.FALLEN:
            return f"{self.confirmation.finding}: {figures.against_baseline(self.confirmation)}"
        rules = ", ".join(dict.fromkeys(reason.rule for reason in self.reasons))
        return f"{rules}: reported only" if rules else ""


class ViolationGroup(NamedTuple):
    """The same violation in one or more trials."""

    rule: str
    message: str
    trials: tuple[int, ...]


def every_task(verdict: Verdict) -> tuple[Finding, ...]:
    """Each measured task with what the verdict says of it, in the measurement's order."""
    reasons: dict[tuple[Suite | None, str | None], list[Reason]] = {}
    for reason in verdict.reasons:
        reasons.setdefault((reason.suite, reason.task_id), []).append(reason)
    withheld: dict[str, list[str]] = {}
    for one in (*verdict.not_admitted, *verdict.quarantined):
        withheld.setdefault(one.task, []).append(one.why)
    confirmations = {one.task: one for one in verdict.confirmations}
    return tuple(
        Finding(
            task,
            tuple(reasons.get((task.suite, task.task_id), ())),
            "; ".join(withheld.get(task.name, ())),
            confirmations.get(task.name),
        )
        for task in verdict.measurement.tasks
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


def is_open(verdict: Verdict, reason: Reason) -> bool:
    """Whether a blocking reason is one that can still be settled, with more trials or a person's word."""
    return reason.rule is Rule.MISSING_EVIDENCE or (reason.rule is Rule.SIGN_OFF and verdict.awaiting_sign_off)


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
    return bool(finding.task.state is not TaskState.PASSED or finding.task.violations or finding.blocks)


def _severity(finding: Finding) -> tuple[int, float, int, str]:
    task = finding.task
    if task.violations:
        rank = 0
    elif finding.blocks:
        rank = 1 if finding.is_failure else 2
    else:
        rank = 3 if finding.is_failure else 4
    share = task.passed / task.n if task.n else 1.0
    return rank, share, list(Suite).index(task.suite), task.task_id
