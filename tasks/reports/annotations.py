"""The verdict as annotations of GitHub Actions: workflow commands, one a line, for standard output."""

from collections.abc import Sequence
from typing import NamedTuple

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Integrity, Reason, Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import annotation, annotation_property, printable, printable_lines

LIMIT = 10  # GitHub shows ten errors and ten warnings of a step and drops the rest without a word

_NAME = 200
_MESSAGE = 500
_LINES = 10


class _Annotation(NamedTuple):
    file: str | None
    line: int
    title: str
    message: str


def github_annotations(verdict: Verdict) -> str:
    """Return an `::error` per blocking reason, a `::warning` per other reason and task that did not pass without one.

    A `::notice` stands on each edited file that judges. Of each kind there are at most ten; the tenth counts the rest.
    """
    verdict = findings.from_top(verdict)
    errors = [_reason_annotation(reason) for reason in findings.blocking(verdict.reasons)]
    warnings = [_reason_annotation(reason) for reason in verdict.reasons if not reason.blocking]
    for finding in findings.findings(verdict):
        task = finding.task
        if task.state is not TaskState.PASSED and not finding.reasons:
            texts = [printable(one, _MESSAGE) for one in (finding.why_not_blocking, task.failure, task.error) if one]
            message = "\n".join((figures.task_summary(task), *texts))
            warnings.append(_Annotation(task.file, task.line, f"{task.state} {printable(task.name, _NAME)}", message))
    notices = _edit_annotations(verdict.integrity) if verdict.integrity else []
    return _commands("error", errors) + _commands("warning", warnings) + _commands("notice", notices)


def error_annotations(places: Sequence[tuple[str, int, str]]) -> str:
    """Return an `::error` for each of these messages with their files and lines, where there is no verdict."""
    title = "passgate: no verdict"
    shown = [
        _Annotation(file or None, line, title, "\n".join(printable_lines(message, lines=_LINES, limit=_MESSAGE)))
        for file, line, message in places
    ]
    return _commands("error", shown)


def _commands(kind: str, annotations: Sequence[_Annotation]) -> str:
    # Annotations at a line are worth more than those beside the run, and only ten of them are shown.
    shown = sorted(annotations, key=lambda one: one.file is None)[:LIMIT]
    more = len(annotations) - LIMIT
    if more > 0:
        shown[-1] = shown[-1]._replace(message=f"{shown[-1].message}\n... and {more} more, which GitHub would not show")
    lines = []
    for one in shown:
        place = {"file": printable(one.file, _NAME), "line": str(one.line)} if one.file else {}
        values = {name: annotation_property(value) for name, value in (place | {"title": one.title}).items()}
        properties = ",".join(f"{name}={value}" for name, value in values.items())
        lines.append(f"::{kind} {properties}::{annotation(one.message)}\n")
    return "".join(lines)


def _reason_annotation(reason: Reason) -> _Annotation:
    subject = printable(findings.reason_subject(reason), _NAME)
    trials = f" ({trial_numbers(reason.trials)})" if reason.trials else ""
    message = "\n".join(printable_lines(reason.message, lines=_LINES, limit=_MESSAGE))
    return _Annotation(reason.file, reason.line or 1, f"{reason.rule} {subject}{trials}".strip(), message)


def _edit_annotations(integrity: Integrity) -> list[_Annotation]:
    base = f"the {integrity.name} {printable(integrity.judging, _NAME)[:12]}"
    if integrity.by_base:
        title, judges = (
            f"judged by the {integrity.name}",
            f"judged with the files of {base}, not with those of this change",
        )
    else:
        title, judges = "judged by the change itself", f"judged with this change's own files, not with those of {base}"
    return [_Annotation(edit.path, 1, title, f"{edit.what} {edit.kind}: {judges}") for edit in integrity.edits]
