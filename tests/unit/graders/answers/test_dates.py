from datetime import date

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.dates import read_date, read_date_as_agentv


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("2025-01-15", "2025-01-15", "2025-01-15"),
        (" 2025-01-15\n", "2025-01-15", "2025-01-15"),
        ("2025-01-15T23:30:00-05:00", "2025-01-15", "2025-01-16"),
        ("2025-01-15T00:30:00+02:00", "2025-01-15", "2025-01-14"),
        ("2025-01-15T23:30:00.123Z", "2025-01-15", "2025-01-15"),
        ("2025-01-15 08:00", "2025-01-15", "2025-01-15"),
        ("15-JAN-2025", "2025-01-15", "2025-01-15"),
        ("15-september-2025", "2025-09-15", "2025-09-15"),
        ("15-Sept-2025", "2025-09-15", "2025-09-15"),
        ("01/15/2025", "2025-01-15", "2025-01-15"),
        ("15/01/2025", "2025-01-15", "2025-01-15"),
        ("15-01-2025", "2025-01-15", "2025-01-15"),
        ("03/04/2025", "2025-03-04", "2025-03-04"),
        ("2025-02-30", None, "2025-03-02"),
        ("2025-13-01", None, None),
        ("2025-01-32", None, None),
        ("31/31/2025", None, None),
        ("2025-06", None, "2025-06-01"),
        ("2025", None, "2025-01-01"),
        ("1-15-2025", "2025-01-15", "2025-01-15"),
        ("1/15/25", None, "2025-01-15"),
        ("1/15/99", None, "1999-01-15"),
        ("2025/1/15", None, "2025-01-15"),
        ("01/15/2025 10:30 PM", None, "2025-01-15"),
        ("January 15, 2025", None, "2025-01-15"),
        ("Wed, 15 Jan 2025 10:00:00 GMT", None, "2025-01-15"),
        ("15-Foo-2025", None, None),
        ("2025-01-15 or so", None, None),
        ("15.01.2025", None, None),
        ("\u0662\u0660\u0662\u0665-\u0660\u0661-\u0661\u0665", None, None),
        ("soon", None, None),
        ("", None, None),
        ("9" * 1000, None, None),
    ],
)
def test_dates_where_no_format_is_said(text: str, ours: str | None, theirs: str | None) -> None:
    assert read_date(text) == (ours and date.fromisoformat(ours))
    assert read_date_as_agentv(text) == (theirs and date.fromisoformat(theirs))


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
def test_what_formats_are_for_in_agentv(text: str, formats: tuple[str, ...], expected: date | None) -> None:
    assert read_date_as_agentv(text, formats) == expected
