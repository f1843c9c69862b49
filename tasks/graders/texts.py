"""Texts from outside: bounded looks, for what an agent wrote has no length that can be relied on, and credentials."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

EXCERPT = 2000  # Characters of foreign text in one message
WINDOW = 1_000_000  # Characters that a regular expression sees at once
OVERLAP = 10_000  # Characters that two neighbouring windows share, so that a match across the border is found
_TOO_DEEP: Final = "(nested too deep to show)"
_KEY: Final = r"[A-Za-z0-9_-]"
# Counts are bounded and beginnings are fixed, so that the time to search grows no faster than the text.
CREDENTIAL_PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "private key": re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"),
    "AWS access key id": re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    "GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
    "GitLab token": re.compile(rf"\bglpat-{_KEY}{{20,255}}"),
    "Slack token": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    "Slack webhook": re.compile(r"\bhooks\.slack\.com/services/T[A-Z0-9]{6,20}/B[A-Z0-9]{6,20}/[A-Za-z0-9]{16,64}"),
    "Stripe key": re.compile(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    "Google API key": re.compile(rf"\bAIza{_KEY}{{35}}"),
    "Anthropic key": re.compile(rf"\bsk-ant-{_KEY}{{20,255}}"),
    "OpenAI key": re.compile(rf"\bsk-(?:(?:proj|svcacct|admin)-{_KEY}{{20,255}}|[A-Za-z0-9]{{32,255}})"),
    "JSON web token": re.compile(rf"(?<![A-Za-z0-9_-])eyJ{_KEY}{{8,4000}}\.eyJ{_KEY}{{8,8000}}\.{_KEY}{{8,2000}}"),
    # A place-holder such as `***`, `<password>`, `$PASSWORD` or `{password}` gives nothing away.
    "password in a URL": re.compile(
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:(?![*x•]{1,100}@|[<$%{\[])[^\s/@\"'<>]{1,200}@[\w\[]"
    ),
}


def shorten(text: str, limit: int = EXCERPT) -> str:
    """The beginning of a text for a message, credentials masked, with a note of how much was left out."""
    # Masked first: half of a credential is no longer recognised as one.
    return cut(masked(text), limit)


def cut(text: str, limit: int) -> str:
    """The beginning of a text as it is, credentials included, with a note of how much was left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} characters more)"


def ending(text: str, limit: int = EXCERPT) -> str:
    """The end of a text for a message, where programs say what went wrong: credentials are masked, and blanks around
    it are dropped.
    """
    text = masked(text.strip())
    return text if len(text) <= limit else f"…{text[-limit:]}"


def as_json(value: Any, limit: int = 500) -> str:
    """A value as JSON for a message, credentials masked, at most `limit` characters and a note long."""
    try:
        return shorten(json_text(_masked_texts(value)), limit)
    except RecursionError:
        return _TOO_DEEP


def _masked_texts(value: Any) -> Any:
    # Before they are encoded: the `n` of an escaped line break hides where a credential begins.
    match value:
        case str():
            return masked(value)
        case dict():
            return {_masked_texts(key): _masked_texts(item) for key, item in value.items()}
        case list() | tuple():
            return [_masked_texts(item) for item in value]
    return value


def json_text(value: Any) -> str:
    """A value as JSON, whole and as it is."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return _TOO_DEEP


def found(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether a regular expression matches somewhere in a text, however long the text is.

    The text is searched in windows, because the time that some expressions take grows with the square of it.
    """
    compiled = _compiled(pattern, re.IGNORECASE if ignore_case else 0)
    starts = range(0, max(len(text), 1), WINDOW - OVERLAP)
    return any(compiled.search(text, start, start + WINDOW) for start in starts)


# The cache of `re` holds 512 expressions, and a suite of a thousand tasks has more that each of its trials asks for.
_compiled = lru_cache(maxsize=4096)(re.compile)


def credentials_in(text: str) -> Iterator[tuple[str, str]]:
    """The kind and the value of every credential in a text, kind by kind."""
    return ((kind, match[0]) for kind, pattern in CREDENTIAL_PATTERNS.items() for match in pattern.finditer(text))


def mask(value: str) -> str:
    """A secret such that it can be recognised and not used: its first 4 characters."""
    return f"{value[:4]}****"


def masked(text: str) -> str:
    """A text with every credential in it masked."""
    for pattern in CREDENTIAL_PATTERNS.values():
        text = pattern.sub(lambda match: mask(match[0]), text)
    return text
