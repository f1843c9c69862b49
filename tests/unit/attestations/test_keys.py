"""Keys in PEM files, made by OpenSSL where it is installed."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from passgate.tasks.attestations.keys import signing_key, verifying_key
from passgate.tasks.attestations.reading import UnreadableError
from tests.signing import write_keys

MESSAGE = b"what is said"


def private_pem(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey, passphrase: str = "") -> bytes:
    how = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how)


def test_what_one_half_signs_the_other_knows_and_no_other_key(tmp_path: Path) -> None:
    private, public = (file.read_bytes() for file in write_keys(tmp_path))
    signature = signing_key(private, "").sign(MESSAGE)
    assert len(signature) == 64
    assert verifying_key(public).has_signed(MESSAGE, signature)
    assert not verifying_key(public).has_signed(MESSAGE + b".", signature)
    assert not verifying_key(public).has_signed(MESSAGE, signature[:-1])
    assert not verifying_key(public).has_signed(MESSAGE, b"")
    _, other = write_keys(tmp_path)
    assert not verifying_key(other.read_bytes()).has_signed(MESSAGE, signature)


def test_both_halves_have_one_name_which_is_the_digest_of_the_public_one(tmp_path: Path) -> None:
    private, public = (file.read_bytes() for file in write_keys(tmp_path))
    key = ed25519.Ed25519PrivateKey.generate()
    der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert signing_key(private_pem(key), "").keyid == hashlib.sha256(der).hexdigest()
    assert signing_key(private, "").keyid == verifying_key(public).keyid


def test_an_encrypted_key_wants_its_passphrase_and_another_none() -> None:
    pem = private_pem(ed25519.Ed25519PrivateKey.generate(), "open sesame")
    assert signing_key(pem, "open sesame").sign(MESSAGE)
    with pytest.raises(UnreadableError, match="is encrypted: set PASSGATE_SIGNING_PASSPHRASE"):
        signing_key(pem, "")
    with pytest.raises(UnreadableError, match="cannot be read with PASSGATE_SIGNING_PASSPHRASE"):
        signing_key(pem, "open barley")
    assert signing_key(private_pem(ed25519.Ed25519PrivateKey.generate()), "not needed").sign(MESSAGE)


NO_PRIVATE_KEY = "no private key in PEM: make one with `openssl genpkey"
NO_PUBLIC_KEY = "no public key in PEM: write its public half with `openssl pkey"


@pytest.mark.parametrize("pem", ["", "hello", "-----BEGIN {0} KEY-----\nAAAA\n-----END {0} KEY-----\n"])
def test_what_is_no_key_is_refused_with_the_remedy(pem: str) -> None:
    with pytest.raises(UnreadableError, match=NO_PRIVATE_KEY):
        signing_key(pem.format("PRIVATE").encode(), "")
    with pytest.raises(UnreadableError, match=NO_PUBLIC_KEY):
        verifying_key(pem.format("PUBLIC").encode())


def test_keys_of_another_kind_and_other_halves_are_refused(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(UnreadableError, match="no ed25519 key"):
        signing_key(private_pem(key), "")
    with pytest.raises(UnreadableError, match="no ed25519 key"):
        verifying_key(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    private, public = (file.read_bytes() for file in write_keys(tmp_path))
    with pytest.raises(UnreadableError, match="no private key"):
        signing_key(public, "")
    with pytest.raises(UnreadableError, match="is a private key, which is not for verifying: write its public half"):
        verifying_key(private)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs OpenSSL")
def test_keys_of_openssl_are_read_and_its_signatures_are_ours(tmp_path: Path) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    openssl("genpkey", "-algorithm", "ed25519", "-out", "key.pem")
    openssl("pkey", "-in", "key.pem", "-pubout", "-out", "public.pem")
    openssl("pkey", "-in", "key.pem", "-aes256", "-passout", "pass:sesame", "-out", "locked.pem")
    (tmp_path / "message").write_bytes(MESSAGE)
    openssl("pkeyutl", "-sign", "-inkey", "key.pem", "-rawin", "-in", "message", "-out", "signature")
    signature = (tmp_path / "signature").read_bytes()
    assert verifying_key((tmp_path / "public.pem").read_bytes()).has_signed(MESSAGE, signature)
    assert signing_key((tmp_path / "key.pem").read_bytes(), "").sign(MESSAGE) == signature
    assert signing_key((tmp_path / "locked.pem").read_bytes(), "sesame").sign(MESSAGE) == signature
