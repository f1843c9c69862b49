"""The verdict for a terminal or the log of a CI job."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.verdict import Reason, Verdict
from passgate.tasks.reports import console, findings
from passgate.tasks.reports.console import DECISION_STYLE, MESSAGE, NAME, SHORT_MESSAGE, Marked, heading
from passgate.tasks.reports.document import Commands, Item, Items, Section, Span, SpanKind, Table, Tone, Words
from passgate.tasks.reports.escape import printable, printable_lines
from passgate.tasks.reports.terminal_tasks import Page, task_lines, tasks_heading
from passgate.tasks.reports.verdict_document import VerdictDocument, verdict_document

LINES: Final = 39
"""Lines of a summary, so that it has 40 with the one that says where the run is kept."""
_WHOLE: Final = 5000
"""Lines of a summary that no screen bounds, as in the log of a job."""
_REASONS_ON_SCREEN: Final = 5
_LEAST_OF_A_SECTION = 5
_LEFT_OUT = 2  # Lines that say which sections are left out
_SHARE_OF_OTHERS = 4  # Of the lines, one in so many is kept for what is not about tasks
_ELSEWHERE = "in summary.md of the run"
_RUN = ("agent", "answered by", "LLM judge", "branch", "commit")
_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.BAD: "red", Tone.OPEN: "yellow"}
_MARKS = {Tone.PLAIN: "·", Tone.GOOD: "✓", Tone.BAD: "✗", Tone.OPEN: "!"}


def terminal(verdict: Verdict, *, width: int, color: bool, options: Sequence[str] = (), is_whole: bool = False) -> str:
    """Render the verdict in `width` columns, from the figures down to the headline, in at most about `LINES` lines from
    80 columns on. It says each thing once, and how much is left out and where that is. With `is_whole` it leaves out
    nothing, as where it goes to a log or a file.

    With `color` it holds the ANSI sequences of its own styles, without it none at all. `options` are those of the run
    that `passgate try` needs too.
    """
    document = verdict_document(verdict)
    page = Page(width, color, verdict.run_id, verdict.agent, options)
    facts = [f"{label} {document.facts[label]}" for label in _RUN if label in document.facts]
    run = Marked(
        "run", Text(" · ".join(printable(text, NAME) for text in (verdict.run_id, *facts)), "dim"), style="dim"
    )
    head = page.lines(run, Text(), _table(document.suites, width))
    tail = [
        *page.lines(*_reasons(verdict, _WHOLE if is_whole else _REASONS_ON_SCREEN)),
        *page.lines(*_section(document.sign_off, width, is_whole=True)),
        # Last, because a terminal and the log of a job show their end first.
        *page.lines(Text(), Marked("", Text(printable(verdict.headline, MESSAGE), DECISION_STYLE[verdict.decision]))),
    ]
    sections = [("who judged", document.integrity), ("the baseline", document.comparisons)]
    sections += [("tasks that do not block", one) for one in document.withheld if is_whole]
    sections += [("notes", _notes(document, is_whole=is_whole))]
    others = [(name, page.lines(*_section(one, width, is_whole=is_whole))) for name, one in sections if one]
    # Never cut: a long list of harmless edits must not hide the one that judges.
    kept = len(page.lines(*_section(_decisive(document.integrity), width, is_whole=is_whole)))
    room = (_WHOLE if is_whole else LINES) - len(head) - len(tail)
    tasks: list[str] = []
    if document.tasks:
        tasks = page.lines(heading(tasks_heading(document.tasks)))
        wanted = sum(len(lines) for _, lines in others)
        kept_of_others = max(room // _SHARE_OF_OTHERS, kept + 1 + _LEFT_OUT, _LEAST_OF_A_SECTION + _LEFT_OUT)
        tasks += task_lines(document.tasks, page, room - len(tasks) - min(wanted, kept_of_others))
    shown = _fitted(others, room - len(tasks), page, kept)
    return "".join(f"{line}\n" for line in (*head, *tasks, *shown, *tail))


def _fitted(sections: Sequence[tuple[str, list[str]]], room: int, page: Page, kept: int) -> Iterator[str]:
    """Yield the lines of sections in about `room` lines, at least `kept` of the first one. Name what has no room."""
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
            more = len(lines) - len(shown)
            yield f"... and {more} more line{'s' if more > 1 else ''} {_ELSEWHERE}"
        room -= min(len(lines), room)
    if left_out:
        yield from page.lines(Text(f"\nAlso {_ELSEWHERE}: {', '.join(left_out)}"))


def _decisive(section: Section | None) -> Section | None:
    """Return a section with its title and the decisive items that a screen shows."""
    if section is None or not isinstance(items := section.blocks[0], Items):
        return None
    decisive = tuple(item for item in items.items[: items.most_on_screen] if item.is_decisive)
    return section._replace(blocks=(items._replace(items=decisive),))


def _notes(document: VerdictDocument, *, is_whole: bool) -> Section | None:
    """Return what a reader should know beside the tasks, and the reasons that do not block and no task carries."""
    verdict = document.verdict
    measured = {(task.suite, task.task_id) for task in verdict.measurement.tasks}
    reported = (
        Item(
            (Span(f"{reason.rule} {findings.reason_subject(reason)}".strip()), ", not blocking: ", Span(reason.message))
        )
        for reason in verdict.reasons
        if not reason.blocking and (reason.suite, reason.task_id) not in measured
    )
    # Without room for the names of these tasks their number has to do.
    items = [*(Item(section.title) for section in document.withheld if not is_whole), *reported]
    for block in document.notes.blocks if document.notes else ():
        items += block.items if isinstance(block, Items) else ()
    return Section(("Notes",), (Items(tuple(items), len(items), 12),)) if items else None


def _reasons(verdict: Verdict, most: int) -> Iterator[RenderableType]:
    """Yield the blocking reasons that no task above carries."""
    texts = [(reason, _reason_text(verdict, reason)) for reason in findings.reasons_without_task(verdict)]
    reasons = [(reason, text) for reason, text in texts if text]
    if not reasons:
        return
    yield heading(verdict.decision, DECISION_STYLE[verdict.decision])
    for reason, text in reasons[:most]:
        mark, style = ("?", "bold yellow") if findings.is_open(verdict, reason) else ("✗", "bold red")
        title = " ".join(filter(None, (reason.rule, printable(findings.reason_subject(reason), NAME))))
        yield Marked(mark, Text.assemble((f"{title}: ", "bold"), printable(text, SHORT_MESSAGE * 2)), style=style)
    if len(reasons) > most:
        yield Text(f"... and {len(reasons) - most} more {_ELSEWHERE}")


def _reason_text(verdict: Verdict, reason: Reason) -> str:
    """Return what a reason says, without the command that has a section of its own."""
    if reason.rule is Rule.SIGN_OFF and verdict.awaiting_sign_off:
        return reason.message.partition("awaiting sign-off:")[0].rstrip(" ;")
    return reason.message


def _section(section: Section | None, width: int, *, is_whole: bool) -> Iterator[RenderableType]:
    """Yield an empty line, the title and the blocks of a section."""
    if section is None:
        return
    title = _words(section.title).plain
    yield heading(title, f"bold {_STYLES[section.tone]}".strip()) if title else Text()
    for block in section.blocks:
        match block:
            case Items():
                shown = block.items if is_whole else block.items[: block.most_on_screen]
                yield from (Marked(_MARKS[one.tone], _words(one.words), style=_STYLES[one.tone]) for one in shown)
                if more := block.more(len(shown)):
                    yield Text(f"{more} {_ELSEWHERE}")
            case Table():
                yield _table(block, width)
                if block.note:
                    yield Text(printable(block.note, MESSAGE), "dim")
            case Commands():
                for line in printable_lines("\n".join(block.lines), lines=len(block.lines), limit=MESSAGE):
                    yield Text(f"  {line}", "bold")
            case words:
                yield Marked("·", _words(words))


def _words(words: Words) -> Text:
    return Text.assemble(*map(_span, words))


def _span(part: str | Span) -> Text:
    if not isinstance(part, Span):
        return Text(part)
    style = f"{'bold ' if part.kind is SpanKind.STRONG else ''}{_STYLES[part.tone]}".strip()
    return Text(printable(part.text, NAME if part.kind is SpanKind.NAME else SHORT_MESSAGE * 2), style)


def _table(table: Table, width: int) -> RenderableType:
    """Return a table of figures. A narrow one has the ends of an interval on two lines."""

    def drawn(comma: str) -> RenderableType:
        rows = [[_broken(_span(cell), comma) for cell in row] for row in table.rows]
        return console.figures_table(width, table.header, rows)

    wide = drawn(", ")
    return wide if isinstance(wide, RichTable) else drawn(",\n")


def _broken(cell: Text, comma: str) -> Text:
    text = cell.copy()
    text.plain = cell.plain.replace(" +", "\n+").replace(", ", comma)
    return text
