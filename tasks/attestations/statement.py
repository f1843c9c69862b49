"""Verdicts as in-toto statements (https://in-toto.io/Statement/v1) with the predicate for results of tests
(https://in-toto.io/attestation/test-result/v0.1), and the DSSE envelopes that they are signed in: a payload with the
signatures over it (https://github.com/secure-systems-lab/dsse, version 1). What the predicate has no field for is in
its `passgate`.
"""

import base64
import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

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
# Not securesystemslib (1.6), which is less strict: it takes base64 with stray bits, so that one payload has several
# spellings, a type that is no text, and any number of signatures, none included; and it refuses what DSSE allows, a
# signature without a key id.
IN_TOTO = "application/vnd.in-toto+json"
MAX_SIGNATURES = 64


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
    same = {name: getattr(verdict, name) for name in Claim.model_fields if name != "verdict_digest"}
    return Claim(**same, verdict_digest=verdict_digest(verdict))


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


@dataclass(frozen=True)
class Signature:
    """One signature. What it says of its key is not signed: a hint, and nothing more."""

    keyid: str
    sig: bytes


@dataclass(frozen=True)
class Envelope:
    """A payload, what kind of payload it is, and who has signed both."""

    payload: bytes
    payload_type: str
    signatures: tuple[Signature, ...]


def signed_bytes(payload: bytes, payload_type: str = IN_TOTO) -> bytes:
    """What a signature is over: PAE of the DSSE protocol, which no two pairs of payload and type share."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope_text(envelope: Envelope) -> str:
    """The envelope as JSON."""

    def in_base64(value: bytes) -> str:
        return base64.standard_b64encode(value).decode("ascii")

    signatures = [{"keyid": one.keyid, "sig": in_base64(one.sig)} for one in envelope.signatures]
    plain = {"payload": in_base64(envelope.payload), "payloadType": envelope.payload_type, "signatures": signatures}
    return json.dumps(plain, indent=2) + "\n"


def read_envelope(content: bytes) -> Envelope:
    """The envelope that a file holds; no signature has been looked at yet. Raises `UnreadableError`."""
    document = strict_json(content)
    if not isinstance(document, dict):
        raise UnreadableError("is no JSON object")
    signatures = document.get("signatures")
    if not isinstance(signatures, list) or not 0 < len(signatures) <= MAX_SIGNATURES:
        raise UnreadableError(f"has no list of 1 to {MAX_SIGNATURES} `signatures`")
    return Envelope(
        payload=_bytes(document, "payload"),
        payload_type=_text(document, "payloadType"),
        signatures=tuple(_signature(entry) for entry in signatures),
    )


def _signature(entry: Any) -> Signature:
    if not isinstance(entry, dict):
        raise UnreadableError("has a signature that is no JSON object")
    return Signature(keyid=_text(entry, "keyid") if "keyid" in entry else "", sig=_bytes(entry, "sig"))


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    # JSON can write half of a character, which `signed_bytes` could not encode.
    if not isinstance(value, str) or value.encode("utf-8", "ignore").decode("utf-8") != value:
        raise UnreadableError(f"has no text as `{name}`")
    return value


def _bytes(entry: dict[str, Any], name: str) -> bytes:
    """What a member says in base64, of either alphabet, as DSSE wants it. Bytes can be written in one way only."""
    text = _text(entry, name)
    for characters in (b"+/", b"-_"):
        with suppress(ValueError):
            value = base64.b64decode(text, characters)
            # Decoding passes over strange characters and stray bits: only what encoding gives back is accepted.
            if base64.b64encode(value, characters).decode("ascii") == text:
                return value
    raise UnreadableError(f"has a `{name}` that is not in base64")
