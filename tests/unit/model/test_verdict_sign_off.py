"""What a sign-off makes of a verdict."""

from typing import Any

import pytest
from tests.signing import AWAITING, a_sign_off, awaiting

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Revision, RunRequest
from passgate.tasks.model.verdict import Decision, Reason, Verdict, signed_off, verdict_digest

REPORTED = Reason(rule=Rule.COST, blocking=False, message="dearer")


def test_what_is_approved_passes_and_what_is_rejected_fails_and_says_by_whom_and_why() -> None:
    sign_off = a_sign_off()
    verdict = signed_off(awaiting(reasons=(REPORTED, AWAITING)), sign_off)
    assert (verdict.decision, verdict.exit_code, verdict.awaiting_sign_off) == (Decision.PASS, 0, False)
    assert (verdict.sign_off, verdict.reasons) == (sign_off, (REPORTED,))
    verdict = signed_off(awaiting(reasons=(REPORTED, AWAITING)), a_sign_off("reject", reason="too dear"))
    assert (verdict.decision, verdict.exit_code, verdict.awaiting_sign_off) == (Decision.FAIL, 1, False)
    first, second = verdict.reasons
    assert (first.rule, first.blocking, first.message) == (Rule.SIGN_OFF, True, "rejected by Ada: too dear")
    assert second == REPORTED


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_the_digest_of_a_verdict_is_the_same_before_and_after(decision: Any) -> None:
    seen = verdict_digest(awaiting())
    after = signed_off(awaiting(), a_sign_off(decision))
    assert verdict_digest(after) == seen
    assert verdict_digest(Verdict.model_validate_json(after.model_dump_json())) == seen


@pytest.mark.parametrize(
    "changes",
    [
        {"agent": "cli:another"},
        {"notes": ("by the way",)},
        {"reasons": (AWAITING, REPORTED)},
        {"revision": Revision(commit="another")},
        {"inputs": awaiting().inputs.model_copy(update={"tasks": "another"})},
    ],
)
def test_the_digest_is_of_all_else(changes: dict[str, Any]) -> None:
    assert verdict_digest(awaiting(**changes)) != verdict_digest(awaiting())


@pytest.mark.parametrize("seconds", [0, -1])
def test_nobody_waits_for_no_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        RunRequest(wait_for_sign_off=seconds)
    assert RunRequest().wait_for_sign_off is None
