"""Bounded looks at long texts: what an agent wrote has no length that can be relied on."""

import json
import re
from typing import Any

EXCERPT = 2000
"""Characters of foreign text in one message."""
WINDOW = 1_000_000
"""Characters that a regular expression sees at once."""
OVERLAP = 10_000
"""Characters that two neighbouring windows share, so that a match across the border is found."""


def shorten(text: str, limit: int = EXCERPT) -> str:
    """The beginning of a text, with a note of how much was left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} characters more)"


def ending(text: str, limit: int = EXCERPT) -> str:
    """The end of a text, where programs say what went wrong; blanks around it are dropped."""
    text = text.strip()
    return text if len(text) <= limit else f"…{text[-limit:]}"


def as_json(value: Any, limit: int = 500) -> str:
    """A value as JSON for a message, at most `limit` characters and a note long."""
    try:
        return shorten(json.dumps(value, ensure_ascii=False, default=str), limit)
    except RecursionError:
        return "(nested too deep to show)"


def found(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether a regular expression matches somewhere in a text, however long the text is.

    The text is searched in windows, because the time that some expressions take grows with the square of it.
    """
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    starts = range(0, max(len(text), 1), WINDOW - OVERLAP)
    return any(compiled.search(text, start, start + WINDOW) for start in starts)
