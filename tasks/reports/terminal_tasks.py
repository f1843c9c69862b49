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


class Sheet(NamedTuple):
    """What the tasks are drawn on, and what their commands need to know of the run."""

    width: int
    color: bool
    run_id: str
    agent: str
    options: Sequence[str] = ()

    def lines(self, *parts: RenderableType) -> list[str]:
        """The lines of the parts."""
        return console.rendered(*parts, width=self.width, color=self.color).split("\n")[:-1]


def heading_of(found: Sequence[TaskFinding]) -> str:
    """`Tasks to look at, worst first: 2 failed, 1 undecided; 1 not blocking`."""
    states = Counter(finding.task.state for finding in found)
    counts = ", ".join(f"{states[state]} {state}" for state in sorted(states))
    not_blocking = sum(bool(finding.why_not_blocking) for finding in found)
    return f"Tasks to look at, worst first: {counts}{f'; {not_blocking} not blocking' if not_blocking else ''}"


def task_lines(found: Sequence[TaskFinding], page: Sheet, room: int) -> list[str]:
    """The tasks in at most about so many lines: the first ones in full, then some in a line or two each, then a line
    that says how many more there are and where. The first task is always in full.
    """
    full: list[list[str]] = []
    for finding in found[: max(room, 1)]:
        full.append(page.lines(*_in_full(finding, page)))
        if sum(map(len, full)) > room:
            break
    sizes = [sum(map(len, full[:number])) for number in range(len(full) + 1)]
    with_all = [number for number, size in enumerate(sizes) if size + len(found) - number <= room and number]
    if with_all:
        number, brief = with_all[-1], len(found) - with_all[-1]
    else:
        number = max([one for one, size in enumerate(sizes) if size <= room * _SHARE_IN_FULL] + [1])
        brief = max(0, room - sizes[number] - 1)
    lines = [line for block in full[:number] for line in block]
    more = len(found) - number - brief
    spare = room - sizes[number] - brief - bool(more > 0)
    for finding in found[number : number + brief]:
        short = page.lines(*_in_short(finding, page.width, most=2 if spare > 0 else 1))
        spare -= len(short) - 1
        lines += short
    return [*lines, *([f"... and {figures.count(more, 'more task')} in report.html of the run"] if more > 0 else [])]


def _title(finding: TaskFinding) -> tuple[str, Text, str]:
    task = finding.task
    is_red = finding.is_failure and not finding.why_not_blocking
    mark, style = ("✗", "red") if is_red else ("?", "yellow") if finding.is_undecided else ("!", "yellow")
    title = Text.assemble((task.state.upper(), f"bold {style}"), "  ", (printable(finding.name, NAME), "bold"))
    return mark, title, f"bold {style}"


def _in_full(finding: TaskFinding, page: Sheet) -> Iterator[RenderableType]:
    """What the verdict says of it, what was expected and what came, the file, and the commands for its trial."""
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
    for text in task_messages(finding):
        yield _quiet(printable(text, page.width * 3))
    yield from _violations(finding)
    trial = _first_trial(finding)
    violations = {violation.message for violation in task.violations}
    for label, text in task_explanations(finding):
        if text in violations:
            continue
        # One long line may fill as many lines as several short ones do.
        limit = page.width * (2 if "\n" in text.strip() else _FAILURE_LINES)
        first, *others = printable_lines(text, lines=_FAILURE_LINES, limit=limit) or ("",)
        yield Marked("│", Text.assemble((label, "bold"), f" {first}"), style="dim")
        for line in others:
            yield Marked("│  ", Text(line), style="dim")
    if trial is not None:
        shown, again = show_command(page.run_id, task.name, trial), try_command(task.name, page.agent, page.options)
        for line in (*command_lines(shown, page.width - 2), *command_lines(again, page.width - 2)):
            yield Marked("", Text(f"  {line}", "dim"))


def _in_short(finding: TaskFinding, width: int, *, most: int) -> Iterator[RenderableType]:
    """The state and the name, and the beginning of why: in one line where it has room there, else in `most` lines."""
    mark, title, style = _title(finding)
    why = printable(finding.why_in_short, width)
    whole = Text.assemble(title, f"  {why}" if why else "")
    if most == 1 or whole.cell_len <= width - 2:
        whole.truncate(width - 2, overflow="ellipsis")
        yield Marked(mark, whole, style=style)
        return
    for line_mark, line, line_style in ((mark, title, style), ("│", Text(why), "dim")):
        line.truncate(width - 2, overflow="ellipsis")
        yield Marked(line_mark, line, style=line_style)


def _violations(finding: TaskFinding) -> Iterator[RenderableType]:
    groups = findings.violation_groups(finding.task)
    for group in groups[:_VIOLATIONS]:
        rule = f"{group.rule}, {trial_numbers(group.trials)}: "
        yield Marked("│ !", Text.assemble((rule, "bold red"), printable(group.message, SHORT_MESSAGE)), style="red")
    if len(groups) > _VIOLATIONS:
        yield _quiet(f"... and {len(groups) - _VIOLATIONS} more violations")


def _first_trial(finding: TaskFinding) -> int | None:
    """The trial that its commands show; `None` where none was run."""
    task = finding.task
    numbers = (*task.failed_trials, *task.error_trials, *(violation.trial for violation in task.violations))
    return numbers[0] if numbers else None


def _quiet(text: str, style: str = "") -> Marked:
    """A line of ours behind a dim bar, under the line that it belongs to."""
    return Marked("│", Text(text, style), style="dim")
