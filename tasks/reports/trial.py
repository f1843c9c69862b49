"""One trial in full, for authors of tasks."""

import json
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.grade import Grade
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from passgate.tasks.reports.console import Marked, heading, rendered
from passgate.tasks.reports.escape import printable, printable_lines

_MOST_LINES = 200
_LONGEST_LINE = 2000
_UNMEASURED = frozenset({TrialStatus.ERROR, TrialStatus.NOT_RUN})
_STYLES = {
    TrialStatus.PASSED: "bold green",
    TrialStatus.FAILED: "bold red",
    TrialStatus.ERROR: "bold yellow",
    TrialStatus.NOT_RUN: "dim",
}


def trial_report(finished: FinishedTrial, *, width: int, color: bool) -> str:
    """The transcript of a trial, what each grader looked at, its metrics and its status."""
    trial, known = finished.trial, finished.trial.metrics.model_dump(exclude_none=True)
    score = f", score {trial.score:.2f}" if trial.score is not None and 0 < trial.score < 1 else ""
    parts: list[RenderableType] = [
        heading(printable(f"{trial.suite}/{trial.task_id}  {trial.file}:{trial.line}", 500)),
        *_transcript(finished),
        *(part for grade in trial.grades for part in _grade(grade)),
        *([heading("metrics"), Text("  ".join(f"{name} {value:g}" for name, value in known.items()))] if known else []),
        heading(f"{trial.status.upper()}{score}", _STYLES[trial.status]),
    ]
    if trial.reason:
        parts.append(_marked("!", trial.reason))
    return rendered(*parts, width=width, color=color).removeprefix("\n")


def _transcript(finished: FinishedTrial) -> Iterator[RenderableType]:
    transcript, trial = finished.transcript, finished.trial
    # Of a trial that was broken off before its graders were asked, the agent's end is not known.
    end = "broken off" if trial.status in _UNMEASURED and not trial.grades else transcript.end
    seconds = f", {transcript.wall_time_seconds:.2f} s" if transcript.wall_time_seconds else ""
    yield heading(f"transcript  {end}{seconds}")
    for message in transcript.messages:
        if message.content:
            yield _marked(message.role, message.content)
        for call in message.tool_calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
            yield _marked("call", f"{call.tool} {arguments}", indent=2)
            if call.result is not None:
                result = call.result if isinstance(call.result, str) else json.dumps(call.result, default=str)
                yield _marked("error" if call.is_error else "result", result, indent=2)
    last = transcript.messages[-1].content if transcript.messages else ""
    if transcript.output and transcript.output != last:
        yield _marked("output", transcript.output)
    if not transcript.complete:
        yield Text("The agent reported no transcript: its steps and tool calls are not known.", "dim")


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
    for check in grade.checks:
        mark, style = ("✓", "green") if check.passed else ("✗", "red")
        yield _marked(mark, check.message, style=style)
    for violation in grade.violations:
        yield _marked("violation", f"{violation.rule}: {violation.message}", style="bold red")
    for member in grade.members:
        yield from _grade(member, f"{within}{grade.name} > ")


def _marked(mark: str, text: str, *, indent: int = 0, style: str = "cyan") -> Marked:
    shown = "\n".join(printable_lines(text, lines=_MOST_LINES, limit=_LONGEST_LINE))
    return Marked(mark, Text(shown), style=style, indent=indent)
