"""The keys that verdicts are signed with: ed25519, in PEM files."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from passgate.tasks.attestations.reading import UnreadableError

# cryptography takes a tenth of a second to import, and most gates sign nothing: so it is imported where a key is used.
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MAX_KEY_BYTES = 64 * 1024
HOW_TO_MAKE = "make one with `openssl genpkey -algorithm ed25519 -out KEY.pem`"
HOW_TO_PUBLISH = "write its public half with `openssl pkey -in KEY.pem -pubout -out PUBLIC.pem`"


@dataclass(frozen=True)
class SigningKey:
    """The private half of a key."""

    _key: "Ed25519PrivateKey"

    @property
    def keyid(self) -> str:
        """How the key is known: that of its public half."""
        return VerifyingKey(self._key.public_key()).keyid

    def sign(self, message: bytes) -> bytes:
        """The signature over a message."""
        return self._key.sign(message)


@dataclass(frozen=True)
class VerifyingKey:
    """The public half of a key."""

    _key: "Ed25519PublicKey"

    @property
    def keyid(self) -> str:
        """How the key is known: SHA-256 of its SubjectPublicKeyInfo in DER, as hex."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return hashlib.sha256(self._key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

    def has_signed(self, message: bytes, signature: bytes) -> bool:
        """Whether a signature over a message is by this key."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def signing_key(pem: bytes, passphrase: str) -> SigningKey:
    """The private key of a PEM file; the passphrase is used where the file is encrypted. Raises `UnreadableError`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    encrypted = b"ENCRYPTED" in pem
    if encrypted and not passphrase:
        raise UnreadableError("is encrypted: set PASSGATE_SIGNING_PASSPHRASE")
    try:
        # A passphrase for a key that is not encrypted is an error to the library, and none to us.
        key = load_pem_private_key(pem, passphrase.encode() if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if encrypted:
            raise UnreadableError("cannot be read with PASSGATE_SIGNING_PASSPHRASE: is it the right one?") from error
        raise UnreadableError(f"is no private key in PEM: {HOW_TO_MAKE}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UnreadableError(f"is no ed25519 key: {HOW_TO_MAKE}")
    return SigningKey(key)


def verifying_key(pem: bytes) -> VerifyingKey:
    """The public key of a PEM file. Raises `UnreadableError`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if b"PRIVATE KEY" in pem:
        raise UnreadableError(f"is a private key, which is not for verifying: {HOW_TO_PUBLISH}")
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnreadableError(f"is no public key in PEM: {HOW_TO_PUBLISH}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise UnreadableError("is no ed25519 key, and verdicts are signed with no other")
    return VerifyingKey(key)
