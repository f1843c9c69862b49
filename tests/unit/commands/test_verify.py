"""What is left of an envelope after looking at everything it names."""

import base64
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.attestations.keys import signing_key
from passgate.tasks.attestations.statement import IN_TOTO, Envelope, Signature, envelope_text, signed_bytes
from passgate.tasks.commands.verify import verify
from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.verdict import CheckResult, Decision, Verification
from tests.signing import COMMIT, write_keys
from tests.unit.commands.conftest import LayOut

OK, DIFFERS, NOT_HERE = CheckResult.OK, CheckResult.DIFFERS, CheckResult.NOT_HERE
Change = Callable[[dict[str, Any]], object]
ALL_OK = {"signature": OK, "verdict.json": OK, "verdict": OK, "journal.jsonl": OK, "commit": OK}


@pytest.fixture
def keys(releases: Path) -> tuple[Path, Path]:
    return releases / "key.pem", releases / "public.pem"


@pytest.fixture
def run(lay_out: LayOut) -> RunStore:
    """A run that was approved and signed."""
    return RunStore.of(next((lay_out("signed") / ".passgate/runs").iterdir()).name)


@pytest.fixture
def look(run: RunStore, keys: tuple[Path, Path]) -> Callable[[], Verification]:
    return lambda: verify(run.attestation, keys[1], Path.cwd())


def findings(verification: Verification) -> dict[str, CheckResult]:
    return {check.subject: check.finding for check in verification.checks}


def detail(verification: Verification, subject: str) -> str:
    return next(check.detail for check in verification.checks if check.subject == subject)


def resigned(run: RunStore, key: Path, change: Change) -> None:
    """Sign a statement that has been changed, with the right key."""
    plain = json.loads(run.attestation.read_text())
    document = json.loads(base64.b64decode(plain["payload"]))
    change(document)
    signed(run, key, json.dumps(document).encode())


def signed(run: RunStore, key: Path, payload: bytes, kind: str = IN_TOTO) -> None:
    private = signing_key(key.read_bytes(), "")
    signature = Signature(private.keyid, private.sign(signed_bytes(payload, kind)))
    run.attestation.write_text(envelope_text(Envelope(payload, kind, (signature,))))


def test_all_is_as_signed(look: Callable[[], Verification]) -> None:
    verification = look()
    assert findings(verification) == ALL_OK
    assert verification.holds
    assert verification.statement is not None
    claim = verification.statement.claim
    assert claim.decision is Decision.PASS
    assert claim.sign_off is not None
    assert claim.sign_off.by == "Ada"


def test_the_folder_of_a_run_stands_for_the_envelope_in_it(run: RunStore, keys: tuple[Path, Path]) -> None:
    assert verify(run.path, keys[1], Path.cwd()) == verify(run.attestation, keys[1], Path.cwd())
    (run.path / "deep").mkdir()
    with pytest.raises(UsageError, match=r"deep/verdict.intoto.json is no signed verdict: it cannot be read"):
        verify(run.path / "deep", keys[1], Path.cwd())


def test_a_signature_by_another_key_says_nothing(run: RunStore, tmp_path: Path) -> None:
    _, other = write_keys(tmp_path)
    verification = verify(run.attestation, other, Path.cwd())
    assert findings(verification) == {"signature": DIFFERS}
    assert not verification.holds
    assert verification.statement is None


SOMEBODY = {"keyid": "somebody else", "sig": base64.b64encode(bytes(64)).decode()}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda plain: plain["signatures"][0].update(keyid="somebody else"), ALL_OK),
        (lambda plain: plain.update(signatures=[SOMEBODY, *plain["signatures"], SOMEBODY]), ALL_OK),
        (lambda plain: plain.update(signatures=[SOMEBODY]), {"signature": DIFFERS}),
        (lambda plain: plain.update(payloadType="application/json"), {"signature": DIFFERS}),
    ],
    ids=["another name of the key", "one good signature of several", "no good signature", "another type"],
)
def test_a_good_signature_of_the_payload_and_its_type_is_enough_by_whatever_name(
    run: RunStore, look: Callable[[], Verification], change: Change, found: dict[str, CheckResult]
) -> None:
    plain = json.loads(run.attestation.read_text())
    change(plain)
    run.attestation.write_text(json.dumps(plain))
    assert findings(look()) == found
    assert look().holds is (found == ALL_OK)
    assert plain["signatures"] != [SOMEBODY] or "somebody else" in detail(look(), "signature")


def test_a_file_that_was_changed_differs(run: RunStore, look: Callable[[], Verification]) -> None:
    content = run.verdict.read_bytes()
    run.verdict.write_bytes(content.replace(b"Ada", b"Bob"))
    assert findings(look()) == {"signature": OK, "verdict.json": DIFFERS, "journal.jsonl": OK, "commit": OK}
    assert not look().holds
    assert hashlib.sha256(content).hexdigest() in detail(look(), "verdict.json")


def test_files_that_are_not_here_are_named_and_do_no_harm(
    run: RunStore, tmp_path: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "verdict.intoto.json").write_bytes(run.attestation.read_bytes())
    monkeypatch.chdir(alone)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    verification = verify(Path("verdict.intoto.json"), keys[1], alone)
    assert findings(verification) == {
        "signature": OK,
        "verdict.json": NOT_HERE,
        "journal.jsonl": NOT_HERE,
        "commit": NOT_HERE,
    }
    assert verification.holds


@pytest.mark.parametrize("name", ["verdict.json", "journal.jsonl"])
def test_what_never_ends_is_not_read(run: RunStore, look: Callable[[], Verification], name: str) -> None:
    (run.path / name).unlink()
    os.mkfifo(run.path / name)
    verification = look()
    assert findings(verification)[name] is DIFFERS
    assert detail(verification, name) == "is no regular file"


def test_a_trial_that_is_gone_differs(run: RunStore, look: Callable[[], Verification]) -> None:
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join(lines[:-1]))
    assert findings(look()) == ALL_OK | {"journal.jsonl": DIFFERS}
    run.journal.write_bytes(b"".join(reversed(lines)))
    assert look().holds, "their order is that in which they ended"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"output":"yes"', '"output":"no"', "line 1: the transcript of say-yes, trial 0"),
        ('"status":"passed"', '"status":"failed"', ""),
    ],
)
def test_a_trial_that_was_changed_differs(
    run: RunStore, look: Callable[[], Verification], old: str, new: str, said: str
) -> None:
    run.journal.write_text(run.journal.read_text().replace(old, new, 1))
    assert findings(look()) == ALL_OK | {"journal.jsonl": DIFFERS}
    assert said in detail(look(), "journal.jsonl")


@pytest.mark.parametrize(
    ("change", "subject", "finding", "said"),
    [
        (lambda claim: claim["revision"].update(commit=COMMIT), "commit", NOT_HERE, COMMIT),
        (lambda claim: claim["revision"].update(commit="HEAD"), "commit", NOT_HERE, ""),
        (lambda claim: claim["revision"].update(commit="--help"), "commit", NOT_HERE, ""),
        (lambda claim: claim["revision"].update(dirty=True), "commit", OK, "had changes that are in no commit"),
        (lambda claim: claim.update(decision="FAIL"), "verdict", DIFFERS, "decision"),
        (lambda claim: claim.update(gate="nightly"), "verdict", DIFFERS, "gate"),
        (lambda claim: claim["inputs"].update(tasks="another"), "verdict", DIFFERS, "inputs"),
        (lambda claim: claim["sign_off"].update(by="Bob"), "verdict", DIFFERS, "sign_off"),
        (lambda claim: claim.update(sign_off=None), "verdict", DIFFERS, "sign_off"),
        (lambda claim: claim.update(verdict_digest="0" * 64), "verdict", DIFFERS, "verdict_digest"),
        (
            lambda claim: claim["sign_off"].update(verdict_digest="0" * 64),
            "verdict",
            DIFFERS,
            "sign_off, sign_off.verdict_digest",
        ),
    ],
)
def test_what_a_statement_says_is_held_against_the_verdict_and_the_repository(
    run: RunStore,
    keys: tuple[Path, Path],
    look: Callable[[], Verification],
    change: Change,
    subject: str,
    finding: CheckResult,
    said: str,
) -> None:
    resigned(run, keys[0], lambda document: change(document["predicate"]["passgate"]))
    assert findings(look())[subject] is finding
    assert said in detail(look(), subject)


def sign_verdict_as_it_is(run: RunStore, key: Path, change: Change = lambda claim: None) -> None:
    """Sign a statement of the verdict that lies there now."""

    def follow(document: dict[str, Any]) -> None:
        document["subject"][-1]["digest"]["sha256"] = hashlib.sha256(run.verdict.read_bytes()).hexdigest()
        change(document["predicate"]["passgate"])

    resigned(run, key, follow)


def test_a_sign_off_of_another_verdict_differs(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification]
) -> None:
    """Both agree, but what was seen was not this verdict."""
    verdict = json.loads(run.verdict.read_text())
    verdict["sign_off"]["verdict_digest"] = "0" * 64
    run.verdict.write_text(json.dumps(verdict))
    sign_verdict_as_it_is(run, keys[0], lambda claim: claim["sign_off"].update(verdict_digest="0" * 64))
    assert detail(look(), "verdict") == "says something else: sign_off.verdict_digest"


def test_a_verdict_of_another_version_is_taken_by_its_digest_alone(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification]
) -> None:
    run.verdict.write_text('{"schema_version": 99}')
    sign_verdict_as_it_is(run, keys[0])
    assert findings(look()) == ALL_OK | {"verdict": NOT_HERE}


def test_only_the_public_half_of_a_key_is_for_verifying(run: RunStore, keys: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="anyone could have made the signature"):
        verify(run.attestation, None, Path.cwd())
    with pytest.raises(UsageError, match=r"key.pem is a private key, which is not for verifying"):
        verify(run.attestation, keys[0], Path.cwd())


@pytest.mark.parametrize("content", [b"", b"{}", b'{"payload": "YQ=="}', b"\xff", b"<html>"])
def test_what_is_no_envelope_is_bad_input(run: RunStore, look: Callable[[], Verification], content: bytes) -> None:
    run.attestation.write_bytes(content)
    with pytest.raises(UsageError, match="is no signed verdict: it "):
        look()
    run.attestation.unlink()
    with pytest.raises(UsageError, match="is no signed verdict: it cannot be read: No such file"):
        look()


@pytest.mark.parametrize(
    ("payload", "kind", "message"),
    [
        (b'{"predicateType": "https://slsa.dev/provenance/v1"}', IN_TOTO, "is signed, but says nothing of a verdict"),
        (b"hello", "text/plain", "is signed, but holds no in-toto statement but 'text/plain'"),
        (b'{"_type": 1, "_type": 2}', IN_TOTO, "is signed, but says the key '_type' twice"),
    ],
)
def test_what_is_signed_but_no_verdict_is_bad_input(
    run: RunStore,
    keys: tuple[Path, Path],
    look: Callable[[], Verification],
    payload: bytes,
    kind: str,
    message: str,
) -> None:
    signed(run, keys[0], payload, kind)
    with pytest.raises(UsageError, match=message):
        look()
