"""Credentials of known forms: private keys, keys of providers, tokens, passwords in URLs."""

import re
from collections.abc import Iterator
from typing import Final

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


def credentials_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the value of every credential in a text, kind by kind."""
    return ((kind, match[0]) for kind, pattern in CREDENTIAL_PATTERNS.items() for match in pattern.finditer(text))


def mask(value: str) -> str:
    """Return the first 4 characters of a secret, by which it can be recognised but not used."""
    return f"{value[:4]}****"


def masked(text: str) -> str:
    """Mask every credential in a text."""
    for pattern in CREDENTIAL_PATTERNS.values():
        text = pattern.sub(lambda match: mask(match[0]), text)
    return text
