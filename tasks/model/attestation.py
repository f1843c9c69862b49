"""What a signed statement says of a verdict, and what is found when it is checked."""

from datetime import datetime
from enum import StrEnum

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.run import Revision
from passgate.tasks.model.task import GateName
from passgate.tasks.model.verdict import Decision, Inputs, SignOff


class Claim(Frozen):
    """The part of a statement that is passgate's own."""

    gate: GateName
    run_id: str
    agent: str
    decision: Decision
    judged_at: datetime
    revision: Revision
    sign_off: SignOff | None
    verdict_digest: str
    """`verdict_digest` of the verdict."""
    inputs: Inputs


class Statement(Frozen):
    """What was signed of a verdict."""

    verdict_file: str
    """SHA-256 of verdict.json, as hex."""
    claim: Claim


class Finding(StrEnum):
    """How a thing that a statement names compares with the thing itself."""

    OK = "ok"
    DIFFERS = "differs"
    NOT_HERE = "not here"


class Check(Frozen):
    """One thing that was looked at."""

    finding: Finding
    subject: str
    detail: str = ""


class Verification(Frozen):
    """What is left of an envelope after looking at everything it names."""

    checks: tuple[Check, ...]
    statement: Statement | None = None
    """`None` where no signature is by the given key, so that nobody is known to have said anything."""

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return all(check.finding is not Finding.DIFFERS for check in self.checks)
