"""The summary stays what it was; only memory and the number of readings change."""

import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import logtools

LINE = "2025-05-04T10:15:02 198.51.100.7 GET /article/{number} 200 100\n"
LINES = 10_000
# The list of these lines alone takes more than three times as much.
MOST_BYTES = 400_000


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = tmp_path_factory.mktemp("logs") / "access.log"
    log.write_text("".join(LINE.format(number=number % 7) for number in range(LINES)), encoding="utf-8")
    return log


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_first_entry_costs_no_more_than_a_line(large_log: Path) -> None:
    def first_entry() -> None:
        entries = logtools.read_entries(large_log)
        assert next(entries).path == "/article/0"

    assert peak_bytes(first_entry) < MOST_BYTES


def test_the_summary_does_not_hold_the_log(large_log: Path) -> None:
    assert peak_bytes(lambda: logtools.summarise(large_log)) < MOST_BYTES


def test_the_summary_of_a_large_log_is_right(large_log: Path) -> None:
    summary = logtools.summarise(large_log)
    assert (summary.requests, summary.malformed, summary.bytes_sent) == (LINES, 0, LINES * 100)
    assert summary.by_status == {200: LINES}
    assert summary.busiest[:2] == [("/article/0", 1429), ("/article/1", 1429)]


def test_a_log_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = LINE.format(number=1) + "-- rotated --\n\n" + LINE.format(number=2)
    writer = threading.Thread(target=pipe.write_text, args=(content,), daemon=True)
    writer.start()
    answers: list[logtools.Summary] = []
    reader = threading.Thread(target=lambda: answers.append(logtools.summarise(pipe)), daemon=True)
    reader.start()
    reader.join(timeout=2)
    assert [(answer.requests, answer.malformed) for answer in answers] == [(2, 1)]


def test_malformed_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(
        LINE.format(number=1).encode()
        + b"2025-05-04T10:15:02 198.51.100.7 GET /short 200\n"
        + b"2025-05-04T10:15:02 198.51.100.7 GET /x -1 5\n"
        + b"   \n"
        + b"2025-05-04T10:15:03 203.0.113.40 GET /\xff\xfe 400 0"
    )
    assert [entry.path for entry in logtools.read_entries(log)] == ["/article/1", "/\ufffd\ufffd"]
    summary = logtools.summarise(log)
    assert (summary.requests, summary.malformed) == (2, 2)


def test_an_empty_log_has_an_empty_summary(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.touch()
    assert logtools.summarise(log) == logtools.Summary(0, 0, 0, {}, [])


def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(logtools.read_entries(tmp_path / "none.log"))
