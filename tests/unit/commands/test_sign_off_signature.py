"""The signature under a verdict that is signed off."""

from pathlib import Path

import pytest

from passgate.tasks.attestations.keys import verifying_key
from passgate.tasks.attestations.statement import read_envelope, signed_bytes
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.verdict import Decision
from tests.signing import write_keys
from tests.unit.releases import decide, files_of, verdict_of


def test_without_a_key_nothing_is_signed_and_the_statement_of_an_earlier_verdict_does_not_stay(run: RunStore) -> None:
    run.attestation.write_text("{}")
    decide(run)
    assert not run.attestation.exists()


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_with_a_key_the_verdict_is_signed_until_the_run_is_carried_on(
    run: RunStore, tmp_path: Path, decision: str
) -> None:
    private, public = write_keys(tmp_path)
    decide(run, decision, key_file=private)
    envelope = read_envelope(run.attestation.read_bytes())
    key = verifying_key(public.read_bytes())
    (signature,) = envelope.signatures
    assert signature.keyid == key.keyid
    assert key.has_signed(signed_bytes(envelope.payload), signature.sig)
    run.begin()
    assert (run.verdict.exists(), run.attestation.exists()) == (False, False)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("public.pem", "public.pem is no private key in PEM"),
        ("missing.pem", "missing.pem cannot be read: No such file"),
        ("large.pem", "large.pem is larger than 64 KiB"),
        (".", "is no regular file"),
    ],
)
def test_a_key_that_cannot_be_used_is_found_before_anything_is_written(
    run: RunStore, tmp_path: Path, name: str, problem: str
) -> None:
    before = files_of(run)
    write_keys(tmp_path)
    (tmp_path / "large.pem").write_bytes(b"x" * 70_000)
    with pytest.raises(UsageError, match=problem):
        decide(run, key_file=tmp_path / name)
    assert files_of(run) == before


def test_a_verdict_that_cannot_be_written_is_not_signed_off(
    run: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StorageError("the disk is full")

    before = files_of(run)
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "write_reports", fails)
        with pytest.raises(StorageError):
            decide(run, key_file=write_keys(tmp_path)[0])
    assert files_of(run) == before, "a signature that was left behind would verify on its own"
    assert verdict_of(run).awaiting_sign_off
    assert decide(run).decision is Decision.PASS
