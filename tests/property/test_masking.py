"""Whatever is masked stays what it was, but for the secrets."""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.property.documents import nested

from passgate.tasks.model.quotes import MASK, Masker

letters = st.characters(codec="utf-8") | st.sampled_from('"\\\n\t/ntb')
texts = st.text(letters)
secrets = st.text(letters, min_size=6, max_size=12).filter(lambda secret: "*" not in secret)
values = nested(st.none() | st.booleans() | st.integers() | texts, texts, most=6)


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(text for inner in value.values() for text in strings(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in strings(inner)]
    return [value] if isinstance(value, str) else []


@given(value=values, secret=secrets, before=texts, after=texts, ascii_only=st.booleans())
def test_json_stays_json_and_holds_no_secret(
    value: Any, secret: str, before: str, after: str, ascii_only: bool
) -> None:
    told = [value, f"{before}{secret}{after}", {f"{before}{secret}{after}": secret}]
    masked = json.loads(Masker([secret]).json(json.dumps(told, ensure_ascii=ascii_only)))
    assert not any(secret in text for text in strings(masked))
    assert MASK in masked[1]
    assert list(masked[2].values()) == [MASK]


@given(value=values, secret=st.text(st.sampled_from("abcXYZ019"), min_size=6, max_size=12), rest=texts)
def test_json_without_the_secret_is_left_as_it_is(value: Any, secret: str, rest: str) -> None:
    told = [value, f"\n{secret[1:]}", f"\\{secret[1:]}", rest]
    assume(not any(secret in text for text in strings(told)))
    assert json.loads(Masker([secret]).json(json.dumps(told))) == told


@given(before=texts, after=texts, secret=secrets)
def test_a_text_holds_no_secret(before: str, after: str, secret: str) -> None:
    masked = Masker([secret]).text(f"{before}{secret}{after}")
    assert secret not in masked
    assert MASK in masked
