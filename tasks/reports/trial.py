"""A trial as a document: what every report shows of it, and the commands that show it and repeat it.

A renderer escapes its texts and cuts them to size.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from passgate.tasks.model.grade import Grade
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.transcript import ChangedFile, EndReason, Message, Transcript
from passgate.tasks.model.trial import BLIND, MEASURED, Trial, TrialStatus
from passgate.tasks.reports import figures
from passgate.tasks.reports.escape import printable

MARKS: Final = {
    TrialStatus.PASSED: "✓",
    TrialStatus.FAILED: "✗",
    TrialStatus.ERROR: "!",
    TrialStatus.NOT_RUN: "○",
}
"""A sign beside each colour."""
DIFF_LINES: Final = {"+": "added", "-": "deleted", "@": "place", "\\": "place"}
"""The kind of a line in a unified diff, by its first character."""
_MOST_GRADES, _MOST_CHECKS = 60, 200
_LONGEST_WORD: Final = 500


class BudgetUse(NamedTuple):
    """How much of a budget is used."""

    text: str  # `step 3 of 20`
    share: float  # The used share; above 1 the budget is exceeded. 0 without a budget.


class TimelineEntry(NamedTuple):
    """One message, or a gap."""

    message: Message | None
    uses: tuple[BudgetUse, ...] = ()  # The use of each budget after a step
    gap: int = 0  # The number of messages that are left out here

    @property
    def fullest(self) -> float:
        """Return the share of the budget that is nearest to its limit; 0 without budgets."""
        return max((use.share for use in self.uses), default=0.0)

    @property
    def facts(self) -> str:
        """Return how long a step took, and its tokens."""
        message, facts = self.message, list[str]()
        if message is None:
            return ""
        if message.latency_ms is not None:
            facts.append(milliseconds(message.latency_ms))
        usage = message.usage
        if usage.tokens_in is not None or usage.tokens_out is not None:
            facts.append(f"{usage.tokens_in or 0:,} tokens in, {usage.tokens_out or 0:,} out")
        return ", ".join(facts)


class GradeEntry(NamedTuple):
    """The answer of a grader."""

    name: str
    state: str  # `passed`, `failed` or `error`
    score: str
    evidence: tuple[tuple[str, str], ...]  # Texts, each with its kind: `passed`, `failed`, `violation` or `error`
    more: int  # The number of checks that are left out


class TrialDocument(NamedTuple):
    """A trial with all that is known of it."""

    trial: Trial
    transcript: Transcript  # An empty one if the run keeps none
    remarks: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    entries: tuple[TimelineEntry, ...]
    grades: tuple[GradeEntry, ...]
    expected: Any = None  # The expected answer of a failed trial, a text or a JSON value; `None` if the task has none

    @property
    def mark(self) -> str:
        return MARKS[self.trial.status]

    @property
    def state(self) -> str:
        """Return the status in words."""
        return self.trial.status.replace("_", " ")

    @property
    def end(self) -> str:
        """Return how the agent's part ended. That is unknown if the trial broke off before the graders ran."""
        is_open = self.trial.status not in MEASURED and not self.trial.grades
        return "broken off" if is_open else self.transcript.end.replace("_", " ")

    @property
    def output(self) -> str:
        """Return the final answer if it is not the last message."""
        messages, output = self.transcript.messages, self.transcript.output
        return "" if messages and messages[-1].content == output else output

    @property
    def files(self) -> tuple[ChangedFile, ...]:
        changes = self.transcript.file_changes
        return changes.files if changes else ()

    @property
    def files_remark(self) -> str:
        """Return what `files` does not say: that there are more, or none. Empty if nobody used the workspace."""
        changes = self.transcript.file_changes
        return (changes.remark or ("" if changes.files else "none")) if changes else ""


def trial_document(
    trial: Trial, transcript: Transcript | None, task: EvalTask | None = None, *, messages: int
) -> TrialDocument:
    """Describe a trial, whose run may keep no transcript. Of more than `messages` messages the middle is left out."""
    known = transcript or Transcript(complete=False)
    expected = None
    if task and transcript is not None and trial.status is TrialStatus.FAILED and task.reference_answer:
        expected = task.reference_answer if task.expected_messages else task.expected_output
    return TrialDocument(
        trial=trial,
        transcript=known,
        remarks=tuple(_remarks(trial, transcript)),
        facts=tuple(_facts(trial, known)),
        entries=timeline(known, task.budgets if task else Budgets(), messages),
        grades=tuple(one for grade in trial.grades for one in _grade(grade, ""))[:_MOST_GRADES],
        expected=expected,
    )


def _remarks(trial: Trial, transcript: Transcript | None) -> Iterator[str]:
    if trial.reused_from:
        yield f"Not run again: this trial is of the run {trial.reused_from}."
    if trial.trial >= trial.k:
        yield "A confirming trial: it was run because the task had failed."
    if transcript is None:
        yield "The run keeps no transcript of this trial."
    elif not transcript.complete:
        yield BLIND
    if transcript is not None and transcript.detail:
        yield transcript.detail


def _facts(trial: Trial, transcript: Transcript) -> Iterator[tuple[str, str]]:
    metrics = trial.metrics
    if trial.status in MEASURED and transcript.end is not EndReason.COMPLETED:
        yield "ended", transcript.end.replace("_", " ")
    values = (
        ("steps", figures.tracked("steps", metrics.steps)),
        ("tool calls", figures.tracked("tool_call_count", metrics.tool_call_count)),
        ("tokens", figures.tracked("total_tokens", metrics.total_tokens)),
        ("cost", figures.dollars(trial.cost or metrics.cost)),
        ("time", figures.duration(metrics.wall_time_seconds)),
        ("score", f"{trial.score:.2f}" if trial.score is not None else figures.UNKNOWN),
        ("attempts", str(trial.attempts) if trial.attempts > 1 else figures.UNKNOWN),
        ("model", trial.model or figures.UNKNOWN),
        ("isolation", trial.isolation or figures.UNKNOWN),
    )
    yield from (pair for pair in values if pair[1] != figures.UNKNOWN)


def _grade(grade: Grade, within: str) -> Iterator[GradeEntry]:
    """Yield a grade and those that it is made of."""
    evidence: list[tuple[str, str]] = [("error", grade.error)] if grade.error is not None else []
    evidence += [("failed", grade.fatal)] if grade.fatal else []
    evidence += [("violation", f"{one.rule}: {one.message}") for one in grade.violations]
    # What failed is what a reader looks for.
    checks = sorted(grade.checks, key=lambda check: check.passed)
    evidence += [("passed" if check.passed else "failed", check.message) for check in checks[:_MOST_CHECKS]]
    score = "" if grade.score is None else f"{grade.score:.2f}"
    if grade.votes:
        score += f", votes {', '.join(f'{vote:.2f}' for vote in grade.votes)}"
    yield GradeEntry(
        name=within + (grade.name if grade.name == grade.type else f"{grade.name} ({grade.type})"),
        state="error" if grade.error is not None else "passed" if grade.passed else "failed",
        score=score,
        evidence=tuple(evidence),
        more=max(0, len(checks) - _MOST_CHECKS),
    )
    for member in grade.members:
        yield from _grade(member, f"{within}{grade.name} > ")


def milliseconds(number: float) -> str:
    """Format a duration: `850 ms`, `1.5 s`."""
    return figures.quantity(number, "ms") if number < 1000 else figures.duration(number / 1000)


def timeline(transcript: Transcript, budgets: Budgets, most: int) -> tuple[TimelineEntry, ...]:
    """Return an entry per message. Of more than `most` messages the middle is a gap."""
    messages, uses = transcript.messages, list[tuple[BudgetUse, ...]]()
    steps = calls = tokens = 0
    cost = seconds = 0.0
    for message in messages:
        # The use of a budget is unknown if the agent does not report every step.
        if not transcript.complete or message.role != "assistant":
            uses.append(())
            continue
        usage = message.usage
        steps += 1
        calls += len(message.tool_calls)
        tokens += (usage.tokens_in or 0) + (usage.tokens_out or 0)
        cost += usage.cost_usd or 0.0
        seconds += (message.latency_ms or 0.0) / 1000
        used: tuple[tuple[str, float, float | None, Callable[[float], str]], ...] = (
            (f"step {steps}", steps, budgets.max_steps, "{:,}".format),
            (figures.count(calls, "tool call"), calls, budgets.max_tool_calls, "{:,}".format),
            (f"{tokens:,} tokens", tokens, budgets.max_tokens, "{:,}".format),
            (figures.dollars(cost), cost, budgets.max_cost_usd, figures.dollars),
            (figures.duration(seconds), seconds, budgets.max_seconds, figures.duration),
        )
        uses.append(tuple(_use(*one) for one in used if one[1]))
    entries = [TimelineEntry(*pair) for pair in zip(messages, uses, strict=True)]
    gap, tail = len(entries) - most, most // 2
    if gap > 0:
        entries[most - tail : len(entries) - tail] = [TimelineEntry(None, gap=gap)]
    return tuple(entries)


def _use(text: str, used: float, limit: float | None, number: Callable[[float], str]) -> BudgetUse:
    if limit is None:
        return BudgetUse(text, 0.0)
    return BudgetUse(f"{text} of {number(limit)}", used / limit if limit else 1.0)


def show_command(run_id: str, task: str, trial: int) -> tuple[str, ...]:
    """Return the words of the command that shows a trial of a run. `task` is `suite/task_id`."""
    return "passgate", "show", run_id, "--task", task, "--trial", str(trial)


def try_command(task: str, agent: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words of the command that runs a trial of a task again, from the folder of the run."""
    return "passgate", "try", task, "--agent", agent, *options


def try_options(request: RunRequest) -> tuple[str, ...]:
    """Return the options of a run that `passgate try` needs too, as far as they are not the usual ones."""
    options = (("--suites", request.suites, "suites"), ("--gates", request.gates, "gates.yaml"))
    return tuple(word for option, value, usual in options if value != usual for word in (option, value))


def command_lines(words: Sequence[str], width: int) -> tuple[str, ...]:
    """Return a command in lines of at most `width` characters, if its options allow, continued as shells read them."""
    parts: list[str] = []
    for word in words:
        quoted = shlex.quote(printable(word, _LONGEST_WORD))
        if word.startswith("--") or not parts:
            parts.append(quoted)
        else:
            parts[-1] += f" {quoted}"
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len("  \\") <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"  {part}")
    return tuple(lines)
