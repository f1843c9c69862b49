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
from passgate.tasks.commands.sign_off import sign_off
from passgate.tasks.commands.verify import verify
from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.verdict import CheckResult, Decision, Verification
from tests.signing import COMMIT, write_keys
from tests.unit.releases import committed_run, release_repository

OK, DIFFERS, NOT_HERE = CheckResult.OK, CheckResult.DIFFERS, CheckResult.NOT_HERE
ALL_OK = {"signature": OK, "verdict.json": OK, "verdict": OK, "journal.jsonl": OK, "commit": OK}


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return write_keys(tmp_path)


@pytest.fixture
def run(tmp_path: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A run that was approved and signed."""
    run = committed_run(release_repository(tmp_path / "project", monkeypatch))
    sign_off(run.path.name, by="Ada", decision="approve", reason="read it", key_file=keys[0])
    return run


@pytest.fixture
def look(run: RunStore, keys: tuple[Path, Path]) -> Callable[[], Verification]:
    return lambda: verify(run.attestation, keys[1], Path.cwd())


def findings(verification: Verification) -> dict[str, CheckResult]:
    return {check.subject: check.finding for check in verification.checks}


def detail(verification: Verification, subject: str) -> str:
    return next(check.detail for check in verification.checks if check.subject == subject)


def resigned(run: RunStore, key: Path, change: Callable[[dict[str, Any]], None]) -> None:
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


def test_the_name_that_a_signature_gives_its_key_does_not_count(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification]
) -> None:
    plain = json.loads(run.attestation.read_text())
    plain["signatures"][0]["keyid"] = "somebody else"
    run.attestation.write_text(json.dumps(plain))
    assert look().holds
    plain["signatures"][0]["sig"] = base64.b64encode(bytes(64)).decode()
    run.attestation.write_text(json.dumps(plain))
    assert findings(look()) == {"signature": DIFFERS}
    assert "somebody else" in detail(look(), "signature")


def test_one_good_signature_of_several_is_enough(run: RunStore, look: Callable[[], Verification]) -> None:
    plain = json.loads(run.attestation.read_text())
    bad = {"keyid": "x", "sig": base64.b64encode(b"bad").decode()}
    plain["signatures"] = [bad, *plain["signatures"], bad]
    run.attestation.write_text(json.dumps(plain))
    assert look().holds


def test_a_file_that_was_changed_differs(run: RunStore, look: Callable[[], Verification]) -> None:
    content = run.verdict.read_bytes()
    run.verdict.write_bytes(content.replace(b"Ada", b"Bob"))
    verification = look()
    assert findings(verification) == {"signature": OK, "verdict.json": DIFFERS, "journal.jsonl": OK, "commit": OK}
    assert not verification.holds
    assert hashlib.sha256(content).hexdigest() in detail(verification, "verdict.json")


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


def test_a_transcript_that_was_changed_differs(run: RunStore, look: Callable[[], Verification]) -> None:
    run.journal.write_text(run.journal.read_text().replace('"output":"yes"', '"output":"no"', 1))
    assert findings(look()) == ALL_OK | {"journal.jsonl": DIFFERS}
    assert "line 1: the transcript of say-yes, trial 0" in detail(look(), "journal.jsonl")


def test_a_trial_that_was_marked_otherwise_differs(run: RunStore, look: Callable[[], Verification]) -> None:
    run.journal.write_text(run.journal.read_text().replace('"status":"passed"', '"status":"failed"', 1))
    assert findings(look()) == ALL_OK | {"journal.jsonl": DIFFERS}


def test_a_commit_that_is_not_here_is_said(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification]
) -> None:
    resigned(run, keys[0], lambda document: document["predicate"]["passgate"]["revision"].update(commit=COMMIT))
    assert findings(look())["commit"] is NOT_HERE
    assert COMMIT in detail(look(), "commit")


@pytest.mark.parametrize("name", ["HEAD", "--help", "main"])
def test_only_the_id_of_a_commit_is_one(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification], name: str
) -> None:
    resigned(run, keys[0], lambda document: document["predicate"]["passgate"]["revision"].update(commit=name))
    assert findings(look())["commit"] is NOT_HERE


def test_changes_in_no_commit_are_said(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification]
) -> None:
    resigned(run, keys[0], lambda document: document["predicate"]["passgate"]["revision"].update(dirty=True))
    assert detail(look(), "commit").endswith("but what was tested had changes that are in no commit")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda claim: claim.update(decision="FAIL"), "decision"),
        (lambda claim: claim.update(gate="nightly"), "gate"),
        (lambda claim: claim["inputs"].update(tasks="another"), "inputs"),
        (lambda claim: claim["sign_off"].update(by="Bob"), "sign_off"),
        (lambda claim: claim.update(sign_off=None), "sign_off"),
        (lambda claim: claim.update(verdict_digest="0" * 64), "verdict_digest"),
        (lambda claim: claim["sign_off"].update(verdict_digest="0" * 64), "sign_off, sign_off.verdict_digest"),
    ],
)
def test_a_statement_that_does_not_say_what_its_verdict_says_differs(
    run: RunStore,
    keys: tuple[Path, Path],
    look: Callable[[], Verification],
    change: Callable[[dict[str, Any]], None],
    named: str,
) -> None:
    resigned(run, keys[0], lambda document: change(document["predicate"]["passgate"]))
    verification = look()
    assert findings(verification)["verdict"] is DIFFERS
    assert named in detail(verification, "verdict")


def test_a_sign_off_of_another_verdict_differs(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification]
) -> None:
    """Both agree, but what was seen was not this verdict."""
    verdict = json.loads(run.verdict.read_text())
    verdict["sign_off"]["verdict_digest"] = "0" * 64
    run.verdict.write_text(json.dumps(verdict))

    def follow(document: dict[str, Any]) -> None:
        document["subject"][-1]["digest"]["sha256"] = hashlib.sha256(run.verdict.read_bytes()).hexdigest()
        document["predicate"]["passgate"]["sign_off"]["verdict_digest"] = "0" * 64

    resigned(run, keys[0], follow)
    assert detail(look(), "verdict") == "says something else: sign_off.verdict_digest"


def test_a_verdict_of_another_version_is_taken_by_its_digest_alone(
    run: RunStore, keys: tuple[Path, Path], look: Callable[[], Verification]
) -> None:
    run.verdict.write_text('{"schema_version": 99}')

    def follow(document: dict[str, Any]) -> None:
        document["subject"][-1]["digest"]["sha256"] = hashlib.sha256(run.verdict.read_bytes()).hexdigest()

    resigned(run, keys[0], follow)
    assert findings(look()) == ALL_OK | {"verdict": NOT_HERE}


def test_without_a_key_nothing_is_verified(run: RunStore) -> None:
    with pytest.raises(UsageError, match="anyone could have made the signature"):
        verify(run.attestation, None, Path.cwd())


def test_the_private_half_is_not_for_verifying(run: RunStore, keys: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match=r"key.pem is a private key, which is not for verifying"):
        verify(run.attestation, keys[0], Path.cwd())


@pytest.mark.parametrize("content", [b"", b"{}", b'{"payload": "YQ=="}', b"\xff", b"<html>"])
def test_what_is_no_envelope_is_bad_input(run: RunStore, look: Callable[[], Verification], content: bytes) -> None:
    run.attestation.write_bytes(content)
    with pytest.raises(UsageError, match="is no signed verdict: it "):
        look()


def test_an_envelope_that_is_not_there_is_bad_input(run: RunStore, look: Callable[[], Verification]) -> None:
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


def test_the_type_of_the_payload_is_signed_too(run: RunStore, look: Callable[[], Verification]) -> None:
    plain = json.loads(run.attestation.read_text())
    run.attestation.write_text(json.dumps(plain | {"payloadType": "application/json"}))
    assert findings(look()) == {"signature": DIFFERS}
