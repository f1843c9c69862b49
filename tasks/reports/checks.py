"""What `passgate check-graders` and `doctor` found, for a terminal: a line for each thing they looked at."""

import json
from collections import Counter
from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.checks import CheckCounts, GraderCheck, State, Symptom
from passgate.tasks.reports import console, figures
from passgate.tasks.reports.console import MESSAGE, NAME, Marked, heading, plain_table, rendered
from passgate.tasks.reports.escape import printable

_LONGEST_SYMPTOM = 1000
_STYLE_OF_GOOD = {"passed": "green", "derived": "", "failed": "bold red", "not measured": "yellow", "none": "bold red"}
_MARKS = {State.OK: ("✓", "green"), State.WARNING: ("!", "yellow"), State.FAILED: ("✗", "red")}
_RULES = (
    "known-good: what must pass; derived: made from the graders' options. known-bad: doing nothing and the "
    "counterexamples; how many failed. mutants: of the known-good transcript; how many failed. graders: how many "
    "failed something bad."
)


def grader_checks_report(checks: Sequence[GraderCheck], *, width: int, color: bool) -> str:
    """Return a row per task, then every fault with its remedy, what was not measured, and how many there are of
    each.
    """
    header = console.columns("task", "known-good", "known-bad", "mutants", "graders")
    rows = [
        (
            Text(_name(check)),
            Text(check.known_good, _STYLE_OF_GOOD[check.known_good]),
            *map(_share, (check.known_bad, check.mutants, check.graders)),
        )
        for check in checks
    ]
    parts: list[RenderableType] = [plain_table(140, header, rows), Text(f"\n{_RULES}", "dim")]
    findings = [finding for check in checks for finding in check.findings]
    if findings:
        parts.append(heading("faults"))
    for finding in findings:
        graders = f" ({', '.join(finding.graders)})" if finding.graders else ""
        where = f"{finding.file}:{finding.line}:{finding.column}: {finding.path}{graders}: "
        parts += [_line("✗", where + finding.message, "red"), _line("→", finding.remedy, "red", indent=4)]
    unmeasured = [f"{_name(check)}: {reason}" for check in checks for reason in check.unmeasured]
    if unmeasured:
        parts.append(heading("not measured"))
        parts += [_line("?", text, "yellow") for text in unmeasured]
    counts = [figures.count(len(checks), "task"), figures.count(len(findings), "fault")]
    counts += [f"{len(unmeasured)} not measured"] if unmeasured else []
    style = "bold red" if findings else "bold yellow" if unmeasured else "bold green"
    return rendered(*parts, heading(", ".join(counts), style), width=width, color=color)


def grader_checks_as_json(checks: Sequence[GraderCheck]) -> str:
    """Return the checks as a JSON list, with notes on what is no fault. What a terminal would obey is escaped."""
    return json.dumps([check.model_dump(mode="json") for check in checks], indent=2)


def _name(check: GraderCheck) -> str:
    return printable(f"{check.suite}/{check.task_id}", NAME)


def _share(counts: CheckCounts) -> Text:
    """As in `3/4`, or `3/4 (1 not measured)`; a dash where there was nothing to do."""
    if not counts.of and not counts.unmeasured:
        return Text("-", "dim")
    unmeasured = f" ({counts.unmeasured} not measured)" if counts.unmeasured else ""
    return Text(f"{counts.right}/{counts.of}{unmeasured}", "" if counts.right == counts.of else "red")


def _line(mark: str, text: str, style: str, *, indent: int = 2, limit: int = MESSAGE) -> Marked:
    return Marked(mark, Text(printable(text, limit)), style=style, indent=indent)


def doctor_report(symptoms: Sequence[Symptom], *, width: int, color: bool) -> str:
    """Return the symptoms by what they belong to, with a remedy below each that needs one, and how many there are."""
    parts: list[RenderableType] = []
    for subject in dict.fromkeys(symptom.subject for symptom in symptoms):
        parts.append(heading(printable(subject, NAME)))
        for symptom in (one for one in symptoms if one.subject == subject):
            mark, style = _MARKS[symptom.state]
            what = (f"{printable(symptom.what, NAME)}: ", "bold")
            text = Text.assemble(what, printable(symptom.found, _LONGEST_SYMPTOM))
            parts.append(Marked(f"{mark} {symptom.state:<7}", text, style=style, indent=2))
            if symptom.remedy:
                parts.append(_line("→", symptom.remedy, style, indent=12, limit=_LONGEST_SYMPTOM))
    counts = Counter(symptom.state for symptom in symptoms)
    worst = max(counts, key=list(State).index, default=State.OK)
    summary = heading(", ".join(f"{counts[state]} {state}" for state in State), f"bold {_MARKS[worst][1]}")
    return rendered(*parts, summary, width=width, color=color).removeprefix("\n")
