"""What `passgate verify` found, for a terminal."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from passgate.tasks.model.verdict import CheckResult, Claim, Verification, VerificationCheck
from passgate.tasks.reports.console import DECISION_STYLE, Marked, heading, rendered
from passgate.tasks.reports.escape import printable

_LONGEST = 2000
_STYLES = {CheckResult.OK: "green", CheckResult.DIFFERS: "bold red", CheckResult.NOT_HERE: "yellow"}


def verification_report(verification: Verification, *, width: int, color: bool) -> str:
    """What was looked at, a line each; then what is said, and by whom."""
    parts: list[RenderableType] = [_check(check) for check in verification.checks]
    if verification.statement is not None:
        parts += _claim(verification.statement.claim)
    return rendered(*parts, _conclusion(verification), width=width, color=color)


def _check(check: VerificationCheck) -> RenderableType:
    text = Text.assemble((f"{check.subject}: ", "bold"), printable(check.detail, _LONGEST))
    return Marked(f"{check.finding:<8}", text, style=_STYLES[check.finding])


def _claim(claim: Claim) -> Iterator[RenderableType]:
    yield heading(f"{claim.gate} {claim.decision}", DECISION_STYLE[claim.decision])
    revision = claim.revision
    commit = f"{revision.commit}{' with changes' if revision.dirty else ''}" if revision.commit else "none"
    yield _said("run", f"{claim.run_id}, judged at {claim.judged_at:%Y-%m-%d %H:%M:%S %Z}")
    yield _said("agent", claim.agent)
    yield _said("commit", f"{commit}{f' on {revision.branch}' if revision.branch else ''}")
    if claim.sign_off is None:
        yield _said("sign-off", "none")
        return
    signed = claim.sign_off
    yield _said("sign-off", f"{signed.decision} by {signed.by} at {signed.at:%Y-%m-%d %H:%M:%S %Z}")
    yield _said("reason", signed.reason)


def _said(name: str, text: str) -> RenderableType:
    return Marked(f"{name:<8}", Text(printable(text, _LONGEST)), style="dim")


def _conclusion(verification: Verification) -> RenderableType:
    if verification.statement is None:
        return heading("Not by this key: whatever it says, nobody known has said it", _STYLES[CheckResult.DIFFERS])
    if not verification.holds:
        return heading("Signed, but not of what is here", _STYLES[CheckResult.DIFFERS])
    missing = sum(check.finding is CheckResult.NOT_HERE for check in verification.checks)
    if missing:
        return heading(
            f"All that is here is as signed; {missing} could not be looked at", _STYLES[CheckResult.NOT_HERE]
        )
    return heading("All is as signed", _STYLES[CheckResult.OK])
