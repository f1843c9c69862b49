"""Dates as eval files write them."""

import re
from datetime import date
from functools import cache
from typing import Final

from passgate.tasks.errors import MeasurementError

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
DEFAULT_FORMATS: Final = ("DD-MMM-YYYY", "MM/DD/YYYY", "DD/MM/YYYY", "MM-DD-YYYY", "DD-MM-YYYY")
"""What is tried beside ISO 8601 where nothing is said, in this order: a date that could be both has the month first."""

_ISO: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ][0-9]{2}:[0-9]{2}.*)?", re.DOTALL)
_TOKEN: Final = re.compile(r"YYYY|MMMM|MMM|MM|M|DD|D|HH|H|mm|ss|SSS|ZZ|Z|.", re.DOTALL)
_PATTERNS: Final = {
    "YYYY": "(?P<year>[0-9]{4})",
    **dict.fromkeys(("MMMM", "MMM"), "(?P<name>[A-Za-z]{3,9})"),
    **dict.fromkeys(("MM", "M"), "(?P<month>[0-9]{1,2})"),
    **dict.fromkeys(("DD", "D"), "(?P<day>[0-9]{1,2})"),
    **dict.fromkeys(("HH", "H"), "[0-9]{1,2}"),
    **dict.fromkeys(("mm", "ss"), "[0-9]{2}"),
    "SSS": "[0-9]{1,9}",
    **dict.fromkeys(("ZZ", "Z"), "(?:Z|[+-][0-9]{2}:?[0-9]{2})"),
}


def read_date(text: str, formats: tuple[str, ...] = ()) -> date | None:
    """Return the day that a text names, as it is written there: in ISO 8601 or one of the formats; `None` when it is
    neither.

    The first format that fits counts. A format is made of YYYY, MM or M, MMM or MMMM (the English name), DD or D, and
    HH, H, mm, ss, SSS and Z for times, which are not compared. Raises `MeasurementError` for any other format.
    """
    patterns = [_pattern(form) for form in formats or DEFAULT_FORMATS]
    text = text.strip()
    iso = _ISO.fullmatch(text)
    if iso:
        return day(int(iso[1]), int(iso[2]), int(iso[3]))
    for match in filter(None, (pattern.fullmatch(text) for pattern in patterns)):
        parts = match.groupdict()
        month = month_number(parts["name"]) if "name" in parts else int(parts["month"])
        # 13/02/2026 fits MM/DD/YYYY by its digits, but is a day in DD/MM/YYYY only.
        found = day(int(parts["year"]), month, int(parts["day"])) if month else None
        if found:
            return found
    return None


def day(year: int, month: int, day_of_month: int) -> date | None:
    """Return the day with these numbers; `None` when the calendar has none."""
    try:
        return date(year, month, day_of_month)
    except ValueError:
        return None


def month_number(name: str) -> int | None:
    """Return the number of a month from its English name or at least three letters of it."""
    letters = name.lower()
    fits = (number for number, month in enumerate(MONTHS, 1) if len(letters) > 2 and month.startswith(letters))
    return next(fits, None)


@cache
def _pattern(form: str) -> re.Pattern[str]:
    tokens = _TOKEN.findall(form)
    strange = [token for token in tokens if token not in _PATTERNS and token.isalpha() and token != "T"]
    try:
        pattern = re.compile("".join(_PATTERNS.get(token, re.escape(token)) for token in tokens))
    except re.error:
        # A group that is there twice.
        strange = [form]
    if strange or set(pattern.groupindex) not in ({"year", "month", "day"}, {"year", "name", "day"}):
        raise MeasurementError(f"{form!r} is not a date format: use YYYY, MM or MMM, and DD")
    return pattern
