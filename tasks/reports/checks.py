"""What `passgate check-graders` and `doctor` found, for a terminal: a line for each thing they looked at."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from passgate.tasks.model.checks import CheckCounts, GraderCheck, State, Symptom
from passgate.tasks.reports import figures
from passgate.tasks.reports.console import render
from passgate.tasks.reports.document import Item, Items, Remark, Section, Span, Table, Tone, name, strong

_TONES = {"passed": Tone.GOOD, "derived": Tone.PLAIN, "failed": Tone.BAD, "not measured": Tone.OPEN, "none": Tone.BAD}
_TONE_OF_STATE = {State.OK: Tone.GOOD, State.WARNING: Tone.OPEN, State.FAILED: Tone.BAD}
_MARKS = {State.OK: "✓", State.WARNING: "!", State.FAILED: "✗"}
_RULES = (
    "known-good: what must pass; derived: made from the graders' options. known-bad: doing nothing and the "
    "counterexamples; how many failed. mutants: of the known-good transcript; how many failed. graders: how many "
    "failed something bad."
)


def grader_checks_report(checks: Sequence[GraderCheck], *, width: int, color: bool) -> str:
    """Return a row per task, every fault with its remedy, what was not measured, and how many there are of each."""
    rows = tuple(
        (
            name(f"{check.suite}/{check.task_id}"),
            Span(check.known_good, tone=_TONES[check.known_good]),
            *map(_share, (check.known_bad, check.mutants, check.graders)),
        )
        for check in checks
    )
    header = ("task", "known-good", "known-bad", "mutants", "graders")
    sections = [Section((), (Table(header, rows, texts=2),)), Section((), (Remark(_RULES),))]
    findings = [finding for check in checks for finding in check.findings]
    faults = []
    for finding in findings:
        graders = f" ({', '.join(finding.graders)})" if finding.graders else ""
        where = f"{finding.file}:{finding.line}:{finding.column}: {finding.path}{graders}: "
        faults.append(Item((Span(where + finding.message), "\n→ ", Span(finding.remedy)), Tone.BAD))
    unmeasured = tuple(
        Item((Span(f"{check.suite}/{check.task_id}: {reason}"),), Tone.OPEN, mark="?")
        for check in checks
        for reason in check.unmeasured
    )
    for title, items in (("faults", tuple(faults)), ("not measured", unmeasured)):
        sections += [Section((strong(title),), (Items(items),))] if items else []
    counts = [figures.count(len(checks), "task"), figures.count(len(findings), "fault")]
    counts += [f"{len(unmeasured)} not measured"] if unmeasured else []
    tone = Tone.BAD if findings else Tone.OPEN if unmeasured else Tone.GOOD
    return render(*sections, Section((strong(", ".join(counts)),), (), tone), width=width, color=color)


def _share(counts: CheckCounts) -> Span:
    """Return `3/4`, or `3/4 (1 not measured)`; a dash where there was nothing to do."""
    if not counts.of and not counts.unmeasured:
        return Span(figures.UNKNOWN, tone=Tone.QUIET)
    unmeasured = f" ({counts.unmeasured} not measured)" if counts.unmeasured else ""
    return Span(f"{counts.right}/{counts.of}{unmeasured}", tone=Tone.PLAIN if counts.right == counts.of else Tone.BAD)


def doctor_report(symptoms: Sequence[Symptom], *, width: int, color: bool) -> str:
    """Return the symptoms by what they belong to, with a remedy below each that needs one, and how many there are."""
    by_subject: dict[str, list[Item]] = defaultdict(list)
    for one in symptoms:
        remedy = ("\n→ ", Span(one.remedy)) if one.remedy else ()
        words = (strong(f"{one.what}:"), " ", Span(one.found), *remedy)
        by_subject[one.subject].append(
            Item(words, _TONE_OF_STATE[one.state], mark=f"{_MARKS[one.state]} {one.state:<7}")
        )
    sections = [Section((strong(subject),), (Items(tuple(items)),)) for subject, items in by_subject.items()]
    counts = Counter(symptom.state for symptom in symptoms)
    worst = max(counts, key=list(State).index, default=State.OK)
    summary = strong(", ".join(f"{counts[state]} {state}" for state in State))
    return render(*sections, Section((summary,), (), _TONE_OF_STATE[worst]), width=width, color=color)
