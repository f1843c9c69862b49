"""What `passgate check-graders` found, for a terminal and for programs."""

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from passgate.tasks.model.checks import CheckCounts, GraderCheck, GraderFinding
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import Marked, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable

_LONGEST_NAME = 200
_LONGEST = 500
_STYLE_OF_GOOD = {"passed": "green", "derived": "", "failed": "bold red", "not measured": "yellow", "none": "bold red"}
_RULES = (
    "known-good: what must pass; derived: put together from the graders. known-bad: doing nothing and the "
    "counterexamples, those that fail. mutants: of the known-good transcript, those that are noticed. graders: those "
    "that something bad has failed."
)


def grader_checks_report(checks: Sequence[GraderCheck], *, width: int, color: bool) -> str:
    """A row per task, then every fault with its remedy, what was not measured, and how many there are of each."""
    parts: list[RenderableType] = [_table(checks), Text(f"\n{_RULES}", "dim")]
    findings = [finding for check in checks for finding in check.findings]
    if findings:
        parts.append(heading("faults"))
        parts += [part for finding in findings for part in _finding(finding)]
    unmeasured = [(check, reason) for check in checks for reason in check.unmeasured]
    if unmeasured:
        parts.append(heading("not measured"))
        parts += [_line("?", f"{_name(check)}: {reason}", "yellow") for check, reason in unmeasured]
    return rendered(*parts, _summary(checks), width=width, color=color)


def grader_checks_as_json(checks: Sequence[GraderCheck]) -> str:
    """The checks as a JSON list, with notes on what is no fault. What a terminal would obey is escaped."""
    return json.dumps([check.model_dump(mode="json") for check in checks], indent=2)


def _table(checks: Sequence[GraderCheck]) -> Table:
    table = plain_table(140)
    for title in ("task", "known-good", "known-bad", "mutants", "graders"):
        table.add_column(title, overflow="fold")
    for check in checks:
        good = Text(check.known_good, _STYLE_OF_GOOD[check.known_good])
        tallies = [_tally(tally) for tally in (check.known_bad, check.mutants, check.graders)]
        table.add_row(Text(_name(check)), good, *tallies)
    return table


def _name(check: GraderCheck) -> str:
    return printable(f"{check.suite}/{check.task_id}", _LONGEST_NAME)


def _tally(tally: CheckCounts) -> Text:
    """As in `3/4`, or `3/4 (1 not measured)`; a dash where there was nothing to do."""
    if not tally.of and not tally.unmeasured:
        return Text("-", "dim")
    unmeasured = f" ({tally.unmeasured} not measured)" if tally.unmeasured else ""
    return Text(f"{tally.right}/{tally.of}{unmeasured}", "" if tally.right == tally.of else "red")


def _finding(finding: GraderFinding) -> Iterator[RenderableType]:
    graders = f" ({', '.join(finding.graders)})" if finding.graders else ""
    where = f"{finding.file}:{finding.line}:{finding.column}: {finding.path}{graders}: "
    yield _line("✗", where + finding.message, "red")
    yield _line("→", finding.remedy, "red", indent=4)


def _line(mark: str, text: str, style: str, *, indent: int = 2) -> Marked:
    return Marked(mark, Text(printable(text, _LONGEST)), style=style, indent=indent)


def _summary(checks: Sequence[GraderCheck]) -> Text:
    faults = sum(len(check.findings) for check in checks)
    unmeasured = sum(len(check.unmeasured) for check in checks)
    counted = [figures.count(len(checks), "task"), figures.count(faults, "fault")]
    if unmeasured:
        counted.append(f"{unmeasured} not measured")
    style = "bold red" if faults else "bold yellow" if unmeasured else "bold green"
    return heading(", ".join(counted), style)
