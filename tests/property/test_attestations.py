"""Whatever is changed in an envelope or beside it is found, and whatever is in place of one is refused in words."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.documents import nested
from tests.signing import a_sign_off, awaiting, write_keys

from passgate.tasks.attestations.keys import signing_key
from passgate.tasks.attestations.reading import UnreadableError
from passgate.tasks.attestations.statement import (
    Envelope,
    Signature,
    envelope_text,
    read_envelope,
    read_statement,
    signed_bytes,
    statement_of,
)
from passgate.tasks.commands.verify import verify
from passgate.tasks.errors import UsageError
from passgate.tasks.history.run_store import verdict_text
from passgate.tasks.model.verdict import signed_off


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a signed verdict."""
    folder = tmp_path_factory.mktemp("signed")
    private, _ = write_keys(folder)
    key = signing_key(private.read_bytes(), "")
    file = verdict_text(signed_off(awaiting(), a_sign_off())).encode()
    payload = statement_of(signed_off(awaiting(), a_sign_off()), file)
    signature = Signature(key.keyid, key.sign(signed_bytes(payload)))
    envelope = envelope_text(Envelope(payload, "application/vnd.in-toto+json", (signature,)))
    (folder / "verdict.json").write_bytes(file)
    (folder / "verdict.intoto.json").write_text(envelope)
    assert holds(folder)
    return folder


def holds(folder: Path) -> bool:
    """Whether a folder's envelope, or what it is taken for, is as it was signed."""
    try:
        verification = verify(folder / "verdict.intoto.json", folder / "public.pem", folder)
    except UsageError:
        return False
    return verification.holds


def flipped(content: bytes, position: int, bit: int) -> bytes:
    place = position % len(content)
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


@contextmanager
def replaced(file: Path, content: bytes) -> Iterator[None]:
    """A file with another content."""
    before = file.read_bytes()
    file.write_bytes(content)
    try:
        yield
    finally:
        file.write_bytes(before)


@given(position=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_any_bit_of_the_verdict(signed: Path, position: int, bit: int) -> None:
    file = signed / "verdict.json"
    with replaced(file, flipped(file.read_bytes(), position, bit)):
        assert not holds(signed)


@given(where=st.sampled_from(["payload", "sig"]), position=st.integers(0, 2**20), bit=st.integers(0, 7))
def test_any_bit_of_what_is_signed_and_of_the_signature(signed: Path, where: str, position: int, bit: int) -> None:
    file = signed / "verdict.intoto.json"
    plain = json.loads(file.read_bytes())
    place = plain if where == "payload" else plain["signatures"][0]
    place[where] = base64.b64encode(flipped(base64.b64decode(place[where]), position, bit)).decode()
    with replaced(file, json.dumps(plain).encode()):
        assert not holds(signed)


@given(position=st.integers(0, 2**20), value=st.integers(0, 255))
def test_any_byte_of_the_envelope(signed: Path, position: int, value: int) -> None:
    """A byte that changes no bit of payload, type and signature may change: white space, the name of the key, or how
    base64 writes a character.
    """
    file = signed / "verdict.intoto.json"
    content = file.read_bytes()
    place = position % len(content)
    changed = content[:place] + bytes([value]) + content[place + 1 :]
    with replaced(file, changed):
        if holds(signed):
            before, after = read_envelope(content), read_envelope(changed)
            assert (after.payload, after.payload_type) == (before.payload, before.payload_type)
            assert [one.sig for one in after.signatures] == [one.sig for one in before.signatures]


@given(
    payload=st.binary(max_size=200),
    kind=st.text(max_size=40).filter(lambda text: text.isprintable()),
    signatures=st.lists(
        st.tuples(st.text(st.characters(codec="utf-8")), st.binary(max_size=80)), min_size=1, max_size=5
    ),
)
def test_every_envelope_reads_back(payload: bytes, kind: str, signatures: list[tuple[str, bytes]]) -> None:
    envelope = Envelope(payload, kind, tuple(Signature(keyid, sig) for keyid, sig in signatures))
    assert read_envelope(envelope_text(envelope).encode()) == envelope


@given(first=st.tuples(st.binary(), st.text()), second=st.tuples(st.binary(), st.text()))
def test_what_is_signed_is_of_one_payload_and_one_type(first: tuple[bytes, str], second: tuple[bytes, str]) -> None:
    """Neither can be cut in another place so that a signature is of something else too."""
    assert (signed_bytes(*first) == signed_bytes(*second)) == (first == second)


KEYS = ["payload", "payloadType", "signatures", "sig", "keyid", "_type", "predicate", "subject"]
ANY_JSON = nested(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    st.sampled_from(KEYS) | st.text(),
    size=5,
    most=20,
)


@given(document=ANY_JSON)
def test_other_json_is_refused_in_words(document: object) -> None:
    content = json.dumps(document).encode()
    for read in (read_envelope, read_statement):
        with pytest.raises(UnreadableError):
            read(content)


@given(content=st.binary(max_size=200))
def test_other_bytes_are_refused_in_words(content: bytes) -> None:
    for read in (read_envelope, read_statement):
        with pytest.raises(UnreadableError):
            read(content)
