"""One trial in full, for authors of tasks."""

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.grade import Grade
from passgate.tasks.model.transcript import ChangeKind, FileChanges, Message
from passgate.tasks.model.trial import BLIND, FinishedTrial, TrialStatus
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import Marked, heading, rendered
from passgate.tasks.reports.escape import ELLIPSIS, printable, printable_lines
from passgate.tasks.reports.shell_commands import command_lines

_MOST_LINES = 100
_LAST_LINES = 20  # Of what an agent printed beside its answer
_LONGEST_LINE = 2000
_MOST_MESSAGES = 100
_MOST_CALLS = 50  # Of one message
_MOST_CHECKS = 100  # Of one grade
_MOST_IN_ALL = 3000  # Lines
_CHANGE_STYLES = {ChangeKind.ADDED: "green", ChangeKind.MODIFIED: "yellow", ChangeKind.DELETED: "red"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}  # By the first character of a line
_UNMEASURED = frozenset({TrialStatus.ERROR, TrialStatus.NOT_RUN})
_STYLES = {
    TrialStatus.PASSED: "bold green",
    TrialStatus.FAILED: "bold red",
    TrialStatus.ERROR: "bold yellow",
    TrialStatus.NOT_RUN: "dim",
}


def trial_report(finished: FinishedTrial, *, width: int, color: bool) -> str:
    """The transcript of a trial, what each grader looked at, its metrics and its status.

    Of what is very long the middle is left out, and a line says how much of it.
    """
    trial = finished.trial
    title = f"{trial.suite}/{trial.task_id}  {trial.file}:{trial.line}"
    return _bounded(rendered(_title(title), *_parts(finished), width=width, color=color))


def recorded_trial_report(
    run_id: str, finished: FinishedTrial, *, kept: bool, command: Sequence[str], width: int, color: bool
) -> str:
    """The same of a trial of a run, and the command that runs a trial of its task again. `kept` is whether the run has
    a transcript of it.
    """
    trial = finished.trial
    title = f"{trial.suite}/{trial.task_id}, trial {trial.trial}  {trial.file}:{trial.line}"
    parts: list[RenderableType] = [_title(title), Text(printable(f"run {run_id}", 500), "dim")]
    if trial.reused_from:
        parts.append(Text(f"not run again: this trial is of the run {printable(trial.reused_from, 200)}", "dim"))
    if trial.trial >= trial.k:
        parts.append(Text("a confirming trial: it was run because the task had failed", "dim"))
    if not kept:
        parts.append(Text("the run keeps no transcript of this trial", "dim"))
    parts += _parts(finished)
    if command:
        parts += [heading("run a trial of it again")]
        parts += [Marked("", Text(f"  {line}")) for line in command_lines(command, width - 2)]
    return _bounded(rendered(*parts, width=width, color=color))


def trial_as_json(run_id: str, finished: FinishedTrial) -> str:
    """A trial of a run as JSON, with every field. What a terminal would obey is escaped."""
    return json.dumps({"run_id": run_id, **finished.model_dump(mode="json")}, indent=2)


def _title(text: str) -> Marked:
    return Marked("", Text(printable(text, 500), "bold"))


def _bounded(text: str) -> str:
    """The text, or its beginning and its end with a line that says how many lines are left out between them."""
    lines = text.split("\n")
    left_out = len(lines) - _MOST_IN_ALL
    if left_out <= 0:
        return text
    half = _MOST_IN_ALL // 2
    return "\n".join((*lines[:half], "", f"{ELLIPSIS} {left_out:,} lines left out {ELLIPSIS}", "", *lines[-half:]))


def _parts(finished: FinishedTrial) -> Iterator[RenderableType]:
    trial, known = finished.trial, finished.trial.metrics.model_dump(exclude_none=True)
    score = f", score {trial.score:.2f}" if trial.score is not None and 0 < trial.score < 1 else ""
    yield from _transcript(finished)
    if finished.transcript.file_changes:
        yield from _file_changes(finished.transcript.file_changes)
    for grade in trial.grades:
        yield from _grade(grade)
    if known:
        yield heading("metrics")
        yield Text("  ".join(f"{name} {value:g}" for name, value in known.items()))
    yield heading(f"{trial.status.upper()}{score}", _STYLES[trial.status])
    if trial.reason:
        yield _marked("!", trial.reason)


def _transcript(finished: FinishedTrial) -> Iterator[RenderableType]:
    transcript, trial = finished.transcript, finished.trial
    # Of a trial that was broken off before its graders were asked, the agent's end is not known.
    end = "broken off" if trial.status in _UNMEASURED and not trial.grades else transcript.end
    seconds = f", {transcript.wall_time_seconds:.2f} s" if transcript.wall_time_seconds else ""
    yield heading(f"transcript  {end}{seconds}")
    messages, half = transcript.messages, _MOST_MESSAGES // 2
    left_out = len(messages) - _MOST_MESSAGES
    for place, message in enumerate(messages):
        if left_out > 0 and place == half:
            yield Text(f"{ELLIPSIS} {figures.count(left_out, 'message')} left out {ELLIPSIS}", "dim")
        if left_out <= 0 or not half <= place < half + left_out:
            yield from _message(message)
    last = transcript.messages[-1].content if transcript.messages else ""
    if transcript.output and transcript.output != last:
        yield _marked("output", transcript.output)
    if transcript.printed.strip() and transcript.printed.strip() not in trial.reason:
        yield _marked("printed", "\n".join(transcript.printed.strip().splitlines()[-_LAST_LINES:]))
    if not transcript.complete:
        yield _marked("!", BLIND, style="bold yellow")


def _message(message: Message) -> Iterator[RenderableType]:
    if message.content:
        yield _marked(message.role, message.content)
    for call in message.tool_calls[:_MOST_CALLS]:
        arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
        yield _marked("refused" if call.refused else "call", f"{call.tool} {arguments}", indent=2)
        if call.result is not None:
            result = call.result if isinstance(call.result, str) else json.dumps(call.result, default=str)
            yield _marked("error" if call.is_error else "result", result, indent=2)
    if len(message.tool_calls) > _MOST_CALLS:
        yield Text(f"  ... and {figures.count(len(message.tool_calls) - _MOST_CALLS, 'more call')}", "dim")


def _file_changes(changes: FileChanges) -> Iterator[RenderableType]:
    yield heading("changed files" if changes.files or changes.remark else "changed files  none")
    for file in changes.files:
        size = "" if file.size is None else f", {figures.size(file.size)}"
        yield _marked(file.change.value, f"{file.path}{size}", style=_CHANGE_STYLES[file.change])
        if file.diff:
            yield _diff(file.diff)
    if changes.remark:
        yield Text(changes.remark, "dim")


def _diff(diff: str) -> Marked:
    """A unified diff without the names of the files, which stand above it."""
    bounded = "\n".join(map(_without_middle, diff.split("\n")[2:]))
    lines = printable_lines(bounded, lines=_MOST_LINES, limit=2 * _LONGEST_LINE)
    styled = [Text(line, _DIFF_STYLES.get(line[:1], "")) for line in lines]
    return Marked("│", Text("\n").join(styled), style="dim", indent=2)


def _grade(grade: Grade, within: str = "") -> Iterator[RenderableType]:
    state = "error" if grade.error is not None else "passed" if grade.passed else "failed"
    score = "" if grade.score is None else f", score {grade.score:.2f}"
    title = within + (grade.name if grade.name == grade.type else f"{grade.name} ({grade.type})")
    style = {"passed": "bold green", "failed": "bold red", "error": "bold yellow"}[state]
    yield heading(f"{printable(title, 200)}: {state}{score}", style)
    if grade.error is not None:
        yield _marked("!", grade.error)
    if grade.fatal:
        yield _marked("!", grade.fatal, style="bold red")
    # What failed is what a reader looks for.
    checks = sorted(grade.checks, key=lambda check: check.passed) if len(grade.checks) > _MOST_CHECKS else grade.checks
    for check in checks[:_MOST_CHECKS]:
        mark, style = ("✓", "green") if check.passed else ("✗", "red")
        yield _marked(mark, check.message, style=style)
    if len(grade.checks) > _MOST_CHECKS:
        yield Text(f"... and {figures.count(len(grade.checks) - _MOST_CHECKS, 'more check')}", "dim")
    for violation in grade.violations[:_MOST_CHECKS]:
        yield _marked("violation", f"{violation.rule}: {violation.message}", style="bold red")
    for member in grade.members:
        yield from _grade(member, f"{within}{grade.name} > ")


def _marked(mark: str, text: str, *, indent: int = 0, style: str = "cyan") -> Marked:
    bounded = "\n".join(map(_without_middle, text.splitlines()))
    shown = "\n".join(printable_lines(bounded, lines=_MOST_LINES, limit=2 * _LONGEST_LINE))
    return Marked(mark, Text(shown), style=style, indent=indent)


def _without_middle(line: str) -> str:
    """A line that is not too long. The end of an agent's answer often says the most, so it stays."""
    left_out, half = len(line) - _LONGEST_LINE, _LONGEST_LINE // 2
    if left_out <= 0:
        return line
    return f"{line[:half]} {ELLIPSIS} {left_out:,} characters left out {ELLIPSIS} {line[-half:]}"
