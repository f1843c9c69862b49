import time

import pytest

from passgate.tasks.model.credentials import CREDENTIAL_PATTERNS, credentials_in, masked

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
