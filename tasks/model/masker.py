"""Secrets never leave a trial: one place masks, then cuts, then encodes."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import product
from typing import Any, Final, NewType
from urllib.parse import quote, quote_plus

from passgate.tasks.errors import EXCERPT, Quote, Raw, RawText
from passgate.tasks.model import credentials
from passgate.tasks.model.quotes import TOO_DEEP, cut, cut_middle, json_text

MASK: Final = "***"
LEAST_LENGTH: Final = 6  # Characters of a secret: shorter values occur in ordinary text
LEAST_LINE: Final = 8  # Characters of a line of a secret that has several
LONGEST_MESSAGE: Final = 3 * EXCERPT

_FOR_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_ESCAPE: Final = re.compile("%[0-9A-F]{2}")

MaskedText = NewType("MaskedText", str)
"""A text that a `Masker` has rendered."""


class Masker:
    """Replaces secrets in texts and in JSON, in every form that programs commonly write them in."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for part in _parts(value) for form in _forms(part)}
        # The longest first: one secret may hold another.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._in_json = sorted({written for form in self._forms for written in _as_json(form)})

    def render(self, message: Raw, limit: int = LONGEST_MESSAGE) -> MaskedText:
        """Return a message without secrets and known credentials, of at most `limit` characters and a note."""
        parts = message.parts if isinstance(message, RawText) else (message,)
        return MaskedText(cut(self._without_credentials("".join(map(self._rendered, parts))), limit))

    def _rendered(self, part: str | Quote) -> str:
        match part:
            case str():
                return part
            case Quote(value=RawText() | Quote() as message, limit=limit):
                return self.render(message, limit)
            case Quote(value=value, limit=limit, form="json"):
                try:
                    return cut(json_text(_each_text(value, self._without_credentials)), limit)
                except RecursionError:
                    return TOO_DEEP
            case Quote(value=value, limit=limit, keep="end"):
                text = self._without_credentials(value)
                return text if len(text) <= limit else f"…{text[-limit:]}"
            case Quote(value=value, limit=limit, keep="both"):
                return cut_middle(self._without_credentials(value), limit)
        text = cut(self._without_credentials(part.value), part.limit)
        return repr(text) if part.form == "repr" else text

    def _without_credentials(self, text: str) -> str:
        return credentials.masked(self.text(text))

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def json(self, text: str) -> str:
        """Return a JSON document without secrets in its texts and keys."""
        if not any(written in text for written in self._in_json):
            return text
        # Replaced in the text itself, a secret could take half of an escape with it.
        document = _each_text(json.loads(text), self.text)
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

    def finds_in(self, content: bytes) -> bool:
        """Whether a file holds a secret."""
        return any(form.encode("utf-8", "surrogateescape") in content for form in self._forms)


UNMASKED: Final = Masker(())
"""Renders what stays within a trial or on the terminal of whoever has the secrets."""


def _parts(value: str) -> Iterator[str]:
    """Return a secret, and each of its lines if it has several, because texts are shown line by line."""
    lines = value.splitlines()
    wholes = (value, value.strip()) if len(value.strip()) >= LEAST_LENGTH else ()
    yield from wholes
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= LEAST_LINE)


def _forms(value: str) -> Iterator[str]:
    """Return a secret as it is, and in the forms of JSON, Python's `repr`, URLs, HTML and base64; each also in JSON, as
    where a program is given a transcript and prints it.
    """
    for form in (value, *_as_json(value), *_reprs(value), *_in_urls(value), *_in_html(value)):
        yield from (form, *_as_json(form))
    yield from _base64(value.encode("utf-8", "replace"))


def _reprs(value: str) -> Iterator[str]:
    in_quotes = repr(value)[1:-1].replace("\\'", "'")
    # Which quotation marks `repr` escapes depends on what stands beside the secret.
    yield from (in_quotes, in_quotes.replace("'", "\\'"))


def _in_urls(value: str) -> Iterator[str]:
    sendable = value.encode("utf-8", "replace")
    for written in (quote(sendable), quote(sendable, safe=""), quote_plus(sendable)):
        yield from (written, _ESCAPE.sub(lambda found: found[0].lower(), written))


def _in_html(value: str) -> Iterator[str]:
    html = escape(value, quote=False)
    for double, single in product(('"', "&quot;", "&#34;"), ("'", "&#x27;", "&#39;", "&apos;")):
        yield html.replace('"', double).replace("'", single)


def _as_json(text: str) -> tuple[str, ...]:
    plain = (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    # Go and browsers escape what HTML would read.
    return *plain, *(one.translate(_FOR_HTML) for one in plain)


def _lower_escapes(text: str) -> str:
    return _ESCAPE.sub(lambda match: match[0].lower(), text)


def _base64(content: bytes) -> Iterator[str]:
    """Return the base64 characters of a content for every offset at which it can begin, as in `user:secret`."""
    for before in range(3):
        padded = bytes(before) + content
        # The first and the last character may hold bits of what is beside it.
        first, last = -(-before * 8 // 6), len(padded) * 8 // 6
        yield from (encode(padded).decode("ascii")[first:last] for encode in (b64encode, urlsafe_b64encode))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Apply a function to every text and every key of a JSON value."""
    match value:
        case str():
            return change(value)
        case dict():
            return {_each_text(key, change): _each_text(item, change) for key, item in value.items()}
        case list() | tuple():
            return [_each_text(item, change) for item in value]
    return value
