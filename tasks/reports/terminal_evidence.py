"""How a verdict came about, for a terminal: confirming trials, what was let pass, who judged, and the sign-off."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.verdict import Confirmation, Exemption, Integrity, OtherVerdict, SignOff, Verdict
from passgate.tasks.model.verdict import Finding as Confirmed
from passgate.tasks.reports import evidence, figures, findings
from passgate.tasks.reports.console import DECISION_STYLE, MESSAGE, NAME, SHORT_MESSAGE, Marked, heading
from passgate.tasks.reports.escape import printable, printable_lines

_LOOKS = {
    Confirmed.FALLEN: ("✗", "red"),
    Confirmed.UNFINISHED: ("?", "yellow"),
    Confirmed.UNDECIDED: ("?", "yellow"),
    Confirmed.FITS: ("✓", "green"),
}


def confirmations_section(verdict: Verdict, width: int) -> Iterator[RenderableType]:
    """A line per task that got confirming trials; nothing where none did."""
    found = evidence.confirmations(verdict)
    if not found:
        return
    yield heading("Evidence: failed tasks against their baseline")
    shown = found[: findings.TASK_LIMIT]
    yield from _confirmation_lines(shown, width)
    yield from _more(len(found) - len(shown))


def _confirmation_lines(shown: Sequence[Confirmation], width: int) -> Iterator[RenderableType]:
    names = [printable(one.task, NAME) for one in shown]
    texts = [figures.against_baseline(one) for one in shown]
    columns = [max(map(cell_len, cells)) for cells in (names, [one.finding for one in shown])]
    # Where the columns do not fit side by side, each line is as short as it can be.
    if sum(columns) + max(map(cell_len, texts)) + len("✗     ") > width:
        columns = [0, 0]
    for one, name, text in zip(shown, names, texts, strict=True):
        mark, style = _LOOKS[one.finding]
        line = Text.assemble(
            (_padded(name, columns[0]), "bold"), "  ", (_padded(one.finding, columns[1]), style), f"  {text}"
        )
        yield Marked(mark, line, style=f"bold {style}")


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - cell_len(text))


def withheld_sections(verdict: Verdict) -> Iterator[RenderableType]:
    """The tasks that are not admitted and those in quarantine."""
    yield from _withheld_section(verdict, "Not admitted", verdict.not_admitted)
    yield from _withheld_section(verdict, "Quarantined", verdict.quarantined)


def _withheld_section(verdict: Verdict, title: str, tasks: Sequence[Exemption]) -> Iterator[RenderableType]:
    if not tasks:
        return
    yield heading(f"{title}: {evidence.withheld_title(tasks)}")
    for one, is_red in evidence.withheld(verdict, tasks)[: evidence.WITHHELD_LIMIT]:
        mark, style = ("!", "bold yellow") if is_red else ("·", "")
        text = Text.assemble((printable(one.task, NAME), "bold"), f"  {printable(one.why, MESSAGE)}")
        yield Marked(mark, text, style=style)
    yield from _more(len(tasks) - evidence.WITHHELD_LIMIT)


def integrity_section(integrity: Integrity | None) -> Iterator[RenderableType]:
    """Which edits there are of what judges, whose files have judged, and what the change's own would have said."""
    if integrity is None:
        return
    judge = f"the merge base {printable(integrity.base, NAME)[:12]}" if integrity.by_base else "its own files"
    yield heading(f"Judged by {judge}: this change edits what it is judged by", "bold yellow")
    for edit in integrity.edits[: evidence.EDIT_LIMIT]:
        yield Marked("!", Text(f"{edit.kind} {printable(edit.path, NAME)} ({edit.what})"), style="bold yellow")
    yield from _more(len(integrity.edits) - evidence.EDIT_LIMIT)
    if not integrity.by_base:
        return
    if integrity.change is None:
        yield Marked("·", Text("The change's own files cannot be read or run: there is no verdict by them."))
    else:
        yield from _other_verdict(integrity.change)


def _other_verdict(other: OtherVerdict) -> Iterator[RenderableType]:
    yield Marked("·", Text("By the change's own files the verdict would be:"))
    yield Marked("│", Text(printable(other.headline, MESSAGE), DECISION_STYLE[other.decision]), style="dim")
    reasons = evidence.other_reasons(other)
    for reason in reasons[: evidence.OTHER_REASON_LIMIT]:
        facts = (reason.rule, printable(findings.reason_subject(reason), NAME))
        title = " · ".join(fact for fact in facts if fact)
        yield Marked("│ ✗", Text(f"{title}: {printable(reason.message, SHORT_MESSAGE)}"), style="dim")
    if len(reasons) > evidence.OTHER_REASON_LIMIT:
        yield Marked("│", Text(f"... and {len(reasons) - evidence.OTHER_REASON_LIMIT} more"), style="dim")


def sign_off_section(verdict: Verdict) -> Iterator[RenderableType]:
    """What a person decided, or how one does."""
    if verdict.sign_off is not None:
        yield from _signed(verdict.sign_off)
    elif verdict.awaiting_sign_off:
        yield heading("Awaiting sign-off: a person decides, with one of", "bold yellow")
        commands = evidence.sign_off_commands(verdict)
        for line in printable_lines("\n".join(commands), lines=len(commands), limit=MESSAGE):
            yield Text(f"  {line}", "bold")


def _signed(sign_off: SignOff) -> Iterator[RenderableType]:
    mark, style = ("✓", "bold green") if sign_off.decision == "approve" else ("✗", "bold red")
    yield heading("Sign-off")
    yield Marked(mark, Text(printable(evidence.signed(sign_off), MESSAGE)), style=style)


def _more(number: int) -> Iterator[RenderableType]:
    if number > 0:
        yield Text(f"... and {number} more")
