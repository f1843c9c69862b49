"""Verdicts as in-toto statements in DSSE envelopes, as others write them and as nobody should."""

import base64
import hashlib
import json
from typing import Any

import pytest

from passgate.tasks.attestations.reading import UnreadableError
from passgate.tasks.attestations.statement import (
    MAX_SIGNATURES,
    Envelope,
    Signature,
    read_envelope,
    read_statement,
    signed_bytes,
    statement_of,
)
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Revision
from passgate.tasks.model.verdict import Inputs, Reason, Verdict, signed_off, verdict_digest
from tests.builders import a_task, measured, trials_of
from tests.signing import AWAITING, COMMIT, a_sign_off, awaiting

FILE = b'{"the": "verdict"}\n'
SIGNED = signed_off(awaiting(), a_sign_off())


def said(verdict: Verdict = SIGNED) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(statement_of(verdict, FILE))
    return document


def test_the_fields_are_those_of_in_toto_and_it_is_about_the_commit_and_the_file() -> None:
    document = said()
    assert set(document) == {"_type", "subject", "predicateType", "predicate"}
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert set(document["predicate"]) == {
        *("result", "configuration", "passedTests", "warnedTests", "failedTests"),
        "passgate",
    }
    file = {"name": "verdict.json", "digest": {"sha256": hashlib.sha256(FILE).hexdigest()}}
    assert said()["subject"] == [{"digest": {"gitCommit": COMMIT}}, file]


@pytest.mark.parametrize(
    "revision",
    [Revision(), Revision(commit=COMMIT, dirty=True), Revision(commit="HEAD")],
    ids=["none", "dirty", "no id"],
)
def test_it_says_nothing_of_a_commit_that_was_not_what_was_tested(revision: Revision) -> None:
    subjects = said(signed_off(awaiting(revision=revision), a_sign_off()))["subject"]
    assert [subject.get("name") for subject in subjects] == ["verdict.json"]


def test_every_digest_of_the_inputs_is_a_part_of_the_configuration() -> None:
    inputs = awaiting().inputs
    expected = {name: getattr(inputs, name) for name in ("policy", "tasks", "graders", "trials", "agent", "prices")}
    assert {one["name"]: one["digest"]["sha256"] for one in said()["predicate"]["configuration"]} == expected
    more = inputs.model_copy(update={"baseline": "b" * 64, "quarantine": "a" * 64, "baseline_runs": ("run-1",)})
    names = [one["name"] for one in said(awaiting(inputs=more))["predicate"]["configuration"]]
    assert sorted(names) == sorted({*expected, "baseline", "quarantine"})
    bare = Inputs(policy="x", tasks="", graders="", trials="", agent="", prices="", passgate_version="1")
    assert said(awaiting(inputs=bare))["predicate"]["configuration"] == []


REPORTED = Reason(rule=Rule.COST, blocking=False, message="dearer")
FAILED = measured((a_task(), trials_of(a_task(), "ppf")))


@pytest.mark.parametrize(
    ("verdict", "result", "failed"),
    [
        pytest.param(SIGNED, "PASSED", [], id="approved"),
        pytest.param(signed_off(awaiting(), a_sign_off("reject")), "FAILED", [], id="rejected"),
        pytest.param(signed_off(awaiting(reasons=(REPORTED, AWAITING)), a_sign_off()), "WARNED", [], id="reported"),
        pytest.param(
            signed_off(awaiting(measurement=FAILED), a_sign_off()), "WARNED", ["golden/say-yes"], id="a failed task"
        ),
    ],
)
def test_the_result_of_a_verdict(verdict: Verdict, result: str, failed: list[str]) -> None:
    predicate = said(verdict)["predicate"]
    assert (predicate["result"], predicate["failedTests"]) == (result, failed)


def test_tasks_are_named_by_what_they_did() -> None:
    tasks = [a_task(task_id=name) for name in ("a", "b", "c")]
    groups = [(task, trials_of(task, trials)) for task, trials in zip(tasks, ("ppp", "fff", "eee"), strict=True)]
    predicate = said(awaiting(measurement=measured(*groups)))["predicate"]
    assert (predicate["passedTests"], predicate["failedTests"]) == (["golden/a"], ["golden/b"])


def test_what_passgate_says_reads_back_in_any_language() -> None:
    statement = read_statement(statement_of(SIGNED, FILE))
    assert statement.verdict_file == hashlib.sha256(FILE).hexdigest()
    claim = statement.claim
    assert (claim.gate, claim.run_id, claim.agent) == (SIGNED.gate, SIGNED.run_id, SIGNED.agent)
    assert (claim.decision, claim.sign_off, claim.inputs) == (SIGNED.decision, SIGNED.sign_off, SIGNED.inputs)
    assert (claim.revision, claim.judged_at) == (SIGNED.revision, SIGNED.judged_at)
    assert claim.verdict_digest == verdict_digest(SIGNED)
    signed = signed_off(awaiting(agent="cli:Zoë 鳥"), a_sign_off(by="Zoë \u2028", reason="gut\n\x1b[31m"))
    payload = statement_of(signed, FILE)
    assert payload.isascii()
    assert read_statement(payload).claim.sign_off == signed.sign_off


def test_fields_that_are_not_known_are_passed_over() -> None:
    document = said()
    document["more"] = document["predicate"]["more"] = 1
    document["subject"][0]["uri"] = "https://example.com"
    assert read_statement(json.dumps(document).encode()).claim.run_id == SIGNED.run_id


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ("predicateType",),
            "https://slsa.dev/provenance/v1",
            "says nothing of a verdict: its predicate is 'https://sl",
        ),
        (("predicateType",), None, "says nothing of a verdict"),
        (("_type",), "https://in-toto.io/Statement/v0.1", "no statement but"),
        (("predicate",), {}, "no statement of this passgate: predicate.passgate"),
        (("predicate", "passgate", "gate"), "my_gate", "predicate.passgate.gate"),
        (("subject",), [], "names no verdict.json, or several"),
        (("subject",), [{"name": "verdict.json", "digest": {"md5": "0"}}], "names no verdict.json"),
        (("subject",), [{"name": "verdict.json", "digest": {"sha256": "a" * 64}}] * 2, "or several"),
    ],
)
def test_what_is_no_statement_on_a_verdict_is_refused(path: tuple[str, ...], value: Any, message: str) -> None:
    document = said()
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(UnreadableError, match=message):
        read_statement(json.dumps(document).encode())


PLAIN: dict[str, Any] = {
    "payload": "aGVsbG8gd29ybGQ=",
    "payloadType": "http://example.com/HelloWorld",
    "signatures": [{"keyid": "k", "sig": "c2ln"}],
}


def read(**changes: Any) -> Envelope:
    return read_envelope(json.dumps({**PLAIN, **changes}).encode())


def test_what_is_signed_is_that_of_the_specification() -> None:
    """The example of DSSE's protocol.md."""
    signed = signed_bytes(b"hello world", "http://example.com/HelloWorld")
    assert signed == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert signed_bytes("ö".encode(), "ü") == "DSSEv1 2 ü 2 ö".encode()


def test_an_envelope_is_read_in_either_alphabet_with_what_it_may_lack_and_have() -> None:
    assert read() == Envelope(b"hello world", "http://example.com/HelloWorld", (Signature("k", b"sig"),))
    value = b"\xfb\xff\xfe"
    assert base64.urlsafe_b64encode(value) != base64.standard_b64encode(value)
    assert read(payload=base64.urlsafe_b64encode(value).decode()).payload == value
    assert read(signatures=[{"sig": "c2ln", "cert": 1}], more=2).signatures == (Signature("", b"sig"),)
    assert len(read(signatures=[{"sig": "YQ=="}] * MAX_SIGNATURES).signatures) == MAX_SIGNATURES


@pytest.mark.parametrize(
    "text", ["aGVsbG8", "aGVs bG8=", "aGVsbG8=\n", "aGVsbG9=", "aGVsbG8==", "=", "ä", "+/-_", "\ud800"]
)
def test_bytes_are_written_in_base64_and_in_one_way_only(text: str) -> None:
    with pytest.raises(UnreadableError, match="`payload`"):
        read(payload=text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[]", "is no JSON object"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"payload": NaN}', "NaN is no number"),
        (b"1" * 5000, "is no JSON"),
        (b'{"payload": "YQ==", "payload": "Yg=="}', "says the key 'payload' twice"),
        (b'{"signatures": [{"sig": "YQ==", "sig": "Yg=="}]}', "says the key 'sig' twice"),
        (b'{"signatures": "YQ=="}', "`signatures`"),
    ],
)
def test_what_is_no_envelope_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read_envelope(content)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"signatures": []}, "list of 1 to"),
        ({"signatures": [{"sig": "YQ=="}] * (MAX_SIGNATURES + 1)}, "list of 1 to"),
        ({"signatures": ["YQ=="]}, "a signature that is no JSON object"),
        ({"signatures": [{"keyid": "k"}]}, "`sig`"),
        ({"signatures": [{"sig": "YQ==", "keyid": 1}]}, "`keyid`"),
        ({"payload": None}, "`payload`"),
        ({"payloadType": 7}, "`payloadType`"),
    ],
)
def test_every_part_has_to_be_there(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read(**changes)
