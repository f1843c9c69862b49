"""The verdict for a terminal or the log of a CI job."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.console import (
    MESSAGE,
    NAME,
    SHORT_MESSAGE,
    STYLES,
    Marked,
    heading,
    render_parts,
    section_parts,
)
from passgate.tasks.reports.document import (
    TONES,
    Item,
    Items,
    Section,
    Span,
    Tone,
    VerdictDocument,
    strong,
    task_explanations,
    task_messages,
    verdict_document,
)
from passgate.tasks.reports.escape import printable, printable_lines
from passgate.tasks.reports.findings import TaskFinding
from passgate.tasks.reports.trial import command_lines, show_command, try_command

LINES: Final = 39  # Lines of a summary, so that it has 40 with the one that says where the run is kept
_WHOLE: Final = 5000  # Lines of a summary that no screen bounds, as in the log of a job
_REASONS_ON_SCREEN: Final = 5
_LEAST_OF_A_SECTION = 5
_LEFT_OUT = 2  # Lines that say which sections are left out
_SHARE_OF_OTHERS = 4  # Of the lines, one in so many is kept for what is not about tasks
_ELSEWHERE = "in summary.md of the run"
_RUN = ("agent", "answered by", "LLM judge", "branch", "commit")
_FAILURE_LINES = 4
_VIOLATIONS = 3
_SHARE_IN_FULL = 0.65  # Of the lines for tasks, those for tasks in full where not all tasks have room


class _Page(NamedTuple):
    """The page to draw on, and what the commands for a trial need to know of the run."""

    width: int
    color: bool
    is_whole: bool
    run_id: str
    agent: str
    options: Sequence[str] = ()

    def lines(self, *parts: RenderableType) -> list[str]:
        """Render the parts to lines."""
        return render_parts(*parts, width=self.width, color=self.color).split("\n")[:-1]

    def section(self, section: Section | None, *, is_whole: bool = False) -> list[str]:
        """Render a section to lines, without what a screen has no room for."""
        if section is None:
            return []
        is_whole, longest = is_whole or self.is_whole, SHORT_MESSAGE * 2
        return self.lines(*section_parts(section, self.width, is_whole=is_whole, longest=longest, elsewhere=_ELSEWHERE))


def terminal(verdict: Verdict, *, width: int, color: bool, options: Sequence[str] = (), is_whole: bool = False) -> str:
    """Render the verdict in `width` columns, headline last, in at most about `LINES` lines from 80 columns on.

    With `is_whole`, as for a log, it leaves out nothing. `options` are those of the run that `passgate try` needs too.
    """
    document = verdict_document(verdict)
    page = _Page(width, color, is_whole, verdict.run_id, verdict.agent, options)
    facts = [f"{label} {document.facts[label]}" for label in _RUN if label in document.facts]
    run = Marked(
        "run", Text(" · ".join(printable(text, NAME) for text in (verdict.run_id, *facts)), "dim"), style="dim"
    )
    head = [*page.lines(run), *page.section(Section((), (document.suites,)))]
    tail = [
        *page.section(_reasons(verdict)),
        *page.section(document.sign_off, is_whole=True),
        # Last, because a terminal and the log of a job show their end first.
        *page.lines(
            Text(), Marked("", Text(printable(verdict.headline, MESSAGE), f"bold {STYLES[TONES[verdict.decision]]}"))
        ),
    ]
    sections = [("who judged", document.integrity), ("the baseline", document.comparisons)]
    sections += [("tasks that do not block", section) for section in document.withheld if is_whole]
    sections += [("notes", _notes(document, is_whole=is_whole))]
    others = [(name, page.section(section)) for name, section in sections if section]
    # Never cut: a long list of harmless edits must not hide the one that judges.
    kept = 0
    if document.integrity and isinstance(edits := document.integrity.blocks[0], Items):
        decisive = tuple(item for item in edits.items[: edits.most_on_screen] if item.is_decisive)
        kept = len(page.section(document.integrity._replace(blocks=(Items(decisive),))))
    room = (_WHOLE if is_whole else LINES) - len(head) - len(tail)
    tasks: list[str] = []
    if document.tasks:
        states = Counter(finding.task.state for finding in document.tasks)
        counts = ", ".join(f"{states[state]} {state}" for state in sorted(states))
        not_blocking = sum(bool(finding.why_not_blocking) for finding in document.tasks)
        excused = f"; {not_blocking} not blocking" if not_blocking else ""
        tasks = page.lines(heading(f"Tasks to look at, worst first: {counts}{excused}"))
        wanted = sum(len(lines) for _, lines in others)
        kept_of_others = max(room // _SHARE_OF_OTHERS, kept + 1 + _LEFT_OUT, _LEAST_OF_A_SECTION + _LEFT_OUT)
        tasks += _task_lines(document.tasks, page, room - len(tasks) - min(wanted, kept_of_others))
    shown = _fit(others, room - len(tasks), page, kept)
    return "".join(f"{line}\n" for line in (*head, *tasks, *shown, *tail))


def _fit(sections: Sequence[tuple[str, list[str]]], room: int, page: _Page, kept: int) -> Iterator[str]:
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


def _reasons(verdict: Verdict) -> Section | None:
    """Return the blocking reasons that no task carries, without the command that has a section of its own."""
    items = []
    for reason in findings.reasons_without_task(verdict):
        text = reason.message
        if reason.rule is Rule.SIGN_OFF and verdict.awaiting_sign_off:
            text = text.partition("awaiting sign-off:")[0].rstrip(" ;")
        if text:
            tone, mark = (Tone.OPEN, "?") if findings.is_open(verdict, reason) else (Tone.BAD, "✗")
            title = strong(f"{reason.rule} {findings.reason_subject(reason)}".strip() + ":")
            items.append(Item((title, " ", Span(text)), tone, mark=mark))
    shown = Items(tuple(items), most_on_screen=_REASONS_ON_SCREEN)
    return Section((verdict.decision,), (shown,), TONES[verdict.decision]) if items else None


def _task_lines(found: Sequence[TaskFinding], page: _Page, room: int) -> list[str]:
    """Render tasks in about `room` lines: the first in full, some in a line or two, and how many more there are."""
    sizes, full = [0], list[str]()
    for finding in found[: max(room, 1)]:
        full += page.lines(*_task_in_full(finding, page))
        sizes.append(len(full))
        if len(full) > room:
            break
    with_all = [number for number, size in enumerate(sizes) if number and size + len(found) - number <= room]
    # If not all tasks have room, the others get a line each as far as there is room.
    some = [number for number, size in enumerate(sizes) if number and size <= room * _SHARE_IN_FULL]
    number = max(with_all or some or [1])
    lines, brief = full[: sizes[number]], found[number:]
    if not with_all:
        brief = brief[: max(0, room - len(lines) - 1)]
    more = len(found) - number - len(brief)
    spare = room - len(lines) - len(brief) - bool(more)
    for finding in brief:
        short = page.lines(*_task_in_short(finding, page.width, most=2 if spare > 0 else 1))
        spare -= len(short) - 1
        lines += short
    return [*lines, *([f"... and {figures.count(more, 'more task')} in report.html of the run"] if more else [])]


def _title(finding: TaskFinding) -> tuple[str, Text, str]:
    is_red = finding.is_failure and not finding.why_not_blocking
    mark, style = ("✗", "red") if is_red else ("?", "yellow") if finding.is_undecided else ("!", "yellow")
    state = (finding.task.state.upper(), f"bold {style}")
    return mark, Text.assemble(state, "  ", (printable(finding.name, NAME), "bold")), f"bold {style}"


def _task_in_full(finding: TaskFinding, page: _Page) -> Iterator[RenderableType]:
    """Yield what the verdict says of a task, what was expected and what came, and the commands for its trial."""
    task = finding.task
    mark, title, style = _title(finding)
    if rules := ", ".join(dict.fromkeys(str(reason.rule) for reason in finding.reasons if reason.blocking)):
        title.append(f"  {rules}")
    yield Marked(mark, title, style=style)
    yield _quiet(f"{printable(task.file, NAME)}:{task.line}", "cyan")
    if task.reused_from:
        yield _quiet(f"not run again: reused from {printable(task.reused_from, NAME)}")
    if why := printable(finding.why_not_blocking, page.width * 2):
        yield _quiet(f"does not block: {why}", "yellow")
    yield from (_quiet(printable(text, page.width * 3)) for text in task_messages(finding))
    groups = findings.violation_groups(task)
    for group in groups[:_VIOLATIONS]:
        rule = f"{group.rule}, {trial_numbers(group.trials)}: "
        yield Marked("│ !", Text.assemble((rule, "bold red"), printable(group.message, SHORT_MESSAGE)), style="red")
    if len(groups) > _VIOLATIONS:
        yield _quiet(f"... and {len(groups) - _VIOLATIONS} more violations")
    for label, text in task_explanations(finding):
        # A violation above says this.
        if all(text != group.message for group in groups):
            # One long line may fill as many lines as several short ones do.
            limit = page.width * (2 if "\n" in text.strip() else _FAILURE_LINES)
            first, *others = printable_lines(text, lines=_FAILURE_LINES, limit=limit) or ("",)
            yield Marked("│", Text.assemble((label, "bold"), f" {first}"), style="dim")
            yield from (Marked("│  ", Text(line), style="dim") for line in others)
    if trials := (*task.failed_trials, *task.error_trials, *(violation.trial for violation in task.violations)):
        shown = show_command(page.run_id, task.name, trials[0])
        for words in (shown, try_command(task.name, page.agent, page.options)):
            yield from (Marked("", Text(f"  {line}", "dim")) for line in command_lines(words, page.width - 2))


def _task_in_short(finding: TaskFinding, width: int, *, most: int) -> Iterator[RenderableType]:
    """Yield the state, the name and the beginning of why: in one line where it has room there, else in `most` lines."""
    mark, title, style = _title(finding)
    why = printable(finding.why_in_short, width)
    lines = [(mark, Text.assemble(title, f"  {why}" if why else ""), style)]
    if most > 1 and lines[0][1].cell_len > width - 2:
        lines = [(mark, title, style), ("│", Text(why), "dim")]
    for line_mark, line, line_style in lines:
        line.truncate(width - 2, overflow="ellipsis")
        yield Marked(line_mark, line, style=line_style)


def _quiet(text: str, style: str = "") -> Marked:
    """Return a line behind a dim bar, under the line that it belongs to."""
    return Marked("│", Text(text, style), style="dim")
