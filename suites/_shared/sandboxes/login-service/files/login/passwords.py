"""Salted password hashes."""

import hashlib
import hmac
import os


def _digest(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**12, r=8, p=1)


def hash_password(password: str) -> str:
    """Return a new hash of the password as `salt$digest`, both in hexadecimal."""
    salt = os.urandom(16)
    return f"{salt.hex()}${_digest(password, salt).hex()}"


def matches(password: str, stored: str) -> bool:
    """Tell whether the password is the one behind the stored hash."""
    salt, _, digest = stored.partition("$")
    return hmac.compare_digest(_digest(password, bytes.fromhex(salt)), bytes.fromhex(digest))
