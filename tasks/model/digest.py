"""Digests of values."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any


def digest_of(value: Any) -> str:
    """SHA-256 of a JSON value in its canonical form, as hex."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def trials_digest(trials: Iterable[Mapping[str, Any]]) -> str:
    """The digest of trials in any order, each as its line of the journal has it: with the digest of its transcript."""
    return digest_of(sorted(trials, key=lambda trial: (str(trial["task_id"]), int(trial["trial"]))))
