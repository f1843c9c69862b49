"""Texts from outside in messages: they are quoted raw, and one place masks, then cuts, then encodes them.

Secrets never leave a trial: the values that are known to be secret, and credentials of known forms such as private
keys, keys of providers, tokens and passwords in URLs.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import product
from typing import Any, Final, NewType
from urllib import parse

from passgate.tasks.errors import EXCERPT, Quote, Raw, RawText

TOO_DEEP: Final = "(nested too deep to show)"
MASK: Final = "***"
LEAST_LENGTH: Final = 6  # Characters of a secret: shorter values occur in ordinary text
LEAST_LINE: Final = 8  # Characters of a line of a secret that has several
LONGEST_MESSAGE: Final = 3 * EXCERPT

CUT: Final = "…"  # Where passgate has cut a text; `Masker` masks the half of a secret beside it
_CUTS: Final = re.compile(r"(…|\.{3})")  # Other programs write three dots
_FOR_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_ESCAPE: Final = re.compile("%[0-9A-F]{2}")
_OF_JAVASCRIPT: Final = ("!~*'()", "!~*'();,/?:@&=+$#")  # What encodeURIComponent and encodeURI leave as it is
_IN_SHELL: Final = re.compile(r'(["\\$`])')
_BASE64: Final = "[A-Za-z0-9+/_-]"
_WRAPPED: Final = re.compile(rf"(?<!{_BASE64})(?:{_BASE64}{{40,}}+(?:(?:\\r)?\\n|\r?\n))++{_BASE64}*")

MaskedText = NewType("MaskedText", str)  # A text that a `Masker` has rendered
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


def raw(*parts: Raw) -> RawText:
    """Return one message of several parts."""
    flat = [part.parts if isinstance(part, RawText) else (part,) for part in parts]
    return RawText(tuple(part for some in flat for part in some if part))


def raw_join(separator: str, parts: Iterable[Raw]) -> RawText:
    """Return one message of several, with a text between each two."""
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
    """Return the beginning of a text whose secrets are masked later, with a mark where it is cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}{CUT}"


def end(text: str, limit: int) -> str:
    """Return the end of a text whose secrets are masked later, with a mark where it is cut."""
    return text if len(text) <= limit else f"{CUT}{text[len(text) - limit + 1 :]}"


def json_text(value: Any) -> str:
    """Return a raw value as JSON, whole."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return TOO_DEEP


def credentials_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the value of every credential in a text, kind by kind."""
    return ((kind, match[0]) for kind, pattern in CREDENTIAL_PATTERNS.items() for match in pattern.finditer(text))


def mask(value: str) -> str:
    """Return the first 4 characters of a secret, by which it can be recognised but not used."""
    return f"{value[:4]}****"


def mask_credentials(text: str) -> str:
    """Mask every credential in a text."""
    for pattern in CREDENTIAL_PATTERNS.values():
        text = pattern.sub(lambda match: mask(match[0]), text)
    return text


class Masker:
    """Replaces secrets in texts and in JSON, in every form that programs commonly write them in."""

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for part in _parts(value) for form in _forms(part)}
        # The longest first: one secret may hold another.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._in_json = sorted({written for form in self._forms for written in _as_json(form)})
        self._ends_in_json = {end for written in self._in_json for end in _both_ends(written)}

    def render(self, message: Raw, limit: int = LONGEST_MESSAGE) -> MaskedText:
        """Return a message without secrets and known credentials, of at most `limit` characters and a note."""
        parts = message.parts if isinstance(message, RawText) else (message,)
        return MaskedText(cut(self._mask_credentials("".join(map(self._render_part, parts))), limit))

    def _render_part(self, part: str | Quote) -> str:
        match part:
            case str():
                return part
            case Quote(value=RawText() | Quote() as message, limit=limit):
                return self.render(message, limit)
            case Quote(value=value, limit=limit, form="json"):
                try:
                    return cut(json_text(_each_text(value, self._mask_credentials)), limit)
                except RecursionError:
                    return TOO_DEEP
            case Quote(value=value, limit=limit, keep="end"):
                text = self._mask_credentials(value)
                return text if len(text) <= limit else f"…{text[-limit:]}"
            case Quote(value=value, limit=limit, keep="both"):
                return cut_middle(self._mask_credentials(value), limit)
        text = cut(self._mask_credentials(part.value), part.limit)
        return repr(text) if part.form == "repr" else text

    def _mask_credentials(self, text: str) -> str:
        return mask_credentials(self.text(text))

    def text(self, text: str) -> str:
        """Return the text without secrets, and without halves of them where it was cut."""
        text = _WRAPPED.sub(self._mask_wrapped, text)
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return self._mask_halves(text)

    def _mask_wrapped(self, found: re.Match[str]) -> str:
        """Return base64 without line breaks if a secret is in it, else as it is."""
        joined = re.sub(r"\\[rn]|\s", "", found[0])
        return joined if any(form in joined and form not in found[0] for form in self._forms) else found[0]

    def _mask_halves(self, text: str) -> str:
        parts = _CUTS.split(text)
        if len(parts) == 1:
            return text
        # A text has many dots and few beginnings of secrets.
        begun = [form for form in self._forms if form[:LEAST_LENGTH] in text]
        ended = [form for form in self._forms if form[-LEAST_LENGTH:] in text]
        if not (begun or ended):
            return text
        last = len(parts) - 1
        for place in range(0, len(parts), 2):
            if place > 0:
                parts[place] = _mask_end_of_secret(parts[place], ended)
            if place < last:
                parts[place] = _mask_begin_of_secret(parts[place], begun)
        return "".join(parts)

    def json(self, text: str) -> str:
        """Return a JSON document without secrets in its texts and keys."""
        # Every secret has ends, and so has the half of one.
        if not any(end in text for end in self._ends_in_json):
            return text
        # Replaced in the text itself, a secret could take half of an escape with it.
        document = json.loads(text)
        masked = _each_text(document, self.text)
        return text if masked == document else json.dumps(masked, ensure_ascii=False, separators=(",", ":"))

    def finds_in(self, content: bytes) -> bool:
        """Return whether a file contains a secret."""
        return any(form.encode("utf-8", "surrogateescape") in content for form in self._forms)


UNMASKED: Final = Masker(())  # Renders what stays within a trial or on the terminal of the owner of the secrets


def _parts(value: str) -> Iterator[str]:
    """Return a secret, and each of its lines if it has several, because texts are shown line by line."""
    lines = value.splitlines()
    wholes = (value, value.strip()) if len(value.strip()) >= LEAST_LENGTH else ()
    yield from wholes
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= LEAST_LINE)
    if (read := value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")) != value:
        yield from _parts(read)  # As passgate reads the output of programs


def _both_ends(form: str) -> tuple[str, str]:
    return form[:LEAST_LENGTH], form[-LEAST_LENGTH:]


def _mask_begin_of_secret(text: str, forms: Iterable[str]) -> str:
    """Mask the beginning of a secret with which a text ends."""
    for form in forms:
        least = form[:LEAST_LENGTH]
        at = text.find(least, max(0, len(text) - len(form) + 1))
        while at >= 0:
            if form.startswith(text[at:]):
                return text[:at] + MASK
            at = text.find(least, at + 1)
    return text


def _mask_end_of_secret(text: str, forms: Iterable[str]) -> str:
    """Mask the end of a secret with which a text begins."""
    for form in forms:
        least = form[-LEAST_LENGTH:]
        at = text.rfind(least, 0, len(form) - 1)
        while at >= 0:
            if form.endswith(text[: at + LEAST_LENGTH]):
                return MASK + text[at + LEAST_LENGTH :]
            at = text.rfind(least, 0, at + LEAST_LENGTH - 1)
    return text


def _forms(value: str) -> Iterator[str]:
    """Return a secret as it is, and in the forms of JSON, Python's `repr`, URLs, HTML, shells, YAML and base64; each
    also in JSON, as where a program is given a transcript and prints it.
    """
    content, html = value.encode("utf-8", "surrogateescape"), escape(value, quote=False)
    in_urls = [parse.quote(content, safe=safe) for safe in ("/", "", *_OF_JAVASCRIPT)] + [parse.quote_plus(content)]
    marks = product(('"', "&quot;", "&#34;"), ("'", "&#x27;", "&#39;", "&apos;"))
    forms = [
        *(value, *_as_json(value), *in_urls),
        *(_IN_SHELL.sub(r"\\\1", value), value.replace('"', '""')),
        *(value.replace("'", quoted) for quoted in ("'\\''", "'\"'\"'", "''")),
        *(_ESCAPE.sub(lambda found: found[0].lower(), written) for written in in_urls),
        *(html.replace('"', double).replace("'", single) for double, single in marks),
    ]
    # Which quotation marks `repr` escapes depends on what stands beside the secret.
    for written in (repr(value)[1:-1], ascii(value)[1:-1], repr(content)[2:-1]):
        in_quotes = written.replace("\\'", "'")
        forms += [in_quotes, in_quotes.replace("'", "\\'")]
    for form in forms:
        yield from (form, *_as_json(form))
    yield from _base64(content)


def _as_json(text: str) -> tuple[str, ...]:
    plain = (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    # Go and browsers escape what HTML would read, PHP the slash.
    return *plain, *(one.translate(_FOR_HTML) for one in plain), *(one.replace("/", "\\/") for one in plain)


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
