"""The verdict in a line, and what a sign-off makes of it."""

from typing import Any

import pytest
from tests.signing import AWAITING, a_sign_off, awaiting
from tests.unit.reports.measurements import a_failed_task, a_task
from tests.unit.reports.verdicts import a_verdict

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Revision, RunRequest
from passgate.tasks.model.verdict import Decision, Reason, Verdict, signed_off, verdict_digest

MISSING = Reason(rule=Rule.MISSING_EVIDENCE, blocking=True, message="no trial")
REPORTED = Reason(rule=Rule.COST, blocking=False, message="dearer")
FAILED = Reason(rule=Rule.TASK_FAILED, blocking=True, message="wrong")


def test_a_pass_counts_the_failures_it_does_not_block_on() -> None:
    tasks = tuple(a_failed_task(task_id=f"t{number}") for number in range(2))
    verdict = a_verdict(Decision.PASS, (a_task(), *tasks))
    assert verdict.headline.endswith(" PASS: 5 of 9 trials passed, 2 failed tasks do not block")


@pytest.mark.parametrize(
    ("decision", "reasons", "waits", "says"),
    [
        (Decision.PASS, [REPORTED], False, "PASS: 3 of 3 trials passed"),
        (Decision.FAIL, [FAILED, REPORTED], False, "FAIL: 1 blocking reason"),
        (Decision.FAIL, [FAILED, FAILED, REPORTED], False, "FAIL: 2 blocking reasons (2 task_failed)"),
        (Decision.INCONCLUSIVE, [AWAITING, REPORTED], True, "INCONCLUSIVE: awaiting sign-off"),
        (Decision.INCONCLUSIVE, [AWAITING, MISSING], True, "INCONCLUSIVE: the evidence is not complete"),
        (Decision.INCONCLUSIVE, [MISSING], False, "INCONCLUSIVE: the evidence is not complete"),
    ],
)
def test_the_headline(decision: Decision, reasons: list[Reason], waits: bool, says: str) -> None:
    verdict = awaiting(decision=decision, reasons=tuple(reasons), awaiting_sign_off=waits)
    assert verdict.headline == f"release_candidate {says}"


def test_what_is_approved_or_rejected_says_by_whom() -> None:
    approved, rejected = (signed_off(awaiting(), a_sign_off(how, by="Ada")) for how in ("approve", "reject"))
    assert approved.headline == "release_candidate PASS: approved by Ada, 3 of 3 trials passed"
    assert rejected.headline == "release_candidate FAIL: rejected by Ada"
    more = rejected.model_copy(update={"reasons": (*rejected.reasons, FAILED)})
    assert more.headline == "release_candidate FAIL: rejected by Ada, 2 blocking reasons (1 sign_off, 1 task_failed)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ada\r\n ci_merge PASS: \t all\u2028", "Ada ci_merge PASS: all"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
    ],
)
def test_a_name_is_short_and_in_one_line(name: str, shown: str) -> None:
    assert a_sign_off(by=name).decided == f"approved by {shown}"


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
        *({"agent": "cli:another"}, {"notes": ("by the way",)}, {"reasons": (AWAITING, REPORTED)}),
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
