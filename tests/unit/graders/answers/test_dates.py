from datetime import date

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.dates import read_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-01-15", "2025-01-15"),
        (" 2025-01-15\n", "2025-01-15"),
        ("2025-01-15T23:30:00-05:00", "2025-01-15"),
        ("2025-01-15T00:30:00+02:00", "2025-01-15"),
        ("2025-01-15T23:30:00.123Z", "2025-01-15"),
        ("2025-01-15 08:00", "2025-01-15"),
        ("15-JAN-2025", "2025-01-15"),
        ("15-september-2025", "2025-09-15"),
        ("15-Sept-2025", "2025-09-15"),
        ("01/15/2025", "2025-01-15"),
        ("15/01/2025", "2025-01-15"),
        ("15-01-2025", "2025-01-15"),
        ("03/04/2025", "2025-03-04"),
        ("2025-02-30", None),
        ("2025-13-01", None),
        ("2025-01-32", None),
        ("31/31/2025", None),
        ("2025-06", None),
        ("2025", None),
        ("1-15-2025", "2025-01-15"),
        ("1/15/25", None),
        ("1/15/99", None),
        ("2025/1/15", None),
        ("01/15/2025 10:30 PM", None),
        ("January 15, 2025", None),
        ("Wed, 15 Jan 2025 10:00:00 GMT", None),
        ("15-Foo-2025", None),
        ("2025-01-15 or so", None),
        ("15.01.2025", None),
        ("\u0662\u0660\u0662\u0665-\u0660\u0661-\u0661\u0665", None),
        ("soon", None),
        ("", None),
        ("9" * 1000, None),
    ],
)
def test_dates_where_no_format_is_said(text: str, expected: str | None) -> None:
    assert read_date(text) == (expected and date.fromisoformat(expected))


@pytest.mark.parametrize(
    ("text", "formats", "expected"),
    [
        ("03/04/2025", ("DD/MM/YYYY",), date(2025, 4, 3)),
        ("03/04/2025", ("MM/DD/YYYY",), date(2025, 3, 4)),
        ("01/15/2025", ("DD/MM/YYYY",), None),
        ("01/15/2025", ("DD/MM/YYYY", "MM/DD/YYYY"), date(2025, 1, 15)),
        ("2025-01-15", ("DD/MM/YYYY",), date(2025, 1, 15)),
        ("15.1.2025", ("D.M.YYYY",), date(2025, 1, 15)),
        ("15a1.2025", ("D.M.YYYY",), None),
        ("January 5, 2025", ("MMMM D, YYYY",), date(2025, 1, 5)),
        ("2025/01/15 08:30:00", ("YYYY/MM/DD HH:mm:ss",), date(2025, 1, 15)),
        ("20250115", ("YYYYMMDD",), date(2025, 1, 15)),
    ],
)
def test_dates_in_the_formats_that_are_said(text: str, formats: tuple[str, ...], expected: date | None) -> None:
    assert read_date(text, formats) == expected


@pytest.mark.parametrize("form", ["Do MMM YYYY", "DD/MM/YY", "MM/YYYY", "DD/DD/YYYY", "x"])
def test_a_format_that_is_none(form: str) -> None:
    with pytest.raises(MeasurementError, match="is not a date format"):
        read_date("15/01/2025", (form,))
