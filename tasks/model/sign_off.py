"""What a sign-off makes of a verdict that awaits one."""

from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.verdict import Decision, Reason, SignOff, Verdict

_CHANGED_BY_A_SIGN_OFF = frozenset({"decision", "exit_code", "awaiting_sign_off", "sign_off"})


def verdict_digest(verdict: Verdict) -> str:
    """SHA-256 of a verdict without all that a sign-off changes, so that it is the same before and after one."""
    # Without defaults, so that a field which a later passgate adds does not change the digests of earlier verdicts.
    plain = verdict.model_dump(mode="json", exclude=set(_CHANGED_BY_A_SIGN_OFF), exclude_defaults=True)
    reasons = [reason for reason in plain.pop("reasons", []) if reason["rule"] != Rule.SIGN_OFF]
    return digest_of(plain | {"reasons": reasons})


def signed_off(verdict: Verdict, sign_off: SignOff) -> Verdict:
    """The verdict after the sign-off that it has awaited: PASS where it is approved, FAIL where it is rejected."""
    reasons = tuple(reason for reason in verdict.reasons if reason.rule is not Rule.SIGN_OFF)
    decision = Decision.PASS
    if sign_off.decision == "reject":
        decision = Decision.FAIL
        message = f"rejected by {sign_off.by}: {sign_off.reason}"
        reasons = (Reason(rule=Rule.SIGN_OFF, blocking=True, message=message), *reasons)
    return verdict.model_copy(
        update={
            "decision": decision,
            "exit_code": decision.exit_code,
            "reasons": reasons,
            "awaiting_sign_off": False,
            "sign_off": sign_off,
        }
    )
