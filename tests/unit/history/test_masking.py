"""Secrets do not reach a file."""

import json

import pytest

from passgate.tasks.history.masking import MASK, Masker


def test_a_secret_is_masked_wherever_it_stands_the_longest_first() -> None:
    assert Masker(["hunter22"]).text("hunter22 is not hunter2, xhunter22x") == f"{MASK} is not hunter2, x{MASK}x"
    assert Masker(["secret", "secret-and-more"]).text("secret-and-more secret") == f"{MASK} {MASK}"


@pytest.mark.parametrize("value", ["", "a", "12345"])
def test_what_is_too_short_to_be_a_secret_is_left_alone(value: str) -> None:
    assert Masker([value]).text("a 12345 text") == "a 12345 text"
    assert Masker([value]).json('"a 12345 text"') == '"a 12345 text"'


def test_a_secret_with_characters_that_json_escapes_breaks_no_json() -> None:
    secret = 'pass"word\\\n\t\x01é😀'
    for text in (json.dumps({"a": secret}), json.dumps({"a": secret}, ensure_ascii=False)):
        assert json.loads(Masker([secret]).json(text)) == {"a": MASK}
    text = json.dumps(["first line\nosecret"])
    assert json.loads(Masker(["nosecret"]).json(text)) == ["first line\nosecret"]


def test_what_the_environment_holds_is_masked_whatever_it_holds_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSGATE_TEST_SECRET", "swordfish")
    monkeypatch.delenv("PASSGATE_TEST_GONE", raising=False)
    masker = Masker.of_environment(["PASSGATE_TEST_SECRET", "PASSGATE_TEST_GONE"])
    monkeypatch.setenv("PASSGATE_TEST_SECRET", "other value")
    assert masker.text("swordfish and fish, other value") == f"{MASK} and fish, other value"
