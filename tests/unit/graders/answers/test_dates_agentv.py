from datetime import date

import pytest

from passgate.tasks.graders.answers.dates import read_date_as_agentv


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-01-15", date(2025, 1, 15)),
        ("2025-02-30", date(2025, 3, 2)),
        ("2025-01-32", None),
        ("2025-13-01", None),
        ("2025-06", date(2025, 6, 1)),
        ("2025", date(2025, 1, 1)),
        ("2025-01-15T23:30:00-05:00", date(2025, 1, 16)),
        ("2025-01-15T00:30:00+02:00", date(2025, 1, 14)),
        ("2025-01-15T23:30:00.123Z", date(2025, 1, 15)),
        ("01/15/2025", date(2025, 1, 15)),
        ("03/04/2025", date(2025, 3, 4)),
        ("1-15-2025", date(2025, 1, 15)),
        ("1/15/25", date(2025, 1, 15)),
        ("1/15/99", date(1999, 1, 15)),
        ("2025/1/15", date(2025, 1, 15)),
        ("01/15/2025 10:30 PM", date(2025, 1, 15)),
        ("15/01/2025", date(2025, 1, 15)),
        ("15-01-2025", date(2025, 1, 15)),
        ("15-JAN-2025", date(2025, 1, 15)),
        ("January 15, 2025", date(2025, 1, 15)),
        ("Wed, 15 Jan 2025 10:00:00 GMT", date(2025, 1, 15)),
        ("soon", None),
        ("", None),
        ("9" * 1000, None),
    ],
)
def test_dates(text: str, expected: date | None) -> None:
    assert read_date_as_agentv(text) == expected


@pytest.mark.parametrize(
    ("text", "formats", "expected"),
    [
        # JavaScript takes it for a date before the formats are looked at.
        ("03/04/2025", ("DD/MM/YYYY",), date(2025, 3, 4)),
        ("15/04/2025", ("DD/MM/YYYY",), date(2025, 4, 15)),
        ("15/04/2025", ("MM/DD/YYYY",), None),
        ("15/04/2025", ("MM/DD/YYYY", "DD/MM/YYYY"), date(2025, 4, 15)),
        ("15/13/2025", (), None),
    ],
)
def test_what_formats_are_for(text: str, formats: tuple[str, ...], expected: date | None) -> None:
    assert read_date_as_agentv(text, formats) == expected
