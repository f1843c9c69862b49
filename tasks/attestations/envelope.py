"""DSSE envelopes: a payload with the signatures over it (https://github.com/secure-systems-lab/dsse, version 1)."""

import base64
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from passgate.tasks.attestations.reading import UnreadableError, strict_json

# Not securesystemslib (1.6), which is less strict: it takes base64 with stray bits, so that one payload has several
# spellings, a type that is no text, and any number of signatures, none included; and it refuses what DSSE allows, a
# signature without a key id.
IN_TOTO = "application/vnd.in-toto+json"
MAX_SIGNATURES = 64


@dataclass(frozen=True)
class Signature:
    """One signature. What it says of its key is not signed: a hint, and nothing more."""

    keyid: str
    sig: bytes


@dataclass(frozen=True)
class Envelope:
    """A payload, what kind of payload it is, and who has signed both."""

    payload: bytes
    payload_type: str
    signatures: tuple[Signature, ...]


def signed_bytes(payload: bytes, payload_type: str = IN_TOTO) -> bytes:
    """What a signature is over: PAE of the DSSE protocol, which no two pairs of payload and type share."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope_text(envelope: Envelope) -> str:
    """The envelope as JSON."""

    def in_base64(value: bytes) -> str:
        return base64.standard_b64encode(value).decode("ascii")

    signatures = [{"keyid": one.keyid, "sig": in_base64(one.sig)} for one in envelope.signatures]
    plain = {"payload": in_base64(envelope.payload), "payloadType": envelope.payload_type, "signatures": signatures}
    return json.dumps(plain, indent=2) + "\n"


def read_envelope(content: bytes) -> Envelope:
    """The envelope that a file holds; no signature has been looked at yet. Raises `UnreadableError`."""
    document = strict_json(content)
    if not isinstance(document, dict):
        raise UnreadableError("is no JSON object")
    signatures = document.get("signatures")
    if not isinstance(signatures, list) or not 0 < len(signatures) <= MAX_SIGNATURES:
        raise UnreadableError(f"has no list of 1 to {MAX_SIGNATURES} `signatures`")
    return Envelope(
        payload=_bytes(document, "payload"),
        payload_type=_text(document, "payloadType"),
        signatures=tuple(_signature(entry) for entry in signatures),
    )


def _signature(entry: Any) -> Signature:
    if not isinstance(entry, dict):
        raise UnreadableError("has a signature that is no JSON object")
    return Signature(keyid=_text(entry, "keyid") if "keyid" in entry else "", sig=_bytes(entry, "sig"))


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    # JSON can write half of a character, which `signed_bytes` could not encode.
    if not isinstance(value, str) or value.encode("utf-8", "ignore").decode("utf-8") != value:
        raise UnreadableError(f"has no text as `{name}`")
    return value


def _bytes(entry: dict[str, Any], name: str) -> bytes:
    """What a member says in base64, of either alphabet, as DSSE wants it. Bytes can be written in one way only."""
    text = _text(entry, name)
    for characters in (b"+/", b"-_"):
        with suppress(ValueError):
            value = base64.b64decode(text, characters)
            # Decoding passes over strange characters and stray bits: only what encoding gives back is accepted.
            if base64.b64encode(value, characters).decode("ascii") == text:
                return value
    raise UnreadableError(f"has a `{name}` that is not in base64")
