"""DSSE envelopes, as others write them and as nobody should."""

import base64
import json
from typing import Any

import pytest

from passgate.tasks.attestations.reading import UnreadableError
from passgate.tasks.attestations.statement import MAX_SIGNATURES, Envelope, Signature, read_envelope, signed_bytes

PLAIN: dict[str, Any] = {
    "payload": "aGVsbG8gd29ybGQ=",
    "payloadType": "http://example.com/HelloWorld",
    "signatures": [{"keyid": "k", "sig": "c2ln"}],
}


def read(**changes: Any) -> Envelope:
    return read_envelope(json.dumps({**PLAIN, **changes}).encode())


def test_what_is_signed_is_that_of_the_specification() -> None:
    """The example of DSSE's protocol.md."""
    signed = signed_bytes(b"hello world", "http://example.com/HelloWorld")
    assert signed == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert signed_bytes("ö".encode(), "ü") == "DSSEv1 2 ü 2 ö".encode()


def test_an_envelope_is_read_in_either_alphabet_with_what_it_may_lack_and_have() -> None:
    assert read() == Envelope(b"hello world", "http://example.com/HelloWorld", (Signature("k", b"sig"),))
    value = b"\xfb\xff\xfe"
    assert base64.urlsafe_b64encode(value) != base64.standard_b64encode(value)
    assert read(payload=base64.urlsafe_b64encode(value).decode()).payload == value
    assert read(signatures=[{"sig": "c2ln", "cert": 1}], more=2).signatures == (Signature("", b"sig"),)
    assert len(read(signatures=[{"sig": "YQ=="}] * MAX_SIGNATURES).signatures) == MAX_SIGNATURES


@pytest.mark.parametrize(
    "text", ["aGVsbG8", "aGVs bG8=", "aGVsbG8=\n", "aGVsbG9=", "aGVsbG8==", "=", "ä", "+/-_", "\ud800"]
)
def test_bytes_are_written_in_base64_and_in_one_way_only(text: str) -> None:
    with pytest.raises(UnreadableError, match="`payload`"):
        read(payload=text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no JSON"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"[]", "is no JSON object"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"payload": NaN}', "NaN is no number"),
        (b"1" * 5000, "is no JSON"),
        (b'{"payload": "YQ==", "payload": "Yg=="}', "says the key 'payload' twice"),
        (b'{"signatures": [{"sig": "YQ==", "sig": "Yg=="}]}', "says the key 'sig' twice"),
        (b'{"signatures": "YQ=="}', "`signatures`"),
    ],
)
def test_what_is_no_envelope_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read_envelope(content)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"signatures": []}, "list of 1 to"),
        ({"signatures": [{"sig": "YQ=="}] * (MAX_SIGNATURES + 1)}, "list of 1 to"),
        ({"signatures": ["YQ=="]}, "a signature that is no JSON object"),
        ({"signatures": [{"keyid": "k"}]}, "`sig`"),
        ({"signatures": [{"sig": "YQ==", "keyid": 1}]}, "`keyid`"),
        ({"payload": None}, "`payload`"),
        ({"payloadType": 7}, "`payloadType`"),
    ],
)
def test_every_part_has_to_be_there(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read(**changes)
