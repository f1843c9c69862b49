"""The tasks of a verdict that a reader has to look at, for a terminal: in full, or in a line each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.reports import console, figures, findings
from passgate.tasks.reports.console import NAME, SHORT_MESSAGE, Marked
from passgate.tasks.reports.escape import printable, printable_lines
from passgate.tasks.reports.findings import TaskFinding
from passgate.tasks.reports.shell_commands import command_lines, show_command, try_command
from passgate.tasks.reports.verdict_document import task_explanations, task_messages

_FAILURE_LINES = 4
_VIOLATIONS = 3
_SHARE_IN_FULL = 0.65
"""Of the lines for tasks, those for tasks in full where not all tasks have room."""


class Page(NamedTuple):
    """The page to draw on, and what the commands for a trial need to know of the run."""

    width: int
    color: bool
    run_id: str
    agent: str
    options: Sequence[str] = ()

    def lines(self, *parts: RenderableType) -> list[str]:
        """Render the parts to lines."""
        return console.rendered(*parts, width=self.width, color=self.color).split("\n")[:-1]


def tasks_heading(found: Sequence[TaskFinding]) -> str:
    """Return `Tasks to look at, worst first: 2 failed, 1 undecided; 1 not blocking`."""
    states = Counter(finding.task.state for finding in found)
    counts = ", ".join(f"{states[state]} {state}" for state in sorted(states))
    not_blocking = sum(bool(finding.why_not_blocking) for finding in found)
    return f"Tasks to look at, worst first: {counts}{f'; {not_blocking} not blocking' if not_blocking else ''}"


def task_lines(found: Sequence[TaskFinding], page: Page, room: int) -> list[str]:
    """Render the tasks in at most about `room` lines: the first ones in full, then some in a line or two each, then a
    line that says how many more there are and where. The first task is always in full.
    """
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


def _task_in_full(finding: TaskFinding, page: Page) -> Iterator[RenderableType]:
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
            yield from _explanation(label, text, page.width)
    if trials := (*task.failed_trials, *task.error_trials, *(violation.trial for violation in task.violations)):
        shown = show_command(page.run_id, task.name, trials[0])
        for words in (shown, try_command(task.name, page.agent, page.options)):
            yield from (Marked("", Text(f"  {line}", "dim")) for line in command_lines(words, page.width - 2))


def _explanation(label: str, text: str, width: int) -> Iterator[RenderableType]:
    # One long line may fill as many lines as several short ones do.
    limit = width * (2 if "\n" in text.strip() else _FAILURE_LINES)
    first, *others = printable_lines(text, lines=_FAILURE_LINES, limit=limit) or ("",)
    yield Marked("│", Text.assemble((label, "bold"), f" {first}"), style="dim")
    yield from (Marked("│  ", Text(line), style="dim") for line in others)


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
