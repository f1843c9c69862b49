"""The verdict for a terminal or the log of a CI job."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.measurement import SuiteMeasurement
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit
from passgate.tasks.model.verdict import Comparison, Integrity, OtherVerdict, Reason, Verdict
from passgate.tasks.reports import console, figures, findings
from passgate.tasks.reports.console import DECISION_STYLE, MESSAGE, NAME, SHORT_MESSAGE, Marked, heading
from passgate.tasks.reports.escape import printable, printable_lines
from passgate.tasks.reports.terminal_tasks import Sheet, heading_of, task_lines

LINES: Final = 39
"""Lines of a summary, so that it has 40 with the one that says where the run is kept."""
_WHOLE: Final = 5000
"""Lines of a summary that no screen bounds, as in the log of a job."""
_LEAST_OF_A_SECTION = 5
_MOST_EDITS = 8
_LEFT_OUT = 2  # Lines that say which sections are left out
_SHARE_OF_OTHERS = 4  # Of the lines, one in so many is kept for what is not about tasks


class _Most(NamedTuple):
    """How much of what has many entries is shown."""

    lines: int
    reasons: int
    notes: int
    edits: int
    other_reasons: int


_ON_SCREEN: Final = _Most(LINES, reasons=5, notes=12, edits=3, other_reasons=2)
_IN_LOG: Final = _Most(_WHOLE, *[_WHOLE] * 4)


def terminal(verdict: Verdict, *, width: int, color: bool, options: Sequence[str] = (), is_whole: bool = False) -> str:
    """The verdict as text of at most `width` columns, from the figures down to the headline, in at most about `LINES`
    lines from 80 columns on. It says each thing once, and how much is left out and where that is. With `is_whole` it
    leaves out nothing, as where it goes to a log or a file.

    With `color` it holds the ANSI sequences of its own styles, without it none at all. `options` are those of the run
    that `passgate try` needs too.
    """
    most = _IN_LOG if is_whole else _ON_SCREEN
    page = Sheet(width, color, verdict.run_id, verdict.agent, options)
    found = findings.findings(verdict)
    head = page.lines(_run_line(verdict), Text(), _suites_table(verdict.measurement.suites, width))
    tail = [
        *page.lines(*_reasons_section(verdict, most)),
        *page.lines(*_sign_off_section(verdict)),
        # Last, because a terminal and the log of a job show their end first.
        *page.lines(Text(), Marked("", Text(printable(verdict.headline, MESSAGE), DECISION_STYLE[verdict.decision]))),
    ]
    others = [(name, lines) for name, parts in _other_sections(verdict, width, most) if (lines := page.lines(*parts))]
    # Never cut: a long list of harmless edits must not hide the one that judges.
    kept = len(page.lines(*_deciding_edits(verdict.integrity, most))) if verdict.integrity else 0
    room = most.lines - len(head) - len(tail)
    tasks: list[str] = []
    if found:
        tasks = page.lines(heading(heading_of(found)))
        wanted = sum(len(lines) for _, lines in others)
        kept_of_others = max(room // _SHARE_OF_OTHERS, kept + 1 + _LEFT_OUT, _LEAST_OF_A_SECTION + _LEFT_OUT)
        tasks += task_lines(found, page, room - len(tasks) - min(wanted, kept_of_others))
    shown = _fitted(others, room - len(tasks), page, kept)
    return "".join(f"{line}\n" for line in (*head, *tasks, *shown, *tail))


def _other_sections(verdict: Verdict, width: int, most: _Most) -> Iterator[tuple[str, Iterator[RenderableType]]]:
    """What stands between the tasks and the reasons, each with its name. It begins with an empty line and a heading."""
    if verdict.integrity:
        yield "who judged", _integrity_section(verdict, verdict.integrity, most)
    yield "the baseline", _comparisons_section(verdict.comparisons, width)
    yield "notes", _notes_section(verdict, most)


def _fitted(sections: Sequence[tuple[str, list[str]]], room: int, page: Sheet, kept: int) -> Iterator[str]:
    """The lines of sections in at most about `room` lines, of the first one so many at least. What there is no room for
    is named in a line.
    """
    left_out: list[str] = []
    room -= _LEFT_OUT
    for name, lines in sections:
        if len(lines) > max(room, 0) and room < _LEAST_OF_A_SECTION and not kept:
            left_out.append(name)
            continue
        shown = lines if len(lines) <= room else lines[: max(room - 1, kept)]
        kept = 0
        yield from shown
        if len(shown) < len(lines):
            yield f"... and {figures.count(len(lines) - len(shown), 'more line')} in summary.md of the run"
        room -= min(len(lines), room)
    if left_out:
        yield from page.lines(Text(f"\nAlso in summary.md of the run: {', '.join(left_out)}"))


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


def _suites_table(suites: tuple[SuiteMeasurement, ...], width: int) -> RenderableType:
    tables = (
        console.figures_table(width, figures.SUITE_HEADER, [_suite_row(suite, between) for suite in suites])
        for between in (", ", ",\n")
    )
    # A narrow table has the ends of the interval on two lines.
    wide = next(tables)
    return wide if isinstance(wide, Table) else next(tables)


def _suite_row(suite: SuiteMeasurement, between: str) -> list[Text]:
    cells = [Text(cell) for cell in figures.suite_cells(suite, between=between, gap="\n")]
    _, tasks, trials, _, value, *_ = cells
    tasks.stylize("green" if suite.tasks_passed == suite.tasks else "red")
    trials.stylize("yellow", start=len(trials.plain.partition("\n")[0]))
    value.stylize("bold")
    return cells


def _quiet(text: str, style: str = "") -> Marked:
    """A line of ours behind a dim bar, under the line that it belongs to."""
    return Marked("│", Text(text, style), style="dim")


def _comparisons_section(comparisons: tuple[Comparison, ...], width: int) -> Iterator[RenderableType]:
    if not comparisons:
        return
    yield heading("Against the baseline")
    rows = (figures.comparison_cells(one, partial(printable, limit=NAME)) for one in comparisons)
    yield console.figures_table(width, ("", *figures.COMPARISON_HEADER), [list(map(Text, row)) for row in rows])
    yield Text(printable(figures.paired_ratio_explained(comparisons), MESSAGE), "dim")


def _reasons_section(verdict: Verdict, most: _Most) -> Iterator[RenderableType]:
    """The blocking reasons that no task above carries."""
    texts = [(reason, _reason_text(verdict, reason)) for reason in findings.reasons_without_task(verdict)]
    reasons = [(reason, text) for reason, text in texts if text]
    if not reasons:
        return
    yield heading(verdict.decision, DECISION_STYLE[verdict.decision])
    for reason, text in reasons[: most.reasons]:
        mark, style = ("?", "bold yellow") if findings.is_open(verdict, reason) else ("✗", "bold red")
        subject = printable(findings.reason_subject(reason), NAME)
        title = f"{reason.rule} {subject}: " if subject else f"{reason.rule}: "
        yield Marked(mark, Text.assemble((title, "bold"), printable(text, SHORT_MESSAGE * 2)), style=style)
    yield from _more(len(reasons) - most.reasons, "more in summary.md of the run")


def _reason_text(verdict: Verdict, reason: Reason) -> str:
    """What a reason says, without the command that has a section of its own."""
    if reason.rule is Rule.SIGN_OFF and verdict.awaiting_sign_off:
        return reason.message.partition("awaiting sign-off:")[0].rstrip(" ;")
    return reason.message


def _notes_section(verdict: Verdict, most: _Most) -> Iterator[RenderableType]:
    """What a reader should know beside the tasks, and the reasons that do not block and no task carries."""
    notes = [*_withheld_notes(verdict), *_reported(verdict), *findings.notes(verdict)]
    if not notes:
        return
    yield heading("Notes")
    yield from (Marked("·", Text(printable(note, SHORT_MESSAGE * 2))) for note in notes[: most.notes])
    yield from _more(len(notes) - most.notes, "more in summary.md of the run")


def _withheld_notes(verdict: Verdict) -> Iterator[str]:
    for title, tasks in (("not admitted", verdict.not_admitted), ("quarantined", verdict.quarantined)):
        if tasks:
            yield f"{title}: {findings.withheld_title(tasks)}"


def _reported(verdict: Verdict) -> Iterator[str]:
    measured = {(task.suite, task.task_id) for task in verdict.measurement.tasks}
    for reason in verdict.reasons:
        if not reason.blocking and (reason.suite, reason.task_id) not in measured:
            subject = findings.reason_subject(reason)
            yield f"{reason.rule}{f' {subject}' if subject else ''}, not blocking: {reason.message}"


def _integrity_section(verdict: Verdict, integrity: Integrity, most: _Most) -> Iterator[RenderableType]:
    """Which edits there are of files that judge, whose files judged, and what the change's own would have said."""
    yield from _deciding_edits(integrity, most)
    others = [edit for edit in integrity.edits if not edit.decides]
    yield from map(_edit, others[: most.edits])
    yield from _more(len(others) - most.edits, "more in summary.md of the run")
    if said := findings.other_verdict(verdict, integrity):
        yield Marked("·", Text(said))
    if integrity.other is not None and not findings.is_same_verdict(verdict, integrity.other):
        yield from _other_verdict(integrity.other, most)


def _deciding_edits(integrity: Integrity, most: _Most) -> Iterator[RenderableType]:
    commit = f" {printable(integrity.judging, NAME)[:12]}" if integrity.by_base else ""
    yield heading(
        f"Judged by {findings.judges(integrity)}{commit}: this change edits files that judge it", "bold yellow"
    )
    deciding, shown = [edit for edit in integrity.edits if edit.decides], max(_MOST_EDITS, most.edits)
    yield from map(_edit, deciding[:shown])
    yield from _more(len(deciding) - shown, "more of graders, policy, agents or prices in summary.md of the run")


def _edit(edit: Edit) -> RenderableType:
    return Marked("!", Text(f"{edit.kind} {printable(edit.path, NAME)} ({edit.subject})"), style="bold yellow")


def _other_verdict(other: OtherVerdict, most: _Most) -> Iterator[RenderableType]:
    yield _quiet(printable(other.headline, MESSAGE), DECISION_STYLE[other.decision])
    reasons = findings.blocking(other.reasons)
    for reason in reasons[: most.other_reasons]:
        title = " · ".join(filter(None, (reason.rule, printable(findings.reason_subject(reason), NAME))))
        yield Marked("│ ✗", Text(f"{title}: {printable(reason.message, SHORT_MESSAGE)}"), style="dim")
    if len(reasons) > most.other_reasons:
        yield _quiet(f"... and {len(reasons) - most.other_reasons} more")


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


def _more(number: int, what: str) -> Iterator[RenderableType]:
    if number > 0:
        yield Text(f"... and {number} {what}")
