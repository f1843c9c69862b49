"""What a reader has to look at in a verdict and how it came about, in the order and the words of every report."""

import posixpath
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from passgate.tasks.model.measurement import TaskMeasurement, TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.transcript import END_IN_WORDS
from passgate.tasks.model.verdict import Confirmation, Finding, Integrity, OtherVerdict, Reason, Verdict
from passgate.tasks.reports import figures

TASK_LIMIT = 50
REASON_LIMIT = 50
VIOLATION_LIMIT = 10


class Echo(NamedTuple):
    """A reason that trials of several tasks have."""

    text: str
    first: str  # The task that tells it
    trials: int
    of: int  # Trials of the run

    def label(self, task: str) -> str:
        """`in 33 of 33 trials:` at the task that tells it, elsewhere where to read it."""
        return f"in {self.trials} of {self.of} trials:" if task == self.first else f"the same as in {self.first}"


class TaskFinding(NamedTuple):
    """A task with what the verdict says of it."""

    task: TaskMeasurement
    reasons: tuple[Reason, ...]
    withheld: str = ""  # Why the verdict does not let the task block: it is not admitted, or quarantined
    confirmation: Confirmation | None = None
    echoes: Mapping[str, Echo] = MappingProxyType({})  # By the whole text of the reason

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def blocks(self) -> bool:
        return any(reason.blocking for reason in self.reasons)

    @property
    def is_failure(self) -> bool:
        """Whether the task is red: it failed, or something other than missing evidence blocks on it."""
        return self.task.state is TaskState.FAILED or any(
            reason.blocking and reason.rule is not Rule.MISSING_EVIDENCE for reason in self.reasons
        )

    @property
    def is_undecided(self) -> bool:
        """Whether the task is neither red nor green."""
        return not self.is_failure and (self.task.state is TaskState.UNDECIDED or self.blocks)

    @property
    def compared(self) -> str:
        """`fallen: 5/12 now, 58/60 at the baseline, 9 confirming trials`; empty without confirming trials."""
        one = self.confirmation
        return f"{one.finding}: {figures.against_baseline(one)}" if one else ""

    @property
    def explanations(self) -> list[tuple[str, str]]:
        """Which trials failed and which could not be measured, each with the text on the first of them."""
        task = self.task
        kinds = (
            (task.failed_trials, "failed", task.failure),
            (task.error_trials, "could not be measured", task.error),
        )
        return [(figures.why_label(trials, what), text) for trials, what, text in kinds if trials or text]

    @property
    def why_not_blocking(self) -> str:
        """Why a task that did not pass does not block; empty for others, and where the verdict does not say why."""
        # No report may excuse a violation.
        if self.task.state is TaskState.PASSED or self.blocks or self.task.violations:
            return ""
        if self._excuse:
            return self._excuse
        rules = ", ".join(dict.fromkeys(reason.rule for reason in self.reasons))
        return f"{rules}: reported only" if rules else ""

    @property
    def _excuse(self) -> str:
        """Why no failure of the task blocks in this run."""
        if self.withheld:
            return self.withheld
        is_excused = self.confirmation and self.confirmation.finding is not Finding.FALLEN
        return self.compared if is_excused else ""

    @property
    def why_in_short(self) -> str:
        """Why the task does not block or what is wrong with it, for a line that has room for one of them."""
        first = next((reason.message for reason in self.reasons), "")
        if self.why_not_blocking:
            # A reason that is only reported begins with why, as that the task failed at the baseline too.
            return f"does not block: {self._excuse or first}"
        echo = self.echoes.get(self.task.failure or self.task.error)
        if echo is not None and echo.first != self.name:
            return echo.label(self.name)
        return self.task.failure or self.task.error or first


class ViolationGroup(NamedTuple):
    """The same violation in one or more trials."""

    rule: str
    message: str
    trials: tuple[int, ...]


def every_task(verdict: Verdict) -> tuple[TaskFinding, ...]:
    """Yield each measured task with what the verdict says of it, in the measurement's order."""
    reasons: dict[tuple[Suite | None, str | None], list[Reason]] = defaultdict(list)
    for reason in verdict.reasons:
        reasons[reason.suite, reason.task_id].append(reason)
    withheld: dict[str, list[str]] = defaultdict(list)
    for one in (*verdict.not_admitted, *verdict.quarantined):
        withheld[one.task].append(one.why)
    confirmations = {one.task: one for one in verdict.confirmations}
    return tuple(
        TaskFinding(
            task,
            tuple(reasons[task.suite, task.task_id]),
            "; ".join(withheld[task.name]),
            confirmations.get(task.name),
        )
        for task in verdict.measurement.tasks
    )


def findings(verdict: Verdict) -> tuple[TaskFinding, ...]:
    """Return the tasks to look at: with violations first, then those that block, that failed, that are undecided."""
    every = every_task(verdict)
    shown = [one for one in every if one.task.state is not TaskState.PASSED or one.task.violations or one.blocks]
    ordered = sorted(shown, key=_severity)
    echoes = _echoes(ordered, sum(task.planned for task in verdict.measurement.tasks))
    return tuple(one._replace(echoes=echoes) for one in ordered)


def _echoes(ordered: Sequence[TaskFinding], trials: int) -> Mapping[str, Echo]:
    """Return the reasons that trials of several tasks have, each told by the first of them."""
    counts, tasks, texts = Counter[str](), defaultdict[str, list[str]](list), dict[str, str]()
    for one in ordered:
        for text, equal in ((one.task.failure, one.task.equal_failures), (one.task.error, one.task.equal_errors)):
            if text and equal:
                texts[text] = cause = _cause(text)
                counts[cause] += equal
                tasks[cause].append(one.name)
    told = {cause: Echo(cause, names[0], counts[cause], trials) for cause, names in tasks.items() if len(names) > 1}
    return {text: told[cause] for text, cause in texts.items() if cause in told}


def _cause(reason: str) -> str:
    """Return the beginning of a reason if it is how the agent ended: what graders then miss follows from that."""
    cause = reason.partition("; ")[0]
    return cause if cause.startswith(tuple(END_IN_WORDS.values())) else reason


def _severity(finding: TaskFinding) -> tuple[int, float, int, str]:
    task = finding.task
    if task.violations:
        rank = 0
    elif finding.blocks:
        rank = 1 if finding.is_failure else 2
    else:
        rank = 3 if finding.is_failure else 4
    share = task.passed / task.n if task.n else 1.0
    return rank, share, list(Suite).index(task.suite), task.task_id


def message_once(reason: Reason, found: Sequence[TaskFinding]) -> str:
    """Return the message of a reason, without a text at its end that another task tells."""
    echoes = found[0].echoes if found else {}
    for text, echo in echoes.items():
        if reason.message.endswith(text) and reason_subject(reason) != echo.first:
            return f"{reason.message.removesuffix(text)}{echo.label(reason_subject(reason))}"
    return reason.message


def ordered_reasons(verdict: Verdict) -> tuple[Reason, ...]:
    """Return every reason, the blocking ones first."""
    return tuple(sorted(verdict.reasons, key=lambda reason: not reason.blocking))


def reasons_without_task(verdict: Verdict) -> tuple[Reason, ...]:
    """Blocking reasons that no measured task carries, such as a limit or a task that never ran."""
    measured = {(task.suite, task.task_id) for task in verdict.measurement.tasks}
    return tuple(
        reason for reason in verdict.reasons if reason.blocking and (reason.suite, reason.task_id) not in measured
    )


def is_open(verdict: Verdict, reason: Reason) -> bool:
    """Return whether a blocking reason can still be settled, with more trials or with a person's decision."""
    return reason.rule is Rule.MISSING_EVIDENCE or (reason.rule is Rule.SIGN_OFF and verdict.awaiting_sign_off)


def weight(reason: Reason) -> str:
    """`blocks`, or the opposite."""
    return "blocks" if reason.blocking else "reported, not blocking"


def reason_subject(reason: Reason) -> str:
    """`suite/task_id`, the suite alone, or nothing."""
    return "/".join(part for part in (reason.suite, reason.task_id) if part)


def violation_groups(task: TaskMeasurement) -> tuple[ViolationGroup, ...]:
    """Return the violations of a task, equal ones together, in the order of their first trial."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for violation in sorted(task.violations, key=lambda violation: violation.trial):
        groups[violation.rule, violation.message].append(violation.trial)
    return tuple(ViolationGroup(rule, message, tuple(trials)) for (rule, message), trials in groups.items())


def blocking(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Return the reasons that block."""
    return tuple(reason for reason in reasons if reason.blocking)


def notes(verdict: Verdict) -> tuple[str, ...]:
    """Return the verdict's notes, after what is to say of trials that were not run for it."""
    tasks, first = verdict.measurement.tasks, []
    stopped = [task for task in tasks if task.stopped_early]
    if saved := sum(task.not_run for task in stopped):
        decided = f"{figures.count(len(stopped), 'task')} {'was' if len(stopped) == 1 else 'were'} decided"
        first.append(
            f"{figures.count(saved, 'trial')} saved by stopping early: {decided} before the last planned trial"
        )
    if runs := Counter(task.reused_from for task in tasks if task.reused_from):
        since = figures.listed([run for run, _ in runs.most_common()], 3)
        first.append(
            f"{figures.count(runs.total(), 'task')} not run again: nothing they depend on has changed since {since}"
        )
    return (*first, *verdict.notes)


def models(verdict: Verdict) -> str:
    """Return the names of the models that answered, as in `a, b, c and 2 more`; empty when none is known."""
    return figures.listed(sorted({name for task in verdict.measurement.tasks for name in task.models}), 3)


def sign_off_commands(verdict: Verdict) -> tuple[str, ...]:
    """Return the lines of two shell commands; either of them settles the sign-off."""
    run = shlex.quote(verdict.run_id)
    return tuple(
        line
        for decision in ("approve", "reject")
        for line in (f"passgate sign-off {run} \\", f"  --by NAME --decision {decision} --reason TEXT")
    )


def judges(integrity: Integrity) -> str:
    """Whose files have judged."""
    if integrity.by_base:
        return f"the files of the {integrity.name}"
    return "its own files" if integrity.at_base is None else "the files of your working folder, outside of CI"


def other_verdict(verdict: Verdict, integrity: Integrity) -> str:
    """Return what introduces the verdict by the other files, or why there is none; empty where nobody asks for one."""
    other = integrity.other
    if other is None:
        return "This change's own files cannot be read or run, so they give no verdict." if integrity.by_base else ""
    files = "this change's own files" if integrity.by_base else f"the files of the {integrity.name}, as in CI"
    return f"Judged by {files}, the verdict would be{' the same.' if is_same_verdict(verdict, other) else ':'}"


def is_same_verdict(verdict: Verdict, other: OtherVerdict) -> bool:
    """Return whether another verdict says what this one does, for the same reasons."""
    reasons = (blocking(verdict.reasons), blocking(other.reasons))
    told = [[(reason.rule, reason.suite, reason.task_id) for reason in of_one] for of_one in reasons]
    return verdict.decision is other.decision and told[0] == told[1]


def path_from_top(verdict: Verdict, file: str) -> str:
    """Return the path of a file of the run from the top folder of the repository."""
    folder = verdict.revision.folder
    return posixpath.normpath(posixpath.join(folder, file)) if folder else file


def from_top(verdict: Verdict) -> Verdict:
    """Return the verdict with paths from the top folder of the repository, by which services of code know a file."""
    if not verdict.revision.folder:
        return verdict
    tasks = (task.model_copy(update={"file": path_from_top(verdict, task.file)}) for task in verdict.measurement.tasks)
    reasons = (
        reason.model_copy(update={"file": path_from_top(verdict, reason.file)}) if reason.file else reason
        for reason in verdict.reasons
    )
    measurement = verdict.measurement.model_copy(update={"tasks": tuple(tasks)})
    return verdict.model_copy(update={"measurement": measurement, "reasons": tuple(reasons)})
