import pytest

from passgate.tasks.providers.exchange import ApiFormatError
from passgate.tasks.providers.sse import Event, EventParser, event_bytes


def read(*pieces: bytes) -> list[Event]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_kind_of_line_end_ends_lines_and_events(end: bytes) -> None:
    lines = [b"event: greeting", b"data: a", b"data: b", b"", b"data: c", b"", b": last"]
    first, second = read(end.join(lines))
    assert first == Event(end.join(lines[:4]) + end, "greeting", b"a\nb")
    assert second == Event(b"data: c" + end + end, None, b"c")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_event_is_whole_with_the_last_byte_of_its_blank_line(end: bytes) -> None:
    parser = EventParser()
    stream = b"data: a" + end + end
    assert [parser.feed(bytes([byte])) for byte in stream[:-1]] == [[]] * (len(stream) - 1)
    assert parser.feed(stream[-1:]) == [Event(stream, None, b"a")]


@pytest.mark.parametrize(
    ("pieces", "data"),
    [
        pytest.param([b"data: a\r", b"\ndata: b\r\n\r", b"\n"], [b"a\nb"], id="line end cut in two"),
        pytest.param([b": hello\n\n\n\nretry: 10\nid: 7\n\ndata\n\n"], [None, None, None, b""], id="no data"),
        pytest.param([b"data:  a \ndata:b\n\n"], [b" a \nb"], id="one space after the colon"),
        pytest.param([b"\xef\xbb\xbfdata: a\n\ndata: b\n\n"], [b"a", b"b"], id="byte order mark"),
    ],
)
def test_the_data_of_events(pieces: list[bytes], data: list[bytes | None]) -> None:
    assert [(event.name, event.data) for event in read(*pieces)] == [(None, one) for one in data]


def test_an_event_that_the_end_cuts_short_can_be_ended() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a") == []
    assert [event.data for event in parser.feed(b"\n\n")] == [b"a"]
    assert parser.feed(b"\n\n") == [Event(b"\n\n", None, None)]


def test_an_event_that_never_ends_is_not_collected_for_ever() -> None:
    parser = EventParser(max_event_bytes=100)
    parser.feed(b"data: 678\n" * 10)
    with pytest.raises(ApiFormatError, match="larger than 100 bytes"):
        parser.feed(b"d")


def test_what_is_written_can_be_read() -> None:
    document = {"text": "line\nline\r\u2028 half \ud83d"}
    (event,) = read(event_bytes(document, "greeting"))
    assert event.name == "greeting"
    assert b"\\ud83d" in (event.data or b"")
    assert read(event_bytes({}))[0] == Event(b"data: {}\n\n", None, b"{}")
