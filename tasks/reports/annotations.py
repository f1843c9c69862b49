"""The verdict as annotations of GitHub Actions: workflow commands, one a line, for standard output."""

from collections.abc import Sequence
from typing import NamedTuple

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.verdict import Reason, Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import annotation, annotation_property, printable, printable_lines
from passgate.tasks.reports.findings import TaskFinding

LIMIT = 10
"""GitHub shows ten errors and ten warnings of a step and drops the rest in silence."""

_NAME = 200
_MESSAGE = 500
_LINES = 10


class _Annotation(NamedTuple):
    file: str | None
    line: int
    title: str
    message: str


def github_annotations(verdict: Verdict) -> str:
    """An `::error` per blocking reason; a `::warning` per other reason and per task that did not pass without one.

    A `::notice` stands on each file that the change edits and that the merge base's version of has judged. What has no
    file comes last and stands beside the run. At most ten of each kind; the tenth says how many more there are. Empty
    when there is nothing to say.
    """
    errors = [_of_reason(reason) for reason in verdict.reasons if reason.blocking]
    warnings = [_of_reason(reason) for reason in verdict.reasons if not reason.blocking]
    return "".join(
        (
            *_commands("error", errors),
            *_commands("warning", [*warnings, *_without_reason(verdict)]),
            *_commands("notice", _edits(verdict)),
        )
    )


def _commands(kind: str, annotations: Sequence[_Annotation]) -> list[str]:
    ordered = sorted(annotations, key=lambda one: one.file is None)
    shown, more = ordered[:LIMIT], len(ordered) - LIMIT
    if more > 0:
        last = shown[-1]
        shown[-1] = last._replace(message=f"{last.message}\n... and {more} more, which GitHub would not show")
    return [_command(kind, one) for one in shown]


def _command(kind: str, one: _Annotation) -> str:
    place = {"file": printable(one.file, _NAME), "line": str(one.line)} if one.file else {}
    properties = ",".join(
        f"{name}={annotation_property(value)}" for name, value in (place | {"title": one.title}).items()
    )
    return f"::{kind} {properties}::{annotation(one.message)}\n"


def _of_reason(reason: Reason) -> _Annotation:
    subject = printable(findings.reason_subject(reason), _NAME)
    trials = f" ({figures.trial_numbers(reason.trials)})" if reason.trials else ""
    return _Annotation(
        reason.file,
        reason.line or 1,
        f"{reason.rule} {subject}{trials}".strip(),
        "\n".join(printable_lines(reason.message, lines=_LINES, limit=_MESSAGE)),
    )


def _without_reason(verdict: Verdict) -> list[_Annotation]:
    return [
        _Annotation(
            finding.task.file,
            finding.task.line,
            f"{finding.task.state} {printable(finding.name, _NAME)}",
            "\n".join((figures.task_summary(finding.task), *_texts(finding))),
        )
        for finding in findings.findings(verdict)
        if finding.task.state is not TaskState.PASSED and not finding.reasons
    ]


def _texts(finding: TaskFinding) -> list[str]:
    texts = (finding.why_not_blocking, finding.task.failure, finding.task.error)
    return [printable(text, _MESSAGE) for text in texts if text]


def _edits(verdict: Verdict) -> list[_Annotation]:
    integrity = verdict.integrity
    if integrity is None:
        return []
    base = printable(integrity.base, _NAME)[:12]
    title, judges = (
        ("judged by the merge base", f"the files of the merge base {base} have judged, not those of this change")
        if integrity.by_base
        else ("judged by the change itself", f"this change's own files have judged, not those of the merge base {base}")
    )
    return [_Annotation(edit.path, 1, title, f"{edit.what} {edit.kind}: {judges}") for edit in integrity.edits]
