"""Declared secrets never reach a file."""

import json
import os
from collections.abc import Iterable
from html import escape
from typing import Any

from passgate.tasks.model.run import RunContext

MASK = "***"
_LEAST_LENGTH = 6


class Masker:
    """Replaces the values of secrets in texts and in JSON."""

    def __init__(self, values: Iterable[str]) -> None:
        # The longest first: one secret may hold another.
        self._values = sorted({value for value in values if len(value) >= _LEAST_LENGTH}, key=len, reverse=True)

    @classmethod
    def of_environment(cls, names: Iterable[str]) -> "Masker":
        """The masker of the values that some environment variables have now."""
        return cls(os.environ.get(name, "") for name in names)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def html(self, text: str) -> str:
        """HTML without secrets, also where HTML writes them with character references."""
        for value in self._values:
            # The templates write quotes as numbers.
            written = escape(value).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
            text = text.replace(value, MASK).replace(written, MASK)
        return text

    def finds_in(self, content: bytes) -> bool:
        """Whether a file holds a secret as it is."""
        return any(value.encode("utf-8", "surrogateescape") in content for value in self._values)

    def json(self, text: str) -> str:
        """A JSON document whose texts and keys hold no secrets, also where JSON writes them with escapes."""
        if not any(written in text for value in self._values for written in _as_json(value)):
            return text
        # Replaced in the text itself, a secret could take half of an escape with it.
        return json.dumps(self._masked(json.loads(text)), ensure_ascii=False, separators=(",", ":"))

    def _masked(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.text(key): self._masked(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        return self.text(value) if isinstance(value, str) else value


def _as_json(value: str) -> tuple[str, str]:
    return json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]


def masker_of(context: RunContext) -> Masker:
    """The masker of the secrets that the run's policy declares."""
    return Masker.of_environment(context.policy.secrets)
