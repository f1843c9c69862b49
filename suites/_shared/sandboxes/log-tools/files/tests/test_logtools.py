from pathlib import Path

import pytest

from logtools import MalformedLine, parse_line, read_entries, summarise

SAMPLE = Path(__file__).parent.parent / "samples" / "access.log"


def test_a_line_has_six_fields() -> None:
    entry = parse_line("2025-05-04T10:15:02 198.51.100.7 GET /catalogue 200 5120\n")
    assert (entry.path, entry.status, entry.size) == ("/catalogue", 200, 5120)


def test_other_lines_are_malformed() -> None:
    with pytest.raises(MalformedLine):
        parse_line("-- log rotated --\n")


def test_entries_come_in_order() -> None:
    assert [entry.status for entry in read_entries(SAMPLE)][:3] == [200, 200, 404]


def test_the_summary_of_the_sample() -> None:
    summary = summarise(SAMPLE)
    assert (summary.requests, summary.malformed) == (10, 2)
    assert summary.busiest[0] == ("/catalogue", 4)
