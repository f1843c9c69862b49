import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.graders.texts import (
    CREDENTIAL_PATTERNS,
    OVERLAP,
    WINDOW,
    as_json,
    credentials_in,
    cut,
    ending,
    found,
    masked,
    shorten,
)

KEY = "sk-ant-" + "a1B2" * 24


@given(st.text(), st.integers(min_value=0, max_value=50))
def test_a_short_text_stays_and_a_long_one_is_cut_and_says_so(text: str, limit: int) -> None:
    short = shorten(text, limit)
    if len(text) <= limit:
        assert short == text
    else:
        assert short == f"{text[:limit]}… ({len(text) - limit} characters more)"


@pytest.mark.parametrize("visible", range(1, len(KEY), 5))
def test_a_key_across_the_border_is_masked_before_the_text_is_cut(visible: int) -> None:
    before, after = "x" * (500 - visible - 1) + " ", " " + "y" * 1000
    assert KEY[:8] not in shorten(before + KEY + after, 500)
    assert KEY[:8] not in as_json(before[2:] + KEY + after)
    assert KEY[-8:] not in ending(" ".join(["x" * 1000, KEY, "y" * (500 - visible - 1)]), 500)


def test_what_is_no_message_is_cut_as_it_is() -> None:
    assert cut(KEY, 50) == f"{KEY[:50]}… ({len(KEY) - 50} characters more)"


def test_the_end_of_a_text() -> None:
    assert ending("  the end\n") == "the end"
    assert ending("a long way to the end", 7) == "…the end"


@pytest.mark.parametrize("start", [0, WINDOW - 3, WINDOW - OVERLAP - 3, 2 * (WINDOW - OVERLAP) + 1, 3 * WINDOW])
def test_a_match_is_found_wherever_it_lies(start: int) -> None:
    assert found("need+le", "x" * start + "needle" + "x" * (3 * WINDOW - start))


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("needle", "x" * (3 * WINDOW), False),
        ("^needle", "x" * (WINDOW - OVERLAP) + "needle", False),
        ("^$", "", True),
        ("NEEDLE", "a needle", False),
    ],
    ids=["no match in a long text", "the beginning is only the beginning", "an empty text", "another case"],
)
def test_what_is_found(pattern: str, text: str, is_found: bool) -> None:
    assert bool(found(pattern, text)) is is_found


def test_case_can_be_ignored() -> None:
    assert found("NEEDLE", "a needle", ignore_case=True)


def test_json_is_bounded_in_length_and_depth() -> None:
    hidden = {KEY: [f"first\n{KEY}", (f"\t{KEY}",)]}
    assert KEY[8:] not in as_json(hidden), "an escape before a key hides no key"
    assert as_json({"a": "ä"}) == '{"a": "ä"}'
    assert len(as_json("x" * 10_000)) < 600
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    assert as_json(value) == "(nested too deep to show)"


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
    assert not list(credentials_in(masked(text)))


def test_every_kind_has_an_example() -> None:
    assert EXAMPLES.keys() == CREDENTIAL_PATTERNS.keys()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the task is to set a password",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "550e8400-e29b-41d4-a716-446655440000",
        "BAKIAIOSFODNN7EXAMPLE",
        "risk-assessment-of-the-whole-of-the-project-plan",
        "task-force-members-and-everyone-else-concerned",
        "sk-learn",
        "ghp_short",
        "eyJhbGciOiJIUzI1NiJ9",
        "https://example.com:8080/@user",
        "https://example.com/a:b@c",
        "http://user@example.com/",
        "see http://a.example: then write to me@b.example",
        "postgres://app:***@db.example",
        "postgres://app:<password>@db.example",
        "postgres://app:$PASSWORD@db.example",
        "postgres://app:${PASSWORD}@db.example",
        "postgres://app:{password}@db.example",
        "postgres://app:%s@db.example",
    ],
)
def test_what_only_looks_alike_is_left_alone(text: str) -> None:
    assert not list(credentials_in(text))
    assert masked(text) == text


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
