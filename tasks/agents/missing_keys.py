"""The key that a program lacks, found in what it says at its end."""

import re
from collections.abc import Mapping
from typing import Final

_NAME: Final = r"([A-Z][A-Z0-9_]*_(?:KEY|TOKEN))"
_MISSING: Final = re.compile(
    rf"KeyError: ['\"]{_NAME}['\"]"
    rf"|\b{_NAME}\b[^\n]{{0,80}}?(?:not set|unset|unbound|missing|required|must be set|not found|(?:un|not )defined)"
    rf"|(?:set|setting|missing|export|provide|define)\b[^\n]{{0,80}}?\b{_NAME}\b"
)


def without_key(said: str, environment: Mapping[str, str]) -> str:
    """What a program says at its end, or in one line which of its keys is not set."""
    for match in _MISSING.finditer(said):
        name = next(filter(None, match.groups()))
        if not environment.get(name):
            return f"{name} is not set"
    return said
