"""A trial in full on a terminal, for authors of tasks."""

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.transcript import ChangedFile, ChangeKind, Message
from passgate.tasks.model.trial import FinishedTrial
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import Marked, heading, render_parts
from passgate.tasks.reports.escape import ELLIPSIS, printable, printable_lines, shorten_middle
from passgate.tasks.reports.trial import DIFF_LINES, GradeEntry, TrialDocument, command_lines, trial_document

_MOST_MESSAGES = 100
_MOST_CALLS = 50  # Of one message
_MOST_CHARACTERS, _MOST_LINES = 8000, 100  # Of one text
_LAST_LINES = 20  # Of the text that an agent printed beside its answer
_MOST_IN_ALL = 3000  # Lines
_STYLES = {"passed": "bold green", "failed": "bold red", "error": "bold yellow", "not run": "dim"}
_EVIDENCE = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "violation": ("violation", "bold red"),
    "error": ("!", "bold yellow"),
}
_CHANGES = {ChangeKind.ADDED: "green", ChangeKind.MODIFIED: "yellow", ChangeKind.DELETED: "red"}
_DIFF = {"added": "green", "deleted": "red", "place": "cyan"}


def trial_report(
    finished: FinishedTrial,
    *,
    width: int,
    color: bool,
    run_id: str = "",
    kept: bool = True,
    command: Sequence[str] = (),
) -> str:
    """Render a trial: its transcript, the evidence of each grader, its metrics and its status. Cut a very long middle.

    A recorded trial has a `run_id`; `kept` says if the run has its transcript; `command` runs its task again.
    """
    trial = finished.trial
    number = f", trial {trial.trial}" if run_id else ""
    title = f"{trial.suite}/{trial.task_id}{number}  {trial.file}:{trial.line}"
    parts: list[RenderableType] = [Marked("", Text(printable(title, 500), "bold"))]
    if run_id:
        parts.append(Text(printable(f"run {run_id}", 500), "dim"))
    parts += _parts(trial_document(trial, finished.transcript if kept else None, messages=_MOST_MESSAGES))
    if command:
        parts.append(heading("run a trial of it again"))
        parts += [Marked("", Text(f"  {line}")) for line in command_lines(command, width - 2)]
    lines = render_parts(*parts, width=width, color=color).split("\n")
    left_out, half = len(lines) - _MOST_IN_ALL, _MOST_IN_ALL // 2
    if left_out > 0:
        lines[half:-half] = ["", f"{ELLIPSIS} {left_out:,} lines left out {ELLIPSIS}", ""]
    return "\n".join(lines)


def _parts(one: TrialDocument) -> Iterator[RenderableType]:
    yield from (Text(printable(remark, 500), "dim") for remark in one.remarks)
    yield from _transcript(one)
    if one.files or one.files_remark:
        yield heading("changed files")
        for file in one.files:
            yield from _file(file)
        yield from ([Text(one.files_remark, "dim")] if one.files_remark else [])
    for grade in one.grades:
        yield from _grade(grade)
    if one.facts:
        metrics = one.trial.metrics.model_dump(exclude_none=True)
        # The facts have these five in their own words.
        others = metrics.keys() - {"steps", "tool_call_count", "total_tokens", "cost", "wall_time_seconds"}
        figures_of_trial = [*one.facts, *((name, figures.tracked(name, metrics[name])) for name in sorted(others))]
        yield heading("figures")
        yield Text(" · ".join(f"{name} {printable(value, 200)}" for name, value in figures_of_trial))
    yield heading(one.state.upper(), _STYLES[one.state])
    if one.trial.reason:
        yield _entry("!", one.trial.reason)


def _transcript(one: TrialDocument) -> Iterator[RenderableType]:
    transcript = one.transcript
    seconds = f", {transcript.wall_time_seconds:.2f} s" if transcript.wall_time_seconds else ""
    yield heading(f"transcript  {one.end}{seconds}")
    for entry in one.entries:
        if entry.message is None:
            yield Text(f"{ELLIPSIS} {figures.count(entry.gap, 'message')} left out {ELLIPSIS}", "dim")
        else:
            yield from _message(entry.message)
    if one.output:
        yield _entry("output", one.output)
    printed = transcript.printed.strip()
    if printed and printed not in one.trial.reason:
        yield _entry("printed", "\n".join(printed.splitlines()[-_LAST_LINES:]))


def _message(message: Message) -> Iterator[RenderableType]:
    if message.content:
        yield _entry(message.role, message.content)
    for call in message.tool_calls[:_MOST_CALLS]:
        arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
        yield _entry("refused" if call.refused else "call", f"{call.tool} {arguments}", indent=2)
        if call.result is not None:
            result = call.result if isinstance(call.result, str) else json.dumps(call.result, default=str)
            yield _entry("error" if call.is_error else "result", result, indent=2)
    if len(message.tool_calls) > _MOST_CALLS:
        yield Text(f"  ... and {figures.count(len(message.tool_calls) - _MOST_CALLS, 'more call')}", "dim")


def _file(file: ChangedFile) -> Iterator[RenderableType]:
    size = "" if file.size is None else f", {figures.size(file.size)}"
    yield _entry(file.change.value, f"{file.path}{size}", style=_CHANGES[file.change])
    if file.diff:
        # The first two lines are the names of the files.
        lines = _lines("\n".join(file.diff.split("\n")[2:]))
        styled = [Text(line, _DIFF.get(DIFF_LINES.get(line[:1], ""), "")) for line in lines]
        yield Marked("│", Text("\n").join(styled), style="dim", indent=2)


def _grade(grade: GradeEntry) -> Iterator[RenderableType]:
    score = f", score {grade.score}" if grade.score else ""
    yield heading(f"{printable(grade.name, 200)}: {grade.state}{score}", _STYLES[grade.state])
    for kind, text in grade.evidence:
        mark, style = _EVIDENCE[kind]
        yield _entry(mark, text, style=style)
    if grade.more:
        yield Text(f"... and {figures.count(grade.more, 'more check')}", "dim")


def _entry(mark: str, text: str, *, indent: int = 0, style: str = "cyan") -> Marked:
    return Marked(mark, Text("\n".join(_lines(text))), style=style, indent=indent)


def _lines(text: str) -> tuple[str, ...]:
    # The end of an agent's answer often says the most, so it stays.
    cut, _ = shorten_middle(text, _MOST_CHARACTERS)
    return printable_lines(cut, lines=_MOST_LINES, limit=_MOST_CHARACTERS)
