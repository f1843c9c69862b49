"""How a verdict came about, as Markdown: confirming trials, what was let pass, who judged, and the sign-off."""

from collections.abc import Iterator, Sequence

from passgate.tasks.model.verdict import Confirmation, Exemption, OtherVerdict, Reason, Verdict
from passgate.tasks.reports import escape, evidence, figures, findings
from passgate.tasks.reports.markdown_parts import code, fitting, items, joined, row, table

_SECTION = 6_000
"""Characters of the rows or items of a section."""
_FRAME = 1_500
"""Room for what a section has beside them: its titles, and the lines that say what was left out."""
_TEXT = 500
_HEADLINE = 100
_HEADER = ("evidence", "finding", "now", "at the baseline", "confirming trials")


def evidence_sections(verdict: Verdict, limit: int) -> str:
    """At most `limit` characters: a section without room is left out, as verdict.json holds it."""
    shown = ""
    for section in (_confirmations, _not_admitted, _quarantined, _integrity):
        room = min(_SECTION, limit - len(shown) - _FRAME)
        if room > 0:
            shown = joined((shown, section(verdict, room)))
    return shown


def sign_off(verdict: Verdict) -> str:
    """What a person decided, or how one does; empty where nobody has to."""
    if verdict.sign_off is not None:
        return f"**Sign-off**: {escape.markdown(evidence.signed(verdict.sign_off), _TEXT)}"
    if not verdict.awaiting_sign_off:
        return ""
    commands = "\n".join(evidence.sign_off_commands(verdict))
    fence = escape.markdown_fence(escape.printable_lines(commands, lines=commands.count("\n") + 1, limit=_TEXT))
    return f"**Awaiting sign-off**: a person decides, with one of\n\n{fence}"


def _confirmations(verdict: Verdict, room: int) -> str:
    found = evidence.confirmations(verdict)
    rows = fitting((row(_confirmation_cells(one)) for one in found[: findings.TASK_LIMIT]), room)
    more = f"... and {figures.count(len(found) - len(rows), 'more task')}" if len(rows) < len(found) else ""
    return joined((table(_HEADER, rows, left=2), more)) if found else ""


def _confirmation_cells(one: Confirmation) -> tuple[str, ...]:
    return (
        code(one.task),
        f"**{one.finding}**",
        f"{one.passed}/{one.n}",
        f"{one.baseline_passed}/{one.baseline_n}",
        str(one.confirming),
    )


def _not_admitted(verdict: Verdict, room: int) -> str:
    return _withheld(verdict, "Not admitted", verdict.not_admitted, room)


def _quarantined(verdict: Verdict, room: int) -> str:
    return _withheld(verdict, "Quarantined", verdict.quarantined, room)


def _withheld(verdict: Verdict, title: str, tasks: Sequence[Exemption], room: int) -> str:
    if not tasks:
        return ""
    lines = (
        f"{code(one.task)}{' **not passed now**' if is_red else ''}: {escape.markdown(one.why, _TEXT)}"
        for one, is_red in evidence.withheld(verdict, tasks)[: evidence.WITHHELD_LIMIT]
    )
    return f"**{title}**: {evidence.withheld_title(tasks)}\n\n{items(lines, room, total=len(tasks))}"


def _integrity(verdict: Verdict, room: int) -> str:
    integrity = verdict.integrity
    if integrity is None:
        return ""
    edits = (f"{edit.kind} {code(edit.path)} ({edit.what})" for edit in integrity.edits[: evidence.EDIT_LIMIT])
    base = code(integrity.base[:12])
    judge = f"**Judged by the merge base** {base}" if integrity.by_base else "**Judged by its own files**"
    return joined(
        (
            f"{judge}: this change edits what it is judged by",
            items(edits, room // 2, total=len(integrity.edits)),
            *(_other_verdict(integrity.change, room // 2) if integrity.by_base else ()),
        )
    )


def _other_verdict(other: OtherVerdict | None, room: int) -> Iterator[str]:
    if other is None:
        yield "The change's own files cannot be read or run: there is no verdict by them."
        return
    yield f"By the change's own files the verdict would be: **{escape.markdown(other.headline, _HEADLINE)}**"
    reasons = evidence.other_reasons(other)
    yield items(map(_other_reason, reasons[: evidence.OTHER_REASON_LIMIT]), room, total=len(reasons))


def _other_reason(reason: Reason) -> str:
    subject = findings.reason_subject(reason)
    return f"{reason.rule}{f' {code(subject)}' if subject else ''}: {escape.markdown(reason.message)}"
