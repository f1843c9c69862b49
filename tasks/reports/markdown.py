"""The verdict as Markdown, for a step summary or a comment on a pull request."""

from collections.abc import Iterable, Sequence

from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Decision, Reason, RunView
from passgate.tasks.reports import escape, figures, findings
from passgate.tasks.reports.document import (
    Commands,
    Items,
    Section,
    Span,
    SpanKind,
    Table,
    VerdictDocument,
    Words,
    name,
    strong,
    task_explanations,
    verdict_document,
)
from passgate.tasks.reports.findings import TaskFinding

LIMIT = 60_000  # GitHub takes 65 536 characters in a comment

# In characters. A reader sees at most this much of a name, as of a task or a file.
_NAME = 120
_TEXT, _STRONG = 500, 100
_REASONS = 25_000
_NOTES = 5_000
_COMPARISONS = 2_000
_FAILURE_LINES = 20
# For the rows or items of a section on how the verdict came about, and for what it has beside them: its titles, and the
# lines that say what was left out.
_SECTION, _FRAME = 4_000, 1_500
_SIGN = {Decision.PASS: "✅", Decision.FAIL: "❌", Decision.INCONCLUSIVE: "⚠️"}


def markdown(view: RunView) -> str:
    """Render at most `LIMIT` characters. Details of tasks go first where room is short; the verdict stays."""
    verdict, document = view.verdict, verdict_document(view.verdict)
    reasons = tuple(_reason_row(reason, document.tasks) for reason in findings.ordered_reasons(verdict))
    before = (
        f"## {_SIGN[verdict.decision]} {escape.markdown(verdict.headline)}",
        _section(document.sign_off, _SECTION),
        _table(document.suites, LIMIT),
        _table(Table(("", "rule", "task", "trials", "why"), reasons, texts=5), _REASONS, "more reason"),
        _section(document.comparisons, _COMPARISONS),
    )
    after = (_section(document.notes, _NOTES), _fold("Run and digests", [_blocks(document.provenance, LIMIT)]))
    rest = LIMIT - len(_join((*before, *after))) - len("\n")
    shown = _evidence_sections(document, rest // 2)
    return _join((*before, shown, _tasks(document.tasks, rest - len(shown)), *after)) + "\n"


def no_verdict(summary: str, problems: Sequence[str]) -> str:
    """Render why a run has given no verdict, for the step summary."""
    shown = [f"- {escape.markdown(problem, _TEXT)}" for problem in problems[: findings.REASON_LIMIT]]
    title = f"**passgate: no verdict.** {escape.markdown(summary, _TEXT)}"
    return _join((title, _fitting(shown, _SECTION, len(problems))))


def _evidence_sections(document: VerdictDocument, limit: int) -> str:
    """Render how the verdict came about, in at most `limit` characters. A section without room is left out."""
    # First, and with room of its own: a long list of anything else must not hide the edit that judges.
    shown = _section(document.integrity, min(_SECTION, limit // 4)) if limit > _FRAME else ""
    for section in (document.confirmations, *document.withheld):
        room = min(_SECTION, limit - len(shown) - _FRAME)
        if room > 0:
            shown = _join((shown, _section(section, room)))
    return shown


def _reason_row(reason: Reason, tasks: Sequence[TaskFinding]) -> tuple[str | Span, ...]:
    subject, weight = findings.reason_subject(reason), findings.weight(reason)
    place = f"{reason.file}:{reason.line or 1}" if reason.file else ""
    # Under its title a number needs no word before it.
    _, _, trials = trial_numbers(reason.trials).partition(" ")
    return (
        strong(weight) if reason.blocking else weight,
        reason.rule,
        "<br>".join(_span(name(text)) for text in (subject, place if subject else "") if text),
        trials,
        Span(findings.message_once(reason, tasks)),
    )


def _tasks(tasks: Sequence[TaskFinding], limit: int) -> str:
    if not tasks:
        return ""
    summary = f"{figures.count(len(tasks), 'task')} to look at, worst first"
    shown = list(map(_task, tasks[: findings.TASK_LIMIT]))
    # 200 for the marks of the details and the line that says what was left out
    del shown[_how_many_fit(shown, limit - len(summary) - 200) :]
    if len(shown) < len(tasks):
        shown.append(f"... and {len(tasks) - len(shown)} more, which verdict.json holds")
    return _fold(summary, shown)


def _task(finding: TaskFinding) -> str:
    task, groups = finding.task, findings.violation_groups(finding.task)
    violations = [
        f"- **{group.rule}**, {trial_numbers(group.trials)}: {escape.markdown(group.message)}"
        for group in groups[: findings.VIOLATION_LIMIT]
    ]
    parts = [
        f"#### {task.state}: {_span(name(finding.name))}",
        f"{_span(name(f'{task.file}:{task.line}'))}: {figures.task_summary(task)}",
        f"not run again: reused from {_span(name(task.reused_from))}" if task.reused_from else "",
        f"does not block: {escape.markdown(finding.why_not_blocking)}" if finding.why_not_blocking else "",
        _fitting(violations, LIMIT, len(groups), "more violation"),
    ]
    for label, text in task_explanations(finding):
        lines = escape.printable_lines(text, lines=_FAILURE_LINES, limit=_TEXT)
        parts += [escape.markdown(label), escape.markdown_fence(lines) if text else ""]
    values = task.metrics.model_dump()
    names = tuple(metric for metric in task.tracked_metrics if metric in values)
    if any(values[metric] is not None for metric in names):
        row = tuple(figures.tracked(metric, values[metric]) for metric in names)
        parts.append(_table(Table(names, (row,), texts=0), LIMIT))
    return _join(parts)


def _section(section: Section | None, room: int) -> str:
    """Render a section with about `room` characters of items and rows."""
    if section is None:
        return ""
    return _join((_words(section.title), _blocks(section, room)))


def _blocks(section: Section, room: int) -> str:
    shown = list[str]()
    for block in section.blocks:
        match block:
            case Items():
                lines = [f"- {_words(item.words)}" for item in block.items[: block.most]]
                count = _how_many_fit(lines, room // 2 if len(section.blocks) > 1 else room)
                shown.append("\n".join((*lines[:count], *([f"- {more}"] if (more := block.more(count)) else []))))
            case Table():
                shown += [_table(block, room, "more row"), escape.markdown(block.note)]
            case Commands():
                lines = list(escape.printable_lines("\n".join(block.lines), lines=len(block.lines), limit=_TEXT))
                shown.append(escape.markdown_fence(tuple(lines)))
            case words:
                shown.append(_words(words))
    return _join(shown)


def _words(words: Words) -> str:
    return "".join(map(_span, words))


def _span(part: str | Span) -> str:
    if not isinstance(part, Span):
        return part
    match part.kind:
        case SpanKind.NAME:
            # As a tag, because it also stands within HTML.
            return f"<code>{escape.markdown(part.text, _NAME)}</code>"
        case SpanKind.STRONG:
            return f"**{escape.markdown(part.text, _STRONG)}**"
        case _:
            return escape.markdown(part.text, _TEXT)


def _table(table: Table, limit: int, noun: str = "") -> str:
    """Render the rows that have room within so many characters, and how many there are beyond them."""
    if not table.rows:
        return ""
    rows = [f"| {' | '.join(map(_span, row))} |" for row in table.rows]
    count = _how_many_fit(rows, limit)
    rule = ["---" if position < table.texts else "---:" for position in range(len(table.header))]
    head = (f"| {' | '.join(table.header)} |", f"| {' | '.join(rule)} |")
    more = f"... and {figures.count(len(rows) - count, noun)}" if count < len(rows) else ""
    return _join(("\n".join((*head, *rows[:count])), more))


def _fitting(lines: Sequence[str], limit: int, total: int, noun: str = "more") -> str:
    """Join the lines that have room within so many characters, and say how many of all there are beyond them."""
    count = _how_many_fit(lines, limit)
    more = f"- ... and {total - count} {noun}{'s' if noun != 'more' else ''}"
    return "\n".join((*lines[:count], *([more] if count < total else [])))


def _how_many_fit(parts: Iterable[str], limit: int) -> int:
    """Return how many parts from the first on have room within so many characters, each with a line end or two."""
    count = 0
    for part in parts:
        limit -= len(part) + 2
        if limit < 0:
            break
        count += 1
    return count


def _join(sections: Iterable[str]) -> str:
    """Join the sections that are not empty, with an empty line between them."""
    return "\n\n".join(section for section in sections if section)


def _fold(summary: str, parts: Iterable[str]) -> str:
    # The empty lines are needed: without them GitHub takes the parts for HTML.
    return "\n\n".join((f"<details><summary>{summary}</summary>", *parts, "</details>"))
