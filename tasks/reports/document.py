"""The parts of a document, and the document on a verdict: what every report says beside its reasons and tasks.

A bare `str` holds passgate's own words. A text from outside is a `Span`, which a renderer escapes and cuts.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from passgate.tasks.model.measurement import SuiteMeasurement, TaskState
from passgate.tasks.model.policy import VETOES
from passgate.tasks.model.verdict import Decision, Exemption, Finding, Integrity, Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.findings import TaskFinding


class Tone(StrEnum):
    """What a text means to its reader; a renderer has a style for each."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    OPEN = "open"  # Nobody knows yet, or somebody has to look
    QUIET = "quiet"  # It is beside the point


class SpanKind(StrEnum):
    """What a span is."""

    TEXT = "text"
    STRONG = "strong"
    NAME = "name"  # A path, a task, a digest


class Span(NamedTuple):
    """A text from outside, or one that stands out."""

    text: str
    kind: SpanKind = SpanKind.TEXT
    tone: Tone = Tone.PLAIN


Words = tuple[str | Span, ...]


def name(text: str) -> Span:
    """Return a name from outside."""
    return Span(text, SpanKind.NAME)


def strong(text: str, tone: Tone = Tone.PLAIN) -> Span:
    """Return a text that stands out."""
    return Span(text, SpanKind.STRONG, tone)


class Item(NamedTuple):
    """One item of a list."""

    words: Words
    tone: Tone = Tone.PLAIN
    is_decisive: bool = False  # Whether a renderer shows it before it shows any other item
    mark: str = ""  # What a terminal shows before it, in place of the mark of its tone


class Items(NamedTuple):
    """A list, with the decisive items first."""

    items: tuple[Item, ...]
    most: int = 500  # The number of items that a summary shows
    most_on_screen: int = 500

    def more(self, shown: int) -> str:
        """Return the words on the items after the first `shown`; empty if there are none."""
        rest = self.items[shown:]
        decisive = sum(item.is_decisive for item in rest)
        kinds = f", {decisive} of them of graders, policy, agents or prices," if decisive else ""
        return f"... and {len(rest)} more{kinds}" if rest else ""


class Table(NamedTuple):
    """A table whose first columns are texts and whose others are figures."""

    header: tuple[str, ...]
    rows: tuple[tuple[str | Span, ...], ...]
    texts: int = 1  # The number of columns with texts
    note: str = ""


class Commands(NamedTuple):
    """The lines of shell commands."""

    lines: tuple[str, ...]


class Remark(NamedTuple):
    """A line in passgate's own words on what stands above it."""

    text: str


class Section(NamedTuple):
    """A part of a document under a title."""

    title: Words
    blocks: tuple[Words | Items | Table | Commands | Remark, ...] = ()
    tone: Tone = Tone.PLAIN


TONES = {Decision.PASS: Tone.GOOD, Decision.FAIL: Tone.BAD, Decision.INCONCLUSIVE: Tone.OPEN}
_ORDER = (Finding.FALLEN, Finding.UNFINISHED, Finding.UNDECIDED, Finding.FITS)
_BASELINE_RUNS = 20
_LABEL = 60  # Characters of the name and the limit of a comparison


class VerdictDocument(NamedTuple):
    """The parts of a document on a verdict. A report shows its headline first or last; an absent part is `None`."""

    verdict: Verdict
    facts: Mapping[str, str]  # The run in short; the values are from outside
    suites: Table
    sign_off: Section | None
    comparisons: Section | None
    integrity: Section | None
    confirmations: Section | None
    withheld: tuple[Section, ...]  # The tasks that are not admitted and those in quarantine
    notes: Section | None
    provenance: Section
    tasks: tuple[TaskFinding, ...]  # The tasks to look at, the worst first


def verdict_document(verdict: Verdict) -> VerdictDocument:
    """Return the document on a verdict."""
    notes = findings.notes(verdict)
    withheld = (("Not admitted", verdict.not_admitted), ("Quarantined", verdict.quarantined))
    return VerdictDocument(
        verdict=verdict,
        facts={label: value for label, value in _facts(verdict).items() if value},
        suites=Table(figures.SUITE_HEADER, tuple(map(_suite, verdict.measurement.suites))),
        sign_off=_sign_off(verdict),
        comparisons=_comparisons(verdict),
        integrity=_integrity(verdict, verdict.integrity) if verdict.integrity else None,
        confirmations=_confirmations(verdict),
        withheld=tuple(_withheld(title, tasks, verdict) for title, tasks in withheld if tasks),
        notes=Section((strong("Notes"),), (Items(tuple(Item((Span(note),)) for note in notes), 500, 12),))
        if notes
        else None,
        provenance=Section((strong("Run and digests"),), (Table(("", ""), tuple(_provenance(verdict)), texts=2),)),
        tasks=findings.findings(verdict),
    )


def task_messages(finding: TaskFinding) -> tuple[str, ...]:
    """Return what the verdict says of a task, without its violations and failures; its figures if there is nothing."""
    task, messages = finding.task, list[str]()
    for reason in finding.reasons:
        text = reason.message
        for repeated in filter(None, (task.failure, task.error)):
            text = text.removesuffix(repeated)
        if reason.rule not in VETOES:
            messages.append(text.rstrip(" :;"))
    is_excused = bool(finding.compared) and finding.why_not_blocking == finding.compared
    shown = tuple(text for text in dict.fromkeys(messages) if text and not is_excused)
    return shown or (figures.task_summary(task),)


def task_explanations(finding: TaskFinding) -> tuple[tuple[str, str], ...]:
    """Return labels and texts on the failed and unmeasured trials. A text that another task tells is empty."""
    explanations = [(finding.echoes.get(text), label, text) for label, text in finding.explanations if text.strip()]
    return tuple(
        (echo.label(finding.name), echo.text if echo.first == finding.name else "") if echo else (label, text)
        for echo, label, text in explanations
    )


def _facts(verdict: Verdict) -> Mapping[str, str]:
    measurement, revision = verdict.measurement, verdict.revision
    tasks, p95 = measurement.tasks, measurement.latency_p95_seconds
    changes = " with changes" if revision.dirty else ""
    return {
        "trials": f"{sum(task.passed for task in tasks)} of {sum(task.n for task in tasks)} passed",
        "tasks": f"{sum(task.state is TaskState.PASSED for task in tasks)} of {len(tasks)} passed",
        "agent": verdict.agent,
        "answered by": findings.models(verdict),
        "LLM judge": verdict.judge,
        "branch": revision.branch,
        "commit": f"{revision.commit[:12]}{changes}" if revision.commit else "",
        "cost": "" if measurement.cost is None else figures.dollars(measurement.cost),
        "latency P95": "" if p95 is None else figures.duration(p95),
        "took": figures.duration((verdict.judged_at - verdict.started_at).total_seconds()),
        "started": f"{verdict.started_at:%Y-%m-%d %H:%M} UTC",
    }


def _suite(suite: SuiteMeasurement) -> tuple[str | Span, ...]:
    cells = figures.suite_cells(suite)
    passed = Span(cells[1], tone=Tone.GOOD if suite.tasks_passed == suite.tasks else Tone.BAD)
    missing = suite.trials_error or suite.trials_not_run
    trials = Span(cells[2], tone=Tone.OPEN if missing else Tone.PLAIN)
    return (cells[0], passed, trials, cells[3], strong(cells[4]), *cells[5:])


def _sign_off(verdict: Verdict) -> Section | None:
    """Return what a person decided, or how to decide; `None` if nobody has to."""
    if (one := verdict.sign_off) is not None:
        tone = Tone.GOOD if one.decision == "approve" else Tone.BAD
        signed = f"{one.decided} at {one.at.isoformat(sep=' ', timespec='seconds')}: {one.reason}"
        return Section((), ((strong("Sign-off", tone), ": ", Span(signed)),))
    if not verdict.awaiting_sign_off:
        return None
    title = (strong("Awaiting sign-off"), ": a person decides with one of these commands")
    return Section(title, (Commands(findings.sign_off_commands(verdict)),), Tone.OPEN)


def _comparisons(verdict: Verdict) -> Section | None:
    if not verdict.comparisons:
        return None
    rows = tuple(
        (
            Span(one.name[:_LABEL]),
            figures.quantity(one.baseline, one.unit),
            figures.quantity(one.current, one.unit),
            figures.change(one.baseline, one.current),
            figures.times(one.ratio),
            figures.times(one.ratio_lower_bound),
            str(one.pairs),
            Span(one.limit[:_LABEL]),
        )
        for one in verdict.comparisons
    )
    header = ("against the baseline", "baseline", "now", "change", "paired ratio", "at least", "tasks", "limit")
    return Section((), (Table(header, rows, note=figures.paired_ratio_explained(verdict.comparisons)),))


def _integrity(verdict: Verdict, integrity: Integrity) -> Section:
    """Return whose files have judged, which edits there are of them, and what the other files say."""
    edits = sorted(integrity.edits, key=lambda edit: not edit.decides)
    items = (
        Item((f"{edit.kind} ", name(edit.path), f" ({edit.subject})"), Tone.OPEN, is_decisive=edit.decides)
        for edit in edits
    )
    decisive = sum(edit.decides for edit in edits)
    blocks: list[tuple[str | Span, ...] | Items] = [Items(tuple(items), decisive + 10, min(decisive, 8) + 3)]
    other, said = integrity.other, findings.other_verdict(verdict, integrity)
    if other is None or findings.is_same_verdict(verdict, other):
        blocks += [(said,)] if said else []
    else:
        reasons = []
        for reason in findings.blocking(other.reasons):
            subject = findings.reason_subject(reason)
            of_task = (" ", name(subject)) if subject else ()
            reasons.append(Item((reason.rule, *of_task, ": ", Span(reason.message)), Tone.BAD))
        blocks += [(f"{said}\n", strong(other.headline, TONES[other.decision])), Items(tuple(reasons), 5, 2)]
    commit = (" ", name(integrity.judging[:12])) if integrity.by_base else ()
    title = (strong(f"Judged by {findings.judges(integrity)}"), *commit, ": this change edits files that judge it")
    return Section(title, tuple(blocks), Tone.OPEN)


def _confirmations(verdict: Verdict) -> Section | None:
    header = ("evidence", "finding", "now", "at the baseline", "confirming trials")
    rows = tuple(
        (name(one.task), strong(one.finding), f"{one.passed}/{one.n}", figures.at_baseline(one), str(one.confirming))
        for one in sorted(verdict.confirmations, key=lambda one: (_ORDER.index(one.finding), one.task))
    )
    return Section((strong("Confirming trials"),), (Table(header, rows, texts=2),)) if rows else None


def _withheld(title: str, tasks: Sequence[Exemption], verdict: Verdict) -> Section:
    """Return the tasks whose failures do not block, first those that did not pass now."""
    not_passed = {task.name for task in verdict.measurement.tasks if task.state is not TaskState.PASSED}
    items = tuple(
        Item(
            (name(one.task), *((" ", strong("not passed now")) if one.task in not_passed else ()), ": ", Span(one.why))
        )
        for one in sorted(tasks, key=lambda one: one.task not in not_passed)
    )
    count = figures.count(len(tasks), "task")
    return Section((strong(title), f": {count}, whose failures do not block (violations do)"), (Items(items, 10, 0),))


def _provenance(verdict: Verdict) -> Iterator[tuple[str, Span]]:
    inputs, revision, integrity = verdict.inputs, verdict.revision, verdict.integrity
    facts = {
        "run": verdict.run_id,
        "agent": verdict.agent,
        "models": findings.models(verdict),
        "LLM judge": verdict.judge,
        "branch": revision.branch,
        "commit": f"{revision.commit}{' with changes' if revision.dirty else ''}",
        "started": verdict.started_at.isoformat(timespec="seconds"),
        "judged": verdict.judged_at.isoformat(timespec="seconds"),
        "isolation": ", ".join(verdict.measurement.isolation),
        "judged by the files of": integrity.judging if integrity and integrity.by_base else "",
        **{
            f"digest of {part}": getattr(inputs, part)
            for part in ("policy", "tasks", "graders", "trials", "agent", "prices", "baseline", "quarantine")
        },
        "baseline runs": ", ".join(inputs.baseline_runs[:_BASELINE_RUNS]),
        "signed verdict": verdict.sign_off.verdict_digest if verdict.sign_off else "",
        "passgate": inputs.passgate_version,
    }
    yield from ((label, name(value)) for label, value in facts.items() if value)
