"""Verdicts as in-toto statements (https://in-toto.io/Statement/v1) with the predicate for results of tests
(https://in-toto.io/attestation/test-result/v0.1). What that predicate has no field for is in its `passgate`.
"""

import hashlib
import json
import re

from pydantic import BaseModel, Field, ValidationError

from passgate.tasks.attestations.reading import UnreadableError, strict_json
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.verdict import Claim, Decision, Statement, Verdict, verdict_digest

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
VERDICT_FILE = "verdict.json"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def statement_of(verdict: Verdict, file: bytes) -> bytes:
    """The statement about a verdict, whose verdict.json holds these bytes."""
    revision = verdict.revision
    # With changes in the working folder it was not the commit that was tested.
    is_commit = not revision.dirty and _COMMIT.fullmatch(revision.commit) is not None
    of_file = {"name": VERDICT_FILE, "digest": {"sha256": hashlib.sha256(file).hexdigest()}}
    inputs = verdict.inputs.model_dump(exclude={"baseline_runs", "passgate_version"}).items()
    digests = {name: said for name, said in inputs if isinstance(said, str) and _DIGEST.fullmatch(said)}
    failed = _tasks(verdict, TaskState.FAILED)
    # A pass with failures that did not block is a warning; a sign-off that is awaited is a reason too, and no failure.
    is_warned = failed or any(reason.rule is not Rule.SIGN_OFF for reason in verdict.reasons)
    result = "FAILED" if verdict.decision is not Decision.PASS else "WARNED" if is_warned else "PASSED"
    statement = {
        "_type": STATEMENT,
        "subject": [*([{"digest": {"gitCommit": revision.commit}}] if is_commit else []), of_file],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": result,
            "configuration": [{"name": name, "digest": {"sha256": digest}} for name, digest in digests.items()],
            "passedTests": _tasks(verdict, TaskState.PASSED),
            "warnedTests": [],
            "failedTests": failed,
            "passgate": claim_of(verdict).model_dump(mode="json"),
        },
    }
    return json.dumps(statement, separators=(",", ":")).encode("ascii")


def _tasks(verdict: Verdict, state: TaskState) -> list[str]:
    return [task.name for task in verdict.measurement.tasks if task.state is state]


def claim_of(verdict: Verdict) -> Claim:
    """What a statement about a verdict says of it."""
    return Claim(
        gate=verdict.gate,
        run_id=verdict.run_id,
        agent=verdict.agent,
        decision=verdict.decision,
        judged_at=verdict.judged_at,
        revision=verdict.revision,
        sign_off=verdict.sign_off,
        verdict_digest=verdict_digest(verdict),
        inputs=verdict.inputs,
    )


# A statement as it is read. Pydantic passes over fields that are not known, as in-toto wants it.
class _Subject(BaseModel):
    name: str = ""
    digest: dict[str, str]


class _Predicate(BaseModel):
    passgate: Claim


class _Statement(BaseModel):
    type: str = Field(alias="_type")
    subject: tuple[_Subject, ...]
    predicate: _Predicate


def read_statement(payload: bytes) -> Statement:
    """The statement that a payload holds. Raises `UnreadableError` for one that says nothing of a verdict."""
    document = strict_json(payload)
    kind = document.get("predicateType") if isinstance(document, dict) else None
    if kind != TEST_RESULT:
        raise UnreadableError(f"says nothing of a verdict: its predicate is {kind!r}")
    try:
        read = _Statement.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnreadableError(f"holds no statement of this passgate: {where}: {first['msg']}") from error
    if read.type != STATEMENT:
        raise UnreadableError(f"holds no statement but {read.type!r}")
    files = [subject.digest.get("sha256", "") for subject in read.subject if subject.name == VERDICT_FILE]
    if len(files) != 1 or not _DIGEST.fullmatch(files[0]):
        raise UnreadableError(f"names no {VERDICT_FILE}, or several")
    return Statement(verdict_file=files[0], claim=read.predicate.passgate)
