"""The verdict for a terminal or the log of a CI job."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.measurement import SuiteMeasurement
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Comparison, Exemption, Finding, Integrity, OtherVerdict, Verdict
from passgate.tasks.reports import console, figures, findings
from passgate.tasks.reports.console import DECISION_STYLE, MESSAGE, NAME, SHORT_MESSAGE, Marked, heading
from passgate.tasks.reports.escape import printable, printable_lines
from passgate.tasks.reports.findings import TaskFinding

_FAILURE_LINES = 12
_REASON_LINES = 4
_NOTES = 50
_LOOKS = {
    Finding.FALLEN: ("✗", "red"),
    Finding.UNFINISHED: ("?", "yellow"),
    Finding.UNDECIDED: ("?", "yellow"),
    Finding.FITS: ("✓", "green"),
}


def terminal(verdict: Verdict, *, width: int, color: bool) -> str:
    """The verdict as text of at most `width` columns, from the figures down to the headline.

    With `color` it holds the ANSI sequences of its own styles, without it none at all.
    """
    notes = findings.notes(verdict)
    parts = (
        _run_line(verdict),
        Text(),
        _suites_table(verdict.measurement.suites, width),
        *_findings_section(findings.findings(verdict)),
        *_confirmations_section(verdict, width),
        *_comparisons_section(verdict.comparisons, width),
        *_withheld_section(verdict, "Not admitted", verdict.not_admitted),
        *_withheld_section(verdict, "Quarantined", verdict.quarantined),
        *(_integrity_section(verdict.integrity) if verdict.integrity else ()),
        *([heading("Notes")] if notes else []),
        *(Marked("·", Text(printable(note, MESSAGE))) for note in notes[:_NOTES]),
        *_more(len(notes) - _NOTES),
        *_reasons_section(verdict),
        *_sign_off_section(verdict),
        Text(),
        # Last, because a terminal and the log of a job show their end first.
        Marked("", Text(printable(verdict.headline, MESSAGE), DECISION_STYLE[verdict.decision])),
    )
    return console.rendered(*parts, width=width, color=color)


def _run_line(verdict: Verdict) -> RenderableType:
    revision, models = verdict.revision, findings.models(verdict)
    facts = (
        verdict.run_id,
        f"agent {verdict.agent}",
        f"answered by {models}" if models else "",
        f"LLM judge: {verdict.judge}" if verdict.judge else "",
        f"branch {revision.branch}" if revision.branch else "",
        f"commit {revision.commit[:12]}{' with changes' if revision.dirty else ''}" if revision.commit else "",
    )
    line = " · ".join(printable(fact, NAME) for fact in facts if fact)
    return Marked("run", Text(line, "dim"), style="dim")


def _suites_table(suites: tuple[SuiteMeasurement, ...], width: int) -> Table:
    def table(between: str) -> Table:
        # A narrow table has the ends of the interval on two lines, and its title too.
        names = [name if between == ", " else name.replace(" interval", "\ninterval") for name in figures.SUITE_HEADER]
        header = (*console.columns(names[0]), *console.columns(*names[1:], justify="right"))
        return console.plain_table(width, header, (_suite_row(suite, between) for suite in suites))

    return console.fitting_table(table, width, ", ", ",\n")


def _suite_row(suite: SuiteMeasurement, between: str) -> list[Text]:
    cells = [Text(cell) for cell in figures.suite_cells(suite, between=between, gap="\n")]
    _, tasks, trials, _, value, *_ = cells
    tasks.stylize("green" if suite.tasks_passed == suite.tasks else "red")
    trials.stylize("yellow", start=len(trials.plain.partition("\n")[0]))
    value.stylize("bold")
    return cells


def _findings_section(found: tuple[TaskFinding, ...]) -> Iterator[RenderableType]:
    if not found:
        return
    states = Counter(finding.task.state for finding in found)
    counts = ", ".join(f"{states[state]} {state}" for state in sorted(states))
    not_blocking = sum(bool(finding.why_not_blocking) for finding in found)
    yield heading(f"Tasks to look at, worst first: {counts}{f'; {not_blocking} not blocking' if not_blocking else ''}")
    for finding in found[: findings.TASK_LIMIT]:
        yield Text()
        yield from _finding_lines(finding)
    if len(found) > findings.TASK_LIMIT:
        yield Text()
        yield from _more(len(found) - findings.TASK_LIMIT)


def _finding_lines(finding: TaskFinding) -> Iterator[RenderableType]:
    task = finding.task
    is_red = finding.is_failure and not finding.why_not_blocking
    mark, style = ("✗", "red") if is_red else ("?", "yellow") if finding.is_undecided else ("!", "yellow")
    title = Text.assemble((task.state.upper(), f"bold {style}"), "  ", (printable(finding.name, NAME), "bold"))
    yield Marked(mark, title, style=f"bold {style}")
    yield _quiet(f"{printable(task.file, NAME)}:{task.line}", "cyan")
    yield _quiet(figures.task_summary(task))
    if task.reused_from:
        yield _quiet(f"not run again: reused from {printable(task.reused_from, NAME)}")
    if why := printable(finding.why_not_blocking, MESSAGE):
        yield _quiet(f"does not block: {why}", "yellow")
    groups = findings.violation_groups(task)
    for group in groups[: findings.VIOLATION_LIMIT]:
        rule = f"{group.rule}, {trial_numbers(group.trials)}: "
        yield Marked("│ !", Text.assemble((rule, "bold red"), printable(group.message, MESSAGE)), style="red")
    if len(groups) > findings.VIOLATION_LIMIT:
        yield _quiet(f"... and {len(groups) - findings.VIOLATION_LIMIT} more violations")
    for label, text in finding.explanations:
        yield _quiet(label, "bold")
        for line in printable_lines(text, lines=_FAILURE_LINES, limit=MESSAGE):
            yield Marked("│  ", Text(line), style="dim")


def _quiet(text: str, style: str = "") -> Marked:
    """A line of ours behind a dim bar, under the line that it belongs to."""
    return Marked("│", Text(text, style), style="dim")


def _comparisons_section(comparisons: tuple[Comparison, ...], width: int) -> Iterator[RenderableType]:
    if not comparisons:
        return
    yield heading("Against the baseline")
    rows = (figures.comparison_cells(one, partial(printable, limit=NAME)) for one in comparisons)
    header = (*console.columns(""), *console.columns(*figures.COMPARISON_HEADER, justify="right"))
    yield console.plain_table(width, header, (map(Text, row) for row in rows))
    yield Text(printable(figures.paired_ratio_explained(comparisons), MESSAGE), "dim")


def _reasons_section(verdict: Verdict) -> Iterator[RenderableType]:
    reasons = findings.ordered_reasons(verdict)
    if not reasons:
        return
    yield heading(verdict.decision, DECISION_STYLE[verdict.decision])
    for reason in reasons[: findings.REASON_LIMIT]:
        mark, style = ("?", "bold yellow") if findings.is_open(verdict, reason) else ("✗", "bold red")
        if not reason.blocking:
            mark, style = "·", "yellow"
        trials = trial_numbers(reason.trials) if reason.trials else ""
        facts = (findings.weight(reason), reason.rule, findings.reason_subject(reason), trials)
        title = " · ".join(printable(fact, NAME) for fact in facts if fact)
        yield Marked(mark, Text(title, style), style=style)
        # The whole message of a task's reason stands further up, with the task.
        lines, limit = (1, SHORT_MESSAGE) if reason.task_id else (_REASON_LINES, MESSAGE)
        for line in printable_lines(reason.message, lines=_REASON_LINES, limit=limit)[:lines]:
            yield _quiet(line)
    yield from _more(len(reasons) - findings.REASON_LIMIT)


def _confirmations_section(verdict: Verdict, width: int) -> Iterator[RenderableType]:
    """A line per task that got confirming trials; nothing where none did."""
    found = findings.confirmations(verdict)
    if not found:
        return
    yield heading("Evidence: failed tasks against their baseline")
    shown = found[: findings.TASK_LIMIT]
    names = [printable(one.task, NAME) for one in shown]
    texts = [figures.against_baseline(one) for one in shown]
    widths = [max(map(cell_len, cells)) for cells in (names, [one.finding for one in shown])]
    # Where the columns do not fit side by side, each line is as short as it can be.
    if sum(widths) + max(map(cell_len, texts)) + len("✗     ") > width:
        widths = [0, 0]
    for one, name, text in zip(shown, names, texts, strict=True):
        mark, style = _LOOKS[one.finding]
        # Padded by cells, not by characters: a wide character, as of Chinese, takes two.
        padded = (name + " " * (widths[0] - cell_len(name)), "bold")
        line = Text.assemble(padded, "  ", (f"{one.finding:<{widths[1]}}", style), f"  {text}")
        yield Marked(mark, line, style=f"bold {style}")
    yield from _more(len(found) - len(shown))


def _withheld_section(verdict: Verdict, title: str, tasks: Sequence[Exemption]) -> Iterator[RenderableType]:
    if not tasks:
        return
    yield heading(f"{title}: {findings.withheld_title(tasks)}")
    for one, is_red in findings.withheld(verdict, tasks):
        mark, style = ("!", "bold yellow") if is_red else ("·", "")
        text = Text.assemble((printable(one.task, NAME), "bold"), f"  {printable(one.why, MESSAGE)}")
        yield Marked(mark, text, style=style)
    yield from _more(len(tasks) - findings.WITHHELD_LIMIT)


def _integrity_section(integrity: Integrity) -> Iterator[RenderableType]:
    """Which edits there are of files that judge, whose files judged, and what the change's own would have said."""
    judges = (
        f"the files of the {integrity.name} {printable(integrity.judging, NAME)[:12]}"
        if integrity.by_base
        else "its own files"
    )
    yield heading(f"Judged by {judges}: this change edits files that judge it", "bold yellow")
    for edit in integrity.edits[: findings.EDIT_LIMIT]:
        yield Marked("!", Text(f"{edit.kind} {printable(edit.path, NAME)} ({edit.what})"), style="bold yellow")
    yield from _more(len(integrity.edits) - findings.EDIT_LIMIT)
    if integrity.by_base:
        yield from _other_verdict(integrity.change)


def _other_verdict(other: OtherVerdict | None) -> Iterator[RenderableType]:
    if other is None:
        yield Marked("·", Text(findings.NO_OTHER_VERDICT))
        return
    yield Marked("·", Text(findings.OTHER_VERDICT))
    yield _quiet(printable(other.headline, MESSAGE), DECISION_STYLE[other.decision])
    reasons = findings.blocking(other.reasons)
    for reason in reasons[: findings.OTHER_REASON_LIMIT]:
        title = " · ".join(filter(None, (reason.rule, printable(findings.reason_subject(reason), NAME))))
        yield Marked("│ ✗", Text(f"{title}: {printable(reason.message, SHORT_MESSAGE)}"), style="dim")
    if len(reasons) > findings.OTHER_REASON_LIMIT:
        yield _quiet(f"... and {len(reasons) - findings.OTHER_REASON_LIMIT} more")


def _sign_off_section(verdict: Verdict) -> Iterator[RenderableType]:
    """What a person decided, or how to decide."""
    if verdict.sign_off is not None:
        mark, style = ("✓", "bold green") if verdict.sign_off.decision == "approve" else ("✗", "bold red")
        yield heading("Sign-off")
        yield Marked(mark, Text(printable(findings.signed(verdict.sign_off), MESSAGE)), style=style)
    elif verdict.awaiting_sign_off:
        yield heading(f"Awaiting sign-off: {findings.HOW_TO_SIGN_OFF}", "bold yellow")
        commands = findings.sign_off_commands(verdict)
        for line in printable_lines("\n".join(commands), lines=len(commands), limit=MESSAGE):
            yield Text(f"  {line}", "bold")


def _more(number: int) -> Iterator[RenderableType]:
    if number > 0:
        yield Text(f"... and {number} more")
