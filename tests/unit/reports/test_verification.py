"""What `passgate verify` prints."""

from typing import Any

from tests.signing import a_sign_off, awaiting
from tests.unit.reports.hostile import HOSTILE

from passgate.tasks.attestations.statement import claim_of
from passgate.tasks.model.verdict import CheckResult, Statement, Verification, VerificationCheck, signed_off
from passgate.tasks.reports.checks import verification_report

SIGNATURE = VerificationCheck(finding=CheckResult.OK, subject="signature", detail="by the key abc")


def report(*checks: VerificationCheck, color: bool = False, decision: Any = "approve", **sign_off: Any) -> str:
    claim = claim_of(signed_off(awaiting(), a_sign_off(decision, **sign_off)))
    verification = Verification(checks=(SIGNATURE, *checks), statement=Statement(verdict_file="a" * 64, claim=claim))
    return verification_report(verification, width=100, color=color)


def test_each_thing_has_a_line_and_what_is_said_follows() -> None:
    lines = report(
        VerificationCheck(finding=CheckResult.NOT_HERE, subject="commit", detail="no such commit")
    ).splitlines()
    assert lines[0] == "ok       signature: by the key abc"
    assert lines[1] == "not here commit: no such commit"
    text = "\n".join(lines)
    assert "release_candidate PASS" in text
    assert "sign-off approve by Ada at 2026-02-01 09:30:00 UTC" in text
    assert "reason   read it" in text
    assert "c0ffeec0ffeec0ffeec0ffeec0ffeec0ffee0123 on main" in text
    assert lines[-1] == "Everything here is as signed; 1 could not be checked"


def test_the_conclusion_is_the_last_line() -> None:
    assert report().splitlines()[-1] == "Everything is as signed"
    differs = VerificationCheck(finding=CheckResult.DIFFERS, subject="verdict.json", detail="another")
    assert report(differs).splitlines()[-1] == "The signature is valid, but something here is not as signed"
    assert "release_candidate FAIL" in report(decision="reject")


def test_nothing_is_said_to_have_been_said_by_nobody() -> None:
    check = VerificationCheck(finding=CheckResult.DIFFERS, subject="signature", detail="not by the key abc")
    text = verification_report(Verification(checks=(check,)), width=100, color=False)
    assert text.splitlines()[0] == "differs  signature: not by the key abc"
    assert text.splitlines()[-1] == "Not signed with this key: do not trust what it says"
    assert "PASS" not in text


def test_text_from_outside_is_only_shown() -> None:
    hostile = VerificationCheck(finding=CheckResult.DIFFERS, subject="signature", detail=HOSTILE)
    text = report(hostile, by=HOSTILE, reason=HOSTILE)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(line.startswith(("::", "ci_merge PASS")) for line in text.splitlines())
