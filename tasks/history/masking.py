"""Declared secrets never reach a file."""

import json
import os
from collections.abc import Iterable

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

    def json(self, text: str) -> str:
        """A JSON document without secrets, also where JSON writes them with escapes."""
        for value in self._values:
            for written in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
                text = text.replace(written, MASK)
        return text
