"""The verdict as Markdown for a step summary or a comment on a pull request."""

from collections.abc import Iterable, Sequence
from functools import partial

from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Comparison, Decision, Exemption, Reason, Verdict
from passgate.tasks.reports import escape, figures, findings
from passgate.tasks.reports.findings import TaskFinding

LIMIT = 60_000  # GitHub takes 65 536 characters in a comment

# In characters. A reader sees at most this much of a name, as of a task or a file.
_NAME = 120
_TEXT = 500
_HEADLINE = 100
_REASONS = 25_000
_NOTES = 5_000
_COMPARISONS = 10
_LABEL = 60
_FAILURE_LINES = 20
# For the rows or items of a section on how the verdict came about, and for what it has beside them: its titles, and the
# lines that say what was left out.
_SECTION, _FRAME = 6_000, 1_500
_SIGN = {Decision.PASS: "✅", Decision.FAIL: "❌", Decision.INCONCLUSIVE: "⚠️"}


def markdown(view: RunView) -> str:
    """At most `LIMIT` characters. Details of tasks go first where room is short; the verdict stays."""
    verdict = view.verdict
    notes = findings.notes(verdict)
    suites = map(figures.suite_cells, verdict.measurement.suites)
    reasons = findings.ordered_reasons(verdict)
    found = findings.findings(verdict)
    header = ("", "rule", "task", "trials", "why")
    before = (
        f"## {_SIGN[verdict.decision]} {escape.markdown(verdict.headline)}",
        _sign_off(verdict),
        _table(figures.SUITE_HEADER, (_row((*row[:4], f"**{row[4]}**", *row[5:])) for row in suites), left=1),
        _fitting_table(header, (_reason_row(one, found) for one in reasons), _REASONS, len(reasons), "reason", left=5),
        _comparisons(verdict.comparisons),
    )
    after = (
        f"**Notes**\n\n{_items(map(escape.markdown, notes), _NOTES, len(notes), 'more notes')}" if notes else "",
        _provenance(verdict),
    )
    rest = LIMIT - len(_joined((*before, *after))) - len("\n")
    shown = evidence_sections(verdict, rest // 2)
    task_details = _findings(found, rest - len(shown))
    return _joined((*before, shown, task_details, *after)) + "\n"


def _reason_row(reason: Reason, found: Sequence[TaskFinding]) -> str:
    subject, weight = findings.reason_subject(reason), findings.weight(reason)
    place = f"<br>{_code(f'{reason.file}:{reason.line or 1}')}" if reason.file else ""
    task = f"{_code(subject)}{place}" if subject else ""
    # Under its title a number needs no word before it.
    _, _, trials = trial_numbers(reason.trials).partition(" ")
    weight = f"**{weight}**" if reason.blocking else weight
    return _row((weight, reason.rule, task, trials, escape.markdown(findings.message_once(reason, found))))


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    text = partial(escape.markdown, limit=_LABEL)
    rows = (_row(figures.comparison_cells(one, text)) for one in comparisons[:_COMPARISONS])
    table = _table(("against the baseline", *figures.COMPARISON_HEADER), rows, left=1)
    return _joined((table, escape.markdown(figures.paired_ratio_explained(comparisons))))


def _findings(found: Sequence[TaskFinding], limit: int) -> str:
    if not found:
        return ""
    summary = f"{figures.count(len(found), 'task')} to look at, worst first"
    # 200 characters for the marks of the details and the line that says what was left out.
    shown = _fitting((_finding(finding) for finding in found[: findings.TASK_LIMIT]), limit - len(summary) - 200)
    if len(shown) < len(found):
        shown.append(f"... and {len(found) - len(shown)} more, which verdict.json holds")
    return _details(summary, shown)


def _finding(finding: TaskFinding) -> str:
    task = finding.task
    groups = findings.violation_groups(task)
    violations = (
        f"**{group.rule}**, {trial_numbers(group.trials)}: {escape.markdown(group.message)}"
        for group in groups[: findings.VIOLATION_LIMIT]
    )
    parts = [
        f"#### {task.state}: {_code(finding.name)}",
        f"{_code(f'{task.file}:{task.line}')}: {figures.task_summary(task)}",
        f"not run again: reused from {_code(task.reused_from)}" if task.reused_from else "",
        f"does not block: {escape.markdown(finding.why_not_blocking)}" if finding.why_not_blocking else "",
        _items(violations, LIMIT, len(groups), "more violations"),
    ]
    for label, text in finding.explanations:
        # Without a text the label alone would tell no more than the summary of the task does.
        if text.strip():
            label, rest = finding.told_once(label, text)
            lines = escape.printable_lines(rest, lines=_FAILURE_LINES, limit=500)
            parts += [escape.markdown(label), escape.markdown_fence(lines) if rest else ""]
    values = task.metrics.model_dump()
    names = [name for name in task.tracked_metrics if name in values]
    if any(values[name] is not None for name in names):
        parts.append(_table(names, [_row(figures.tracked(name, values[name]) for name in names)], left=0))
    return _joined(parts)


def _provenance(verdict: Verdict) -> str:
    inputs, revision, integrity = verdict.inputs, verdict.revision, verdict.integrity
    facts = {
        "run": verdict.run_id,
        "agent": verdict.agent,
        "models": findings.models(verdict),
        "LLM judge": verdict.judge,
        "branch": revision.branch,
        "commit": f"{revision.commit}{' with changes' if revision.dirty else ''}",
        "started": verdict.started_at.isoformat(timespec="seconds"),
        "judged": verdict.judged_at.isoformat(timespec="seconds"),
        "isolation": ", ".join(verdict.measurement.isolation),
        "policy": inputs.policy,
        "tasks": inputs.tasks,
        "graders": inputs.graders,
        "trials": inputs.trials,
        "baseline": inputs.baseline,
        "quarantine": inputs.quarantine,
        "baseline runs": ", ".join(inputs.baseline_runs[:20]),
        "judged by the files of": integrity.judging if integrity and integrity.by_base else "",
        "signed verdict": verdict.sign_off.verdict_digest if verdict.sign_off else "",
        "passgate": inputs.passgate_version,
    }
    rows = (_row((name, _code(value))) for name, value in facts.items() if value)
    return _details("Run and digests", [_table(("", ""), rows, left=2)])


def no_verdict(summary: str, problems: Sequence[str]) -> str:
    """Why a run has given no verdict, for the step summary."""
    shown = (escape.markdown(problem, _TEXT) for problem in problems[: findings.REASON_LIMIT])
    return _joined(
        (f"**passgate: no verdict.** {escape.markdown(summary, _TEXT)}", _items(shown, _SECTION, len(problems)))
    )


def evidence_sections(verdict: Verdict, limit: int) -> str:
    """At most `limit` characters. A section without room is left out; verdict.json holds it."""
    # First, and with room of its own: a long list of anything else must not hide the edit that judges.
    shown = _integrity(verdict, min(_SECTION, limit // 4)) if limit > _FRAME else ""
    sections = (
        _confirmations,
        partial(_withheld, "Not admitted", verdict.not_admitted),
        partial(_withheld, "Quarantined", verdict.quarantined),
    )
    for section in sections:
        room = min(_SECTION, limit - len(shown) - _FRAME)
        if room > 0:
            shown = _joined((shown, section(verdict, room)))
    return shown


def _sign_off(verdict: Verdict) -> str:
    """What a person decided, or how to decide; empty where nobody has to."""
    if verdict.sign_off is not None:
        return f"**Sign-off**: {escape.markdown(findings.signed(verdict.sign_off), _TEXT)}"
    if not verdict.awaiting_sign_off:
        return ""
    commands = "\n".join(findings.sign_off_commands(verdict))
    fence = escape.markdown_fence(escape.printable_lines(commands, lines=commands.count("\n") + 1, limit=_TEXT))
    return f"**Awaiting sign-off**: {findings.HOW_TO_SIGN_OFF}\n\n{fence}"


def _confirmations(verdict: Verdict, room: int) -> str:
    found = findings.confirmations(verdict)
    header = ("evidence", "finding", "now", "at the baseline", "confirming trials")
    rows = []
    for one in found[: findings.TASK_LIMIT]:
        now, before = f"{one.passed}/{one.n}", figures.at_baseline(one)
        rows.append(_row((_code(one.task), f"**{one.finding}**", now, before, str(one.confirming))))
    return _fitting_table(header, rows, room, len(found), "task", left=2)


def _withheld(title: str, tasks: Sequence[Exemption], verdict: Verdict, room: int) -> str:
    if not tasks:
        return ""
    lines = (
        f"{_code(one.task)}{' **not passed now**' if is_red else ''}: {escape.markdown(one.why, _TEXT)}"
        for one, is_red in findings.withheld(verdict, tasks)
    )
    return f"**{title}**: {findings.withheld_title(tasks)}\n\n{_items(lines, room, len(tasks))}"


def _integrity(verdict: Verdict, room: int) -> str:
    integrity = verdict.integrity
    if integrity is None:
        return ""
    edits = findings.edits(integrity, findings.EDIT_LIMIT)
    lines = _fitting((f"- {edit.kind} {_code(edit.path)} ({edit.subject})" for edit in edits), room // 2)
    if len(lines) < len(integrity.edits):
        lines.append(f"- ... and {len(integrity.edits) - len(lines)} {findings.more_edits(integrity, len(lines))}")
    commit = f" {_code(integrity.judging[:12])}" if integrity.by_base else ""
    parts = [
        f"**Judged by {findings.judges(integrity)}**{commit}: this change edits files that judge it",
        "\n".join(lines),
    ]
    other, said = integrity.other, findings.other_verdict(verdict, integrity)
    if other is None or findings.is_same_verdict(verdict, other):
        parts.append(said)
    else:
        parts.append(f"{said} **{escape.markdown(other.headline, _HEADLINE)}**")
        reasons = findings.blocking(other.reasons)
        parts.append(_items(map(_other_reason, reasons[: findings.OTHER_REASON_LIMIT]), room // 2, len(reasons)))
    return _joined(parts)


def _other_reason(reason: Reason) -> str:
    subject = findings.reason_subject(reason)
    return f"{reason.rule}{f' {_code(subject)}' if subject else ''}: {escape.markdown(reason.message)}"


def _joined(sections: Iterable[str]) -> str:
    """The sections that are not empty, with an empty line between them."""
    return "\n\n".join(section for section in sections if section)


def _fitting(parts: Iterable[str], limit: int) -> list[str]:
    """The parts from the first on that have room within so many characters, each with a line end or two."""
    shown: list[str] = []
    for part in parts:
        limit -= len(part) + 2
        if limit < 0:
            break
        shown.append(part)
    return shown


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(header: Sequence[str], rows: Iterable[str], *, left: int) -> str:
    """A table whose first `left` columns are text and whose others are figures."""
    rule = ["---" if position < left else "---:" for position in range(len(header))]
    return "\n".join((_row(header), _row(rule), *rows))


def _fitting_table(header: Sequence[str], rows: Iterable[str], limit: int, total: int, noun: str, *, left: int) -> str:
    """The rows that have room within so many characters, and how many of all there are beyond them; empty of none."""
    shown = _fitting(rows, limit)
    more = f"... and {figures.count(total - len(shown), f'more {noun}')}" if len(shown) < total else ""
    return _joined((_table(header, shown, left=left), more)) if total else ""


def _code(text: str) -> str:
    """Text from outside as code, in Markdown and in HTML within it."""
    return f"<code>{escape.markdown(text, _NAME)}</code>"


def _details(summary: str, parts: Iterable[str]) -> str:
    # The empty lines are needed: without them GitHub takes the parts for HTML.
    return "\n\n".join((f"<details><summary>{summary}</summary>", *parts, "</details>"))


def _items(lines: Iterable[str], limit: int, total: int, more: str = "more") -> str:
    """The items of a list that have room within so many characters, and how many of all there are beyond them."""
    shown = _fitting((f"- {line}" for line in lines), limit)
    rest = [f"- ... and {total - len(shown)} {more}"] if len(shown) < total else []
    return "\n".join((*shown, *rest))
