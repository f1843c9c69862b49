"""The verdict for a terminal or the log of a CI job."""

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.measurement import SuiteMeasurement, TaskMeasurement
from passgate.tasks.model.verdict import Comparison, Reason, Verdict
from passgate.tasks.reports import evidence, figures, findings
from passgate.tasks.reports.console import (
    DECISION_STYLE,
    MESSAGE,
    NAME,
    SHORT_MESSAGE,
    Marked,
    heading,
    natural_width,
    plain_table,
    rendered,
)
from passgate.tasks.reports.escape import printable, printable_lines
from passgate.tasks.reports.findings import Finding
from passgate.tasks.reports.terminal_evidence import (
    confirmations_section,
    integrity_section,
    sign_off_section,
    withheld_sections,
)

_FAILURE_LINES = 12
_REASON_LINES = 4
_NOTES = 50
_VIOLATIONS = 10


def terminal(verdict: Verdict, *, width: int, color: bool) -> str:
    """The verdict as text of at most `width` columns, from the figures down to the headline.

    With `color` it holds the ANSI sequences of its own styles, without it none at all.
    """
    parts = (
        _run_line(verdict),
        Text(),
        _suites_table(verdict.measurement.suites, width),
        *_findings_section(findings.findings(verdict)),
        *confirmations_section(verdict, width),
        *_comparisons_section(verdict.comparisons, width),
        *withheld_sections(verdict),
        *integrity_section(verdict.integrity),
        *_notes_section(evidence.notes(verdict)),
        *_reasons_section(verdict),
        *sign_off_section(verdict),
        Text(),
        Marked("", Text(printable(verdict.headline, MESSAGE), DECISION_STYLE[verdict.decision])),
    )
    return rendered(*parts, width=width, color=color)


def _run_line(verdict: Verdict) -> RenderableType:
    revision = verdict.revision
    commit = f"commit {revision.commit[:12]}{' with changes' if revision.dirty else ''}" if revision.commit else ""
    branch = f"branch {revision.branch}" if revision.branch else ""
    judge = f"judge: {verdict.judge}" if verdict.judge else ""
    models = evidence.models(verdict)
    answered = f"answered by {models}" if models else ""
    facts = (verdict.run_id, f"agent {verdict.agent}", answered, judge, branch, commit)
    line = " · ".join(printable(fact, NAME) for fact in facts if fact)
    return Marked("run", Text(line, "dim"), style="dim")


def _suites_table(suites: tuple[SuiteMeasurement, ...], width: int) -> Table:
    wide = _suites_table_with(suites, width, ", ")
    return wide if natural_width(wide) <= width else _suites_table_with(suites, width, ",\n")


def _suites_table_with(suites: tuple[SuiteMeasurement, ...], width: int, between: str) -> Table:
    table = plain_table(width)
    table.add_column("suite", overflow="fold")
    interval = "95 % interval" if between == ", " else "95 %\ninterval"
    for name in ("tasks", "trials", "metric", "value", interval, "steps", "cost", "time"):
        table.add_column(name, justify="right", overflow="fold")
    for suite in suites:
        table.add_row(*_suite_row(suite, between))
    return table


def _suite_row(suite: SuiteMeasurement, between: str) -> tuple[RenderableType, ...]:
    missing = "".join(f"\n+{text}" for text in figures.missing(suite.trials_error, suite.trials_not_run))
    return (
        Text(suite.suite),
        Text(f"{suite.tasks_passed}/{suite.tasks}", "green" if suite.tasks_passed == suite.tasks else "red"),
        Text(f"{suite.trials_passed}/{suite.trials_measured}").append(missing, "yellow"),
        Text(figures.metric_name(suite.metric, suite.k)),
        Text(figures.percent(suite.value), "bold"),
        Text(figures.interval(suite.interval, between=between)),
        Text(figures.decimal(suite.steps)),
        Text(figures.dollars(suite.cost)),
        Text(figures.duration(suite.wall_time_seconds)),
    )


def _findings_section(found: tuple[Finding, ...]) -> Iterator[RenderableType]:
    if not found:
        return
    states = Counter(finding.task.state for finding in found)
    pardoned = sum(bool(finding.why_not_blocking) for finding in found)
    counts = ", ".join(f"{states[state]} {state}" for state in sorted(states))
    yield heading(f"To look at, the worst first: {counts}{f'; {pardoned} not blocking' if pardoned else ''}")
    for finding in found[: findings.TASK_LIMIT]:
        yield Text()
        yield from _finding_lines(finding)
    if len(found) > findings.TASK_LIMIT:
        yield Text(f"\n... and {len(found) - findings.TASK_LIMIT} more")


def _finding_lines(finding: Finding) -> Iterator[RenderableType]:
    task = finding.task
    mark, style = _finding_mark(finding)
    title = Text.assemble((task.state.upper(), f"bold {style}"), "  ", (printable(finding.name, NAME), "bold"))
    yield Marked(mark, title, style=f"bold {style}")
    yield Marked("│", Text(f"{printable(task.file, NAME)}:{task.line}", "cyan"), style="dim")
    yield Marked("│", Text(figures.task_summary(task)), style="dim")
    if task.reused_from:
        yield Marked("│", Text(f"not run again: reused from {printable(task.reused_from, NAME)}"), style="dim")
    if why := printable(finding.why_not_blocking, MESSAGE):
        yield Marked("│", Text(f"does not block: {why}", "yellow"), style="dim")
    yield from _violation_lines(task)
    yield from _why(task.failed_trials, "failed", task.failure)
    yield from _why(task.error_trials, "could not be measured", task.error)


def _finding_mark(finding: Finding) -> tuple[str, str]:
    if finding.is_failure and not finding.why_not_blocking:
        return "✗", "red"
    return ("?" if finding.is_undecided else "!"), "yellow"


def _violation_lines(task: TaskMeasurement) -> Iterator[RenderableType]:
    groups = findings.violation_groups(task)
    for group in groups[:_VIOLATIONS]:
        where = figures.trial_numbers(group.trials)
        text = Text.assemble((f"{group.rule}, {where}: ", "bold red"), printable(group.message, MESSAGE))
        yield Marked("│ !", text, style="red")
    if len(groups) > _VIOLATIONS:
        yield Marked("│", Text(f"... and {len(groups) - _VIOLATIONS} more violations"), style="dim")


def _why(trials: tuple[int, ...], what: str, text: str) -> Iterator[RenderableType]:
    if not (trials or text):
        return
    yield Marked("│", Text(figures.why_label(trials, what), "bold"), style="dim")
    for line in printable_lines(text, lines=_FAILURE_LINES, limit=MESSAGE):
        yield Marked("│  ", Text(line), style="dim")


def _comparisons_section(comparisons: tuple[Comparison, ...], width: int) -> Iterator[RenderableType]:
    if not comparisons:
        return
    yield heading("Against the baseline")
    table = plain_table(width)
    table.add_column("", overflow="fold")
    for name in ("baseline", "now", "change", "paired ratio", "at least", "tasks", "limit"):
        table.add_column(name, justify="right", overflow="fold")
    for comparison in comparisons:
        table.add_row(*map(Text, _comparison_row(comparison)))
    yield table
    yield Text(printable(figures.paired_ratio_explained(comparisons), MESSAGE), "dim")


def _comparison_row(comparison: Comparison) -> tuple[str, ...]:
    return (
        printable(comparison.name, NAME),
        figures.quantity(comparison.baseline, comparison.unit),
        figures.quantity(comparison.current, comparison.unit),
        figures.change(comparison.baseline, comparison.current),
        figures.times(comparison.ratio),
        figures.times(comparison.ratio_lower_bound),
        str(comparison.pairs),
        printable(comparison.limit, NAME),
    )


def _notes_section(notes: tuple[str, ...]) -> Iterator[RenderableType]:
    if not notes:
        return
    yield heading("Notes")
    for note in notes[:_NOTES]:
        yield Marked("·", Text(printable(note, MESSAGE)))
    if len(notes) > _NOTES:
        yield Text(f"... and {len(notes) - _NOTES} more")


def _reasons_section(verdict: Verdict) -> Iterator[RenderableType]:
    reasons = findings.ordered_reasons(verdict)
    if not reasons:
        return
    yield heading(verdict.decision, DECISION_STYLE[verdict.decision])
    for reason in reasons[: findings.REASON_LIMIT]:
        yield from _reason_lines(verdict, reason)
    if len(reasons) > findings.REASON_LIMIT:
        yield Text(f"... and {len(reasons) - findings.REASON_LIMIT} more")


def _reason_lines(verdict: Verdict, reason: Reason) -> Iterator[RenderableType]:
    mark, style = _reason_mark(verdict, reason)
    yield Marked(mark, Text(_reason_title(reason), style), style=style)
    # What is wrong with a task stands in full further up.
    lines, limit = (1, SHORT_MESSAGE) if reason.task_id else (_REASON_LINES, MESSAGE)
    for line in printable_lines(reason.message, lines=_REASON_LINES, limit=limit)[:lines]:
        yield Marked("│", Text(line), style="dim")


def _reason_mark(verdict: Verdict, reason: Reason) -> tuple[str, str]:
    if not reason.blocking:
        return "·", "yellow"
    return ("?", "bold yellow") if findings.is_open(verdict, reason) else ("✗", "bold red")


def _reason_title(reason: Reason) -> str:
    weight = "blocks" if reason.blocking else "reported, not blocking"
    trials = figures.trial_numbers(reason.trials) if reason.trials else ""
    facts = (weight, reason.rule, findings.reason_subject(reason), trials)
    return " · ".join(printable(fact, NAME) for fact in facts if fact)
