"""What is left of an envelope after looking at everything it names."""

import base64
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass
class Signed:
    """A run that was approved and signed, and the two halves of its key."""

    run: RunStore
    private: Path
    public: Path

    def look(self) -> Verification:
        return verify(self.run.attestation, self.public, Path.cwd())

    @property
    def findings(self) -> dict[str, CheckResult]:
        return findings(self.look())

    def detail(self, subject: str) -> str:
        return next(check.detail for check in self.look().checks if check.subject == subject)

    def resign(self, change: Change) -> None:
        """Sign a statement that has been changed, with the right key."""
        document = json.loads(base64.b64decode(json.loads(self.run.attestation.read_text())["payload"]))
        change(document)
        self.sign(json.dumps(document).encode())

    def resign_verdict(self, change: Change = lambda claim: None) -> None:
        """Sign a statement of the verdict that lies there now."""

        def follow(document: dict[str, Any]) -> None:
            document["subject"][-1]["digest"]["sha256"] = hashlib.sha256(self.run.verdict.read_bytes()).hexdigest()
            change(document["predicate"]["passgate"])

        self.resign(follow)

    def sign(self, payload: bytes, kind: str = IN_TOTO) -> None:
        private = signing_key(self.private.read_bytes(), "")
        signature = Signature(private.keyid, private.sign(signed_bytes(payload, kind)))
        self.run.attestation.write_text(envelope_text(Envelope(payload, kind, (signature,))))


def findings(verification: Verification) -> dict[str, CheckResult]:
    return {check.subject: check.finding for check in verification.checks}


@pytest.fixture
def signed(lay_out: LayOut, releases: Path) -> Signed:
    run = RunStore.of(next((lay_out("signed") / ".passgate/runs").iterdir()).name)
    return Signed(run, releases / "key.pem", releases / "public.pem")


def test_all_is_as_signed_in_the_envelope_or_the_folder_of_a_run(signed: Signed) -> None:
    verification = verify(signed.run.path, signed.public, Path.cwd())
    assert verification == signed.look()
    assert (findings(verification), verification.holds) == (ALL_OK, True)
    claim = verification.statement.claim
    assert (claim.decision, claim.sign_off.by) == (Decision.PASS, "Ada")
    (signed.run.path / "deep").mkdir()
    with pytest.raises(UsageError, match=r"deep/verdict.intoto.json is no signed verdict: it cannot be read"):
        verify(signed.run.path / "deep", signed.public, Path.cwd())


def test_a_signature_by_another_key_says_nothing(signed: Signed, tmp_path: Path) -> None:
    verification = verify(signed.run.attestation, write_keys(tmp_path)[1], Path.cwd())
    assert (findings(verification), verification.holds) == ({"signature": DIFFERS}, False)
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
def test_one_good_signature_is_enough_by_whatever_name(
    signed: Signed, change: Change, found: dict[str, CheckResult]
) -> None:
    change(plain := json.loads(signed.run.attestation.read_text()))
    signed.run.attestation.write_text(json.dumps(plain))
    assert (signed.findings, signed.look().holds) == (found, found == ALL_OK)
    assert plain["signatures"] != [SOMEBODY] or "somebody else" in signed.detail("signature")


def test_a_file_that_was_changed_differs(signed: Signed) -> None:
    content = signed.run.verdict.read_bytes()
    signed.run.verdict.write_bytes(content.replace(b"Ada", b"Bob"))
    assert signed.findings == {"signature": OK, "verdict.json": DIFFERS, "journal.jsonl": OK, "commit": OK}
    assert not signed.look().holds
    assert hashlib.sha256(content).hexdigest() in signed.detail("verdict.json")


def test_files_that_are_not_here_do_no_harm(signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "verdict.intoto.json").write_bytes(signed.run.attestation.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    verification = verify(Path("verdict.intoto.json"), signed.public, tmp_path)
    missing = dict.fromkeys(("verdict.json", "journal.jsonl", "commit"), NOT_HERE)
    assert (findings(verification), verification.holds) == ({"signature": OK, **missing}, True)


@pytest.mark.parametrize("name", ["verdict.json", "journal.jsonl"])
def test_what_never_ends_is_not_read(signed: Signed, name: str) -> None:
    (signed.run.path / name).unlink()
    os.mkfifo(signed.run.path / name)
    assert (signed.findings[name], signed.detail(name)) == (DIFFERS, "is no regular file")


def test_a_trial_that_is_gone_differs(signed: Signed) -> None:
    lines = signed.run.journal.read_bytes().splitlines(keepends=True)
    signed.run.journal.write_bytes(b"".join(lines[:-1]))
    assert signed.findings == ALL_OK | {"journal.jsonl": DIFFERS}
    signed.run.journal.write_bytes(b"".join(reversed(lines)))
    assert signed.look().holds, "their order is that in which they ended"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"output":"yes"', '"output":"no"', "line 1: the transcript of say-yes, trial 0"),
        ('"status":"passed"', '"status":"failed"', ""),
    ],
)
def test_a_trial_that_was_changed_differs(signed: Signed, old: str, new: str, said: str) -> None:
    signed.run.journal.write_text(signed.run.journal.read_text().replace(old, new, 1))
    assert signed.findings == ALL_OK | {"journal.jsonl": DIFFERS}
    assert said in signed.detail("journal.jsonl")


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
            lambda claim: claim["sign_off"].update(verdict_digest="0"),
            "verdict",
            DIFFERS,
            "sign_off, sign_off.verdict_d",
        ),
    ],
)
def test_what_a_statement_says_is_held_against_the_verdict_and_the_repository(
    signed: Signed, change: Change, subject: str, finding: CheckResult, said: str
) -> None:
    signed.resign(lambda document: change(document["predicate"]["passgate"]))
    assert signed.findings[subject] is finding
    assert said in signed.detail(subject)


def test_a_sign_off_of_another_verdict_differs(signed: Signed) -> None:
    """Both agree, but what was seen was not this verdict."""
    verdict = json.loads(signed.run.verdict.read_text())
    verdict["sign_off"]["verdict_digest"] = "0" * 64
    signed.run.verdict.write_text(json.dumps(verdict))
    signed.resign_verdict(lambda claim: claim["sign_off"].update(verdict_digest="0" * 64))
    assert signed.detail("verdict") == "says something else: sign_off.verdict_digest"


def test_a_verdict_of_another_version_is_taken_by_its_digest_alone(signed: Signed) -> None:
    signed.run.verdict.write_text('{"schema_version": 99}')
    signed.resign_verdict()
    assert signed.findings == ALL_OK | {"verdict": NOT_HERE}


def test_only_the_public_half_of_a_key_is_for_verifying(signed: Signed) -> None:
    with pytest.raises(UsageError, match="anyone could have made the signature"):
        verify(signed.run.attestation, None, Path.cwd())
    with pytest.raises(UsageError, match=r"key.pem is a private key, which is not for verifying"):
        verify(signed.run.attestation, signed.private, Path.cwd())


@pytest.mark.parametrize("content", [b"", b"{}", b'{"payload": "YQ=="}', b"\xff", b"<html>"])
def test_what_is_no_envelope_is_bad_input(signed: Signed, content: bytes) -> None:
    signed.run.attestation.write_bytes(content)
    with pytest.raises(UsageError, match="is no signed verdict: it "):
        signed.look()
    signed.run.attestation.unlink()
    with pytest.raises(UsageError, match="is no signed verdict: it cannot be read: No such file"):
        signed.look()


@pytest.mark.parametrize(
    ("payload", "kind", "message"),
    [
        (b'{"predicateType": "https://slsa.dev/provenance/v1"}', IN_TOTO, "is signed, but says nothing of a verdict"),
        (b"hello", "text/plain", "is signed, but holds no in-toto statement but 'text/plain'"),
        (b'{"_type": 1, "_type": 2}', IN_TOTO, "is signed, but says the key '_type' twice"),
    ],
)
def test_what_is_signed_but_no_verdict_is_bad_input(signed: Signed, payload: bytes, kind: str, message: str) -> None:
    signed.sign(payload, kind)
    with pytest.raises(UsageError, match=message):
        signed.look()
