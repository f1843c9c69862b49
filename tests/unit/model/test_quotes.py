"""Secrets do not leave a trial."""

import base64
import html
import json
import os
import re
import shlex
import textwrap
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

from passgate.tasks.errors import Quote, Raw
from passgate.tasks.model.quotes import (
    CREDENTIAL_PATTERNS,
    CUT,
    LEAST_LENGTH,
    LONGEST_MESSAGE,
    MASK,
    UNMASKED,
    Masker,
    beginning,
    credentials_in,
    cut,
    cut_middle,
    end,
    mask_credentials,
    quote,
    quote_end,
    quote_json,
    quote_repr,
    raw,
    raw_join,
)

KEY = "sk-ant-" + "a1B2" * 24
TOKEN = "deploy-token-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
HARD = "pa\\ss\"wo'rd <&> é%+/-SECRET"
PEM = "-----BEGIN KEY-----\nLINE1-aaaaaaaaaaaa\n  LINE2-bbbbbbbbbbbb  \r\nshort\n-----END KEY-----\n"
PAGE = Environment(autoescape=True).from_string("{{ text }}")
Write = Callable[[str], str]
FORMS: dict[str, Write] = {
    "as it is": str,
    "repr": repr,
    "repr in double quotes": lambda text: repr("'" + text),
    "repr beside double quotes": lambda text: repr('"' + text),
    "JSON": json.dumps,
    "JSON beyond ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps({"key": text})),
    "JSON of Go": lambda text: json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
    "JSON of PHP": lambda text: json.dumps(text).replace("/", "\\/"),
    "ascii": ascii,
    "bytes": lambda text: repr(os.fsencode(text))[1:],
    "an argument of a shell": shlex.quote,
    "the trace of a shell": lambda text: shlex.quote(text).replace('"\'"', "\\'"),
    "a variable of a shell": lambda text: re.sub(r'(["\\$`])', r"\\\1", text),
    "YAML and SQL": lambda text: text.replace("'", "''"),
    "CSV": lambda text: text.replace('"', '""'),
    "encodeURIComponent": lambda text: urllib.parse.quote(text, safe="!~*'()"),
    "encodeURI": lambda text: urllib.parse.quote(text, safe="!~*'();,/?:@&=+$#"),
    "a path of a URL": urllib.parse.quote,
    "a part of a URL": lambda text: urllib.parse.quote(text, safe=""),
    "a part of a URL in lower case": lambda text: urllib.parse.quote("/", safe="").lower() + _lower(text),
    "a form": urllib.parse.quote_plus,
    "HTML": html.escape,
    "HTML of a template": lambda text: PAGE.render(text=text),
    "HTML without quotes": lambda text: html.escape(text, quote=False),
}


def _lower(text: str) -> str:
    quoted = urllib.parse.quote(text, safe="")
    parts = quoted.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def test_a_secret_is_masked_wherever_it_stands_the_longest_first() -> None:
    assert Masker(["hunter22"]).text("hunter22 is not hunter2, xhunter22x") == f"{MASK} is not hunter2, x{MASK}x"
    assert Masker(["secret", "secret-and-more"]).text("secret-and-more secret") == f"{MASK} {MASK}"


@pytest.mark.parametrize("value", ["", "a", "12345", "  1234  "])
def test_what_is_too_short_to_be_a_secret_is_left_alone(value: str) -> None:
    assert Masker([value]).text("a   1234   12345 text") == "a   1234   12345 text"
    assert Masker([value]).json('"a 12345 text"') == '"a 12345 text"'


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("secret", [HARD, PEM, TOKEN, "line one\nline two", "tab\tand\x01é😀"])
def test_a_secret_is_masked_as_programs_write_it(form: Write, secret: str) -> None:
    written = f"before {form(secret)} after"
    masked = Masker([secret]).text(written)
    for part in [secret, *(line.strip() for line in secret.splitlines() if len(line.strip()) >= 8)]:
        assert form(part).strip("'\"") not in masked
    assert not any(plain in masked for plain in ("SECRET", "LINE", "ABCDE"))
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@given(
    st.text(st.characters(exclude_characters="*", exclude_categories=["Cs"]), min_size=6, max_size=40),
    st.sampled_from(list(FORMS)),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_no_text_around_a_secret_hides_it(secret: str, form: str, before: str, after: str) -> None:
    written = FORMS[form](before + secret + after)
    if len(secret.strip()) >= 6:
        assert secret not in Masker([secret]).text(written)


@given(st.binary(max_size=9), st.binary(max_size=9), st.booleans())
def test_a_secret_is_masked_in_base64_whatever_stands_beside_it(before: bytes, after: bytes, for_urls: bool) -> None:
    encode = base64.urlsafe_b64encode if for_urls else base64.b64encode
    masked = Masker([HARD]).text(encode(before + HARD.encode() + after).decode())
    left = masked.partition(MASK)
    assert left[1] == MASK
    assert len(left[0]) <= len(before) * 4 / 3 + 2
    assert len(left[2]) <= len(after) * 4 / 3 + 4


@pytest.mark.parametrize("width", [40, 64, 76])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_secret_is_masked_in_base64_that_is_wrapped(width: int, newline: str) -> None:
    for before in ("", "user:", "somebody:"):
        written = base64.b64encode(f"{before}{PEM}{HARD}".encode()).decode()
        wrapped = newline.join(textwrap.wrap(written, width))
        for text in (wrapped, json.dumps(wrapped)[1:-1]):
            assert Masker([HARD, PEM]).text(f"key: {text} end") == Masker([HARD, PEM]).text(f"key: {written} end")
    others = newline.join(textwrap.wrap(base64.b64encode(PEM.encode()).decode(), width))
    assert Masker([HARD]).text(others) == others


@pytest.mark.parametrize("form", [str, repr, ascii, os.fsencode, urllib.parse.quote_from_bytes, base64.b64encode])
def test_a_secret_that_is_no_utf_8_is_masked_as_it_is_read(form: Callable[[Any], Any]) -> None:
    secret = b"p\xe4ssw\xf6rd-Kx93zQ"
    of_bytes = form in (urllib.parse.quote_from_bytes, base64.b64encode)
    written = form(secret if of_bytes else os.fsdecode(secret))
    text = written.decode("utf-8", "replace") if isinstance(written, bytes) else written
    assert Masker([os.fsdecode(secret)]).text(f"<{text}>").strip("<'\">") == MASK


def test_each_line_of_a_secret_is_masked_and_short_ones_are_not() -> None:
    masker = Masker([PEM])
    assert masker.text("key: LINE2-bbbbbbbbbbbb; short") == f"key: {MASK}; short"
    assert masker.text("LINE1-aaaaaaaaaaaa\r\n  LINE2-bbbbbbbbbbbb") == f"{MASK}\r\n  {MASK}"
    assert Masker(["swordfish22\n"]).text("swordfish22") == MASK


def test_a_secret_with_characters_that_json_escapes_breaks_no_json() -> None:
    secret = 'pass"word\\\n\t\x01é😀'
    for text in (json.dumps({"a": secret}), json.dumps({"a": secret}, ensure_ascii=False)):
        assert json.loads(Masker([secret]).json(text)) == {"a": MASK}
    text = json.dumps(["first line\nosecret"])
    assert json.loads(Masker(["nosecret"]).json(text)) == ["first line\nosecret"]
    nested = json.dumps({HARD: [json.dumps({"said": HARD})]})
    assert json.loads(Masker([HARD]).json(nested)) == {MASK: [json.dumps({"said": MASK})]}


def test_a_file_with_a_secret_is_told_from_one_without() -> None:
    masker = Masker([HARD])
    assert masker.finds_in(b"x" + HARD.encode())
    assert masker.finds_in(base64.b64encode(HARD.encode()))
    assert not masker.finds_in(b"pa\\ss")


@pytest.mark.parametrize("secret", [TOKEN, HARD, KEY])
@pytest.mark.parametrize("visible", range(1, 38, 5))
def test_a_secret_across_a_border_is_masked_before_the_text_is_cut(secret: str, visible: int) -> None:
    masker = Masker([secret] if secret != KEY else [])
    text = "x" * (500 - visible - 1) + " " + secret + " " + "y" * (500 - len(secret) + visible - 1)
    shown = [quote(text, 500), quote_repr(text, 500), quote_json(text[2:], 500), quote_end(text, 500)]
    shown += [Quote(text, 500, keep="both"), quote_json({"a": [text[9:]]}, 500), Quote(raw("xxxx", text[4:]), 500)]
    for message in shown:
        told = masker.render(raw("it is ", message, ", expected another"))
        assert secret[:8] not in told
        assert secret[-8:] not in told
        assert told.startswith("it is ")
        assert told.endswith(", expected another")


def test_credentials_that_nobody_declared_are_masked_in_quotes() -> None:
    hidden = {KEY: [f"first\n{KEY}", (f"\t{KEY}",)]}
    assert KEY[8:] not in UNMASKED.render(quote_json(hidden)), "an escape before a key hides no key"
    assert UNMASKED.render(quote(f"the key {KEY} is wrong")) == "the key sk-a**** is wrong"


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_short_text_stays_and_a_long_one_is_cut_and_says_so(text: str, limit: int) -> None:
    short = Masker(()).render(Quote(text, limit))
    if len(text) <= limit:
        assert short == text
    else:
        assert short == f"{text[:limit]}… ({len(text) - limit} characters more)"


def test_what_is_kept_of_a_long_text() -> None:
    assert UNMASKED.render(quote_end("  the end\n")) == "the end"
    assert UNMASKED.render(quote_end("a long way to the end", 7)) == "…the end"
    both = UNMASKED.render(Quote("exit code 3: " + "x" * 300 + "the end", 100, keep="both"))
    assert both.startswith("exit … (220 characters left out) …xxx")
    assert both.endswith("xthe end")


def test_json_is_bounded_in_length_and_depth() -> None:
    assert UNMASKED.render(quote_json({"a": "ä"})) == '{"a": "ä"}'
    assert len(UNMASKED.render(quote_json("x" * 10_000))) < 600
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert UNMASKED.render(quote_json(value)) == "(nested too deep to show)"


@pytest.mark.parametrize(
    ("message", "told"),
    [
        *(("plain", "plain"), ("", "")),
        (raw("a ", quote("b"), raw(" c", " d")), "a b c d"),
        (raw_join("; ", ["a", quote("b"), raw("c", "d")]), "a; b; cd"),
        *((raw_join("; ", []), ""), (raw("", quote(""), raw()), "")),
    ],
)
def test_messages_are_put_together(message: Raw, told: str) -> None:
    assert UNMASKED.render(message) == told
    assert bool(message) is bool(told)


def test_a_message_is_bounded() -> None:
    assert len(Masker([TOKEN]).render("x" * 100_000)) < LONGEST_MESSAGE + 50
    message = raw("it is ", quote_repr("x" * 600, 500), quote_end("y" * 600, 500), quote("z" * 600, 500))
    assert str(message) == f"it is '{'x' * 500}…'…{'y' * 500}{'z' * 500}…"


@given(st.text(st.sampled_from("ab \n"), max_size=80), st.integers(min_value=2, max_value=50))
def test_a_text_that_is_cut_before_it_is_masked_has_a_mark_there(text: str, limit: int) -> None:
    first, last = beginning(text, limit), end(text, limit)
    if len(text) <= limit:
        assert first == last == text
    else:
        assert first == text[: limit - 1] + CUT
        assert last == CUT + text[1 - limit :]


@pytest.mark.parametrize("secret", [TOKEN, HARD, "Vy5 Nb8 Mc2 Xz6 Lk4 Jh9"])
@pytest.mark.parametrize("form", ["as it is", "repr", "JSON", "a part of a URL", "HTML"])
def test_the_half_of_a_secret_beside_a_cut_is_masked(secret: str, form: str) -> None:
    written, masker = FORMS[form](secret).strip("'\""), Masker([secret])
    for size in range(LEAST_LENGTH, len(written)):
        begun, ended = written[:size], written[-size:]
        for dots in (CUT, "..."):
            text = f"a.b {begun}{dots}\n(9 bytes)\n{dots}{ended} c.d"
            assert masker.text(text) == f"a.b {MASK}{dots}\n(9 bytes)\n{dots}{MASK} c.d"
            assert json.loads(masker.json(json.dumps([text]))) == [masker.text(text)]
        assert masker.render(str(quote(f"a{begun}bbb", 1 + size))) == f"a{MASK}{CUT}"
        assert masker.render(str(quote_end(f"bbb{ended}a", 1 + size))) == f"{CUT}{MASK}a"


def test_what_is_no_half_of_a_secret_stays_beside_a_cut() -> None:
    text = f"deplo{CUT} deploy-token-A, {CUT} deploy-tokens{CUT}VWXYZ {CUT}{CUT} TUVWXYZ... and so on..."
    assert Masker([TOKEN]).text(text) == text
    assert Masker([TOKEN]).json(f'[1e2, "{text}"]') == f'[1e2, "{text}"]'


def test_texts_that_are_cut_say_so() -> None:
    assert cut("x" * 60, 50) == f"{'x' * 50}… (10 characters more)"
    assert cut_middle("a" * 10 + "b" * 100, 100) == f"{'a' * 5}… (10 characters left out) …{'b' * 95}"
    assert cut_middle("short", 100) == "short"


# Put together here, so that no scanner of repositories takes this file for a leak.
EXAMPLES = {
    "private key": ["-----BEGIN " + "PRIVATE KEY-----", "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE"],
    "AWS access key id": ["AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "A1B2C3D4E5F6G7H8"],
    "GitHub token": ["ghp_" + "a1B2" * 9, "ghs_" + "a1B2" * 9, "github_pat_" + "a1B2_" * 16],
    "GitLab token": ["glpat-" + "a1B2c" * 4],
    "Slack token": ["xoxb-" + "123456789012-abcdefABCDEF"],
    "Slack webhook": ["https://hooks.slack.com/services/T0000000A/B0000000A/" + "aB1" * 8],
    "Stripe key": ["sk_live_" + "a1B2" * 6, "rk_test_" + "a1B2" * 6],
    "Google API key": ["AIza" + "SyA-_12" * 5],
    "Anthropic key": ["sk-ant-api03-" + "a1B2-_" * 15],
    "OpenAI key": ["sk-" + "a1B2" * 12, "sk-proj-" + "a1B2-_" * 10],
    "JSON web token": ["eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "dBjftJeZ4CVP-mB92K27uhbUJU1p1r"],
    "password in a URL": ["postgres://app:" + "hunter2@db.example/shop", "redis://:" + "s3cr3t@[::1]:6379"],
}


@pytest.mark.parametrize(("kind", "example"), [(kind, text) for kind, texts in EXAMPLES.items() for text in texts])
@pytest.mark.parametrize("frame", ["{}", "key={}", 'export KEY="{}"', "first line\n{}\nlast line", "({})."])
def test_every_kind_is_found_and_masked(kind: str, example: str, frame: str) -> None:
    text = frame.format(example)
    assert kind in [kind for kind, _ in credentials_in(text)]
    assert not list(credentials_in(mask_credentials(text)))


def test_every_kind_has_an_example() -> None:
    assert EXAMPLES.keys() == CREDENTIAL_PATTERNS.keys()


@pytest.mark.parametrize(
    "text",
    [
        *("", "-----BEGIN PUBLIC KEY-----", "commit 3f786850e387550fdab836ed7e6dc881de23001b"),
        *("BAKIAIOSFODNN7EXAMPLE", "risk-assessment-of-the-whole-of-the-project-plan"),
        *("sk-learn", "eyJhbGciOiJIUzI1NiJ9", "https://example.com:8080/@user", "http://user@example.com/"),
        *("see http://a.example: then write to me@b.example", "postgres://app:***@db.example"),
        *("postgres://app:<password>@db.example", "postgres://app:${PASSWORD}@db.example"),
        "postgres://app:%s@db.example",
    ],
)
def test_what_only_looks_alike_is_left_alone(text: str) -> None:
    assert not list(credentials_in(text))
    assert mask_credentials(text) == text


@pytest.mark.parametrize(
    "unit",
    [
        *("a", "sk-ant-", "sk-", "eyJ", "eyJ-", "eyJaaaaaaaa.", "a://", "a://b:", "://", "xoxb-", "-----BEGIN ", "A "),
        "AKIA",
    ],
)
def test_hostile_texts_take_no_longer_than_their_length(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    list(credentials_in(text))
    assert time.process_time() - started < 10
