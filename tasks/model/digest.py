"""Digests of values."""

import hashlib
import json
from typing import Any


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON value in its canonical form, as hex."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
