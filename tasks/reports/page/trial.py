"""A trial as a page shows it."""

import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from passgate.tasks.model.grade import Grade
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import ChangedFile, ChangeKind, EndReason, Transcript
from passgate.tasks.model.trial import MEASURED, Trial, TrialStatus
from passgate.tasks.reports import figures
from passgate.tasks.reports.escape import readable
from passgate.tasks.reports.page.texts import AnswerComparison, Shown, compared, shown
from passgate.tasks.reports.page.timeline import TimelineEntry, timeline
from passgate.tasks.reports.shell_commands import try_command, try_options

MARKS = {
    TrialStatus.PASSED: "✓",
    TrialStatus.FAILED: "✗",
    TrialStatus.ERROR: "!",
    TrialStatus.NOT_RUN: "○",
}
"""A sign beside each colour."""
_CHANGE_MARKS = {ChangeKind.ADDED: "+", ChangeKind.MODIFIED: "~", ChangeKind.DELETED: "-"}
_DIFF_LINES = {"+": "added", "-": "deleted", "@": "place", "\\": "place"}  # By the first character of a line
_LINE = 2000
_MOST_GRADES, _MOST_CHECKS = 60, 200


class Bounds(NamedTuple):
    """How much of a trial is shown."""

    text: int
    """Characters of each text."""
    messages: int


class GradeShown(NamedTuple):
    """What a grader said."""

    name: str
    state: str
    """`passed`, `failed` or `error`."""
    score: str
    lines: tuple[tuple[str, Shown], ...]
    """The evidence, each with its kind: `passed`, `failed`, `violation` or `error`."""


class FileShown(NamedTuple):
    """A file that the agent changed."""

    path: str
    change: str
    mark: str
    size: str
    diff: tuple[tuple[str, str], ...]
    """The lines of a unified diff, each with its kind: `added`, `deleted`, `place` or nothing."""

    @property
    def added_lines(self) -> int:
        return sum(kind == "added" for kind, _ in self.diff)

    @property
    def deleted_lines(self) -> int:
        return sum(kind == "deleted" for kind, _ in self.diff)


class TrialShown(NamedTuple):
    """A trial with all that is known of it."""

    anchor: str
    number: int
    status: str
    mark: str
    reason: Shown | None
    facts: tuple[tuple[str, str], ...]
    entries: tuple[TimelineEntry, ...]
    grades: tuple[GradeShown, ...]
    answer: AnswerComparison | None
    """What was expected beside what came; `None` where the task says nothing of it."""
    output: Shown | None
    """The final answer, where it is not the last message."""
    remarks: tuple[str, ...]
    printed: Shown | None
    files: tuple[FileShown, ...]
    files_remark: str
    """What `files` does not say: that there are more, or none."""


def anchor(name: str, number: int | None = None) -> str:
    """What a task's or a trial's place on a page is called: `golden/say-yes`, `golden/say-yes/2`."""
    plain = "".join(mark if mark.isalnum() or mark in "-_./" else f"~{ord(mark):x}" for mark in name)
    return plain if number is None else f"{plain}/{number}"


def trial_shown(
    trial: Trial, task: EvalTask | None, read: Callable[[str], Transcript | None], bounds: Bounds
) -> TrialShown:
    """All that a page shows of a trial. Raises `StorageError` where its transcript cannot be read."""
    transcript = read(trial.transcript_digest) if trial.transcript_digest else None
    known = transcript or Transcript(complete=False)
    budgets = task.budgets if task else Budgets()
    answer = None
    if task is not None and transcript is not None and trial.status is TrialStatus.FAILED and task.reference_answer:
        expected = task.reference_answer if task.expected_messages else task.expected_output
        answer = compared(expected, known.output, bounds.text)
    last = known.messages[-1].content if known.messages else ""
    changes = known.file_changes
    return TrialShown(
        anchor=anchor(f"{trial.suite}/{trial.task_id}", trial.trial),
        number=trial.trial,
        status=trial.status.value,
        mark=MARKS[trial.status],
        reason=shown(trial.reason, _LINE) if trial.reason else None,
        facts=tuple(_facts(trial, known)),
        entries=timeline(known, budgets, text=bounds.text, most=bounds.messages),
        grades=tuple(_grades(trial, bounds.text)),
        answer=answer,
        output=shown(known.output, bounds.text) if known.output and known.output != last else None,
        remarks=tuple(_remarks(trial, transcript)),
        printed=shown(known.printed, bounds.text) if known.printed else None,
        files=tuple(_file(file, bounds.text) for file in changes.files) if changes else (),
        files_remark=(changes.remark or ("" if changes.files else "none")) if changes else "",
    )


def _file(file: ChangedFile, limit: int) -> FileShown:
    text, _ = readable("\n".join((file.diff or "").split("\n")[2:]), limit)
    return FileShown(
        path=shown(file.path, _LINE).text,
        change=file.change.value,
        mark=_CHANGE_MARKS[file.change],
        size="" if file.size is None else figures.size(file.size),
        diff=tuple((_DIFF_LINES.get(line[:1], ""), line) for line in text.split("\n")) if text else (),
    )


def _facts(trial: Trial, transcript: Transcript) -> Iterator[tuple[str, str]]:
    metrics = trial.metrics
    # Of a trial that was broken off before its graders were asked, the agent's end is not known.
    if trial.status in MEASURED and transcript.end is not EndReason.COMPLETED:
        yield "ended", str(transcript.end).replace("_", " ")
    values = (
        ("steps", figures.tracked("steps", metrics.steps)),
        ("tool calls", figures.tracked("tool_call_count", metrics.tool_call_count)),
        ("tokens", figures.tracked("total_tokens", metrics.total_tokens)),
        ("cost", figures.dollars(trial.cost or metrics.cost)),
        ("time", figures.duration(metrics.wall_time_seconds)),
        ("score", f"{trial.score:.2f}" if trial.score is not None else figures.UNKNOWN),
        ("attempts", str(trial.attempts) if trial.attempts > 1 else figures.UNKNOWN),
        ("model", trial.model or figures.UNKNOWN),
        ("isolation", trial.isolation or figures.UNKNOWN),
    )
    yield from ((name, shown(value, _LINE).text) for name, value in values if value != figures.UNKNOWN)


def _remarks(trial: Trial, transcript: Transcript | None) -> Iterator[str]:
    if trial.reused_from:
        yield f"Not run again: this trial is of the run {shown(trial.reused_from, _LINE).text}."
    if trial.trial >= trial.k:
        yield "A confirming trial: it was run because the task had failed."
    if transcript is None:
        yield "The run keeps no transcript of this trial."
    elif not transcript.complete and transcript.messages:
        yield "The agent reported no transcript: its steps and tool calls are not known."
    if transcript is not None and transcript.detail:
        yield shown(transcript.detail, _LINE).text


def _grades(trial: Trial, limit: int) -> Iterator[GradeShown]:
    yield from [one for grade in trial.grades for one in _grade(grade, "", limit)][:_MOST_GRADES]


def _grade(grade: Grade, within: str, limit: int) -> Iterator[GradeShown]:
    state = "error" if grade.error is not None else "passed" if grade.passed else "failed"
    title = within + (grade.name if grade.name == grade.type else f"{grade.name} ({grade.type})")
    score = "" if grade.score is None else f"{grade.score:.2f}"
    if grade.votes:
        score += f", votes {', '.join(f'{vote:.2f}' for vote in grade.votes)}"
    yield GradeShown(shown(title, _LINE).text, state, score, tuple(_evidence(grade, limit)))
    for member in grade.members:
        yield from _grade(member, f"{within}{grade.name} > ", limit)


def _evidence(grade: Grade, limit: int) -> Iterator[tuple[str, Shown]]:
    if grade.error is not None:
        yield "error", shown(grade.error, limit)
    if grade.fatal:
        yield "failed", shown(grade.fatal, limit)
    for violation in grade.violations:
        yield "violation", shown(f"{violation.rule}: {violation.message}", limit)
    # What failed is what a reader looks for.
    for check in sorted(grade.checks, key=lambda check: check.passed)[:_MOST_CHECKS]:
        yield "passed" if check.passed else "failed", shown(check.message, limit)


def reproduce(plan: Plan, task: EvalTask) -> str:
    """The shell command that runs a trial of a task again, from the folder of the run."""
    return shlex.join(try_command(task.name, plan.request.agent, try_options(plan.request)))
