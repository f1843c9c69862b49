"""Messages that quote texts from outside, and texts that are cut."""

import json
from collections.abc import Iterable
from typing import Any, Final

from passgate.tasks.errors import EXCERPT, Quote, Raw, RawText

TOO_DEEP: Final = "(nested too deep to show)"


def raw(*parts: Raw) -> RawText:
    """One message of several parts."""
    flat = [part.parts if isinstance(part, RawText) else (part,) for part in parts]
    return RawText(tuple(part for some in flat for part in some if part))


def raw_join(separator: str, parts: Iterable[Raw]) -> RawText:
    """One message of several, with a text between each two."""
    separated = [piece for part in parts for piece in (separator, part)]
    return raw(*separated[1:])


def quote(text: str, limit: int = EXCERPT) -> Quote:
    """Quote the beginning of a text in a message."""
    return Quote(text, limit)


def quote_end(text: str, limit: int = EXCERPT) -> Quote:
    """Quote the end of a text in a message, where programs say what went wrong, without surrounding blanks."""
    return Quote(text.strip(), limit, keep="end")


def quote_repr(text: str, limit: int) -> Quote:
    """Quote the beginning of a text in a message, in quotation marks."""
    return Quote(text, limit, "repr")


def quote_json(value: Any, limit: int = 500) -> Quote:
    """Quote a value as JSON in a message."""
    return Quote(value, limit, "json")


def cut(text: str, limit: int) -> str:
    """Return the beginning of a raw text, secrets included, with a note of how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} characters more)"


def cut_middle(text: str, limit: int) -> str:
    """Return the beginning and the end of a raw text: its title, and where programs say what went wrong."""
    if len(text) <= limit:
        return text
    head = limit // 20
    return f"{text[:head]}… ({len(text) - limit} characters left out) …{text[head - limit :]}"


def beginning(text: str, limit: int) -> str:
    """Return the beginning of a text before its secrets are known: it ends with a word, so that it has no half of a
    secret.
    """
    if len(text) <= limit:
        return text
    words = text[: limit + 1].rsplit(maxsplit=1)
    return words[0] if len(words) == 2 and len(words[0]) >= limit // 2 else text[:limit]


def end(text: str, limit: int) -> str:
    """Return the end of a text before its secrets are known: it begins with a word, as `beginning` ends with one."""
    if len(text) <= limit:
        return text
    words = text[-limit - 1 :].split(maxsplit=1)
    return words[1] if len(words) == 2 and len(words[1]) >= limit // 2 else text[-limit:]


def json_text(value: Any) -> str:
    """Return a raw value as JSON, whole."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return TOO_DEEP
