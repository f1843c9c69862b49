"""Dates as eval files write them, and as AgentV reads them."""

import re
from datetime import date, datetime, timedelta
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
_JAVASCRIPT_ISO: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{2}))?(?:-([0-9]{2}))?"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|([+-])([0-9]{2}):?([0-9]{2}))?)?"
)
_TIME: Final = re.compile(r"\s+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:\s*[AaPp][Mm])?(?:\s*[A-Z]{1,4})?$")
_NUMBERS: Final = re.compile(r"([0-9]{1,6})[/-]([0-9]{1,2})[/-]([0-9]{1,6})")
_WORDS: Final = re.compile(r"[A-Za-z]+|[0-9]+")
_NAMED: Final = re.compile(r"([0-9]{1,2})-([A-Za-z]{3,9})-([0-9]{4})")
_PLAIN: Final = re.compile(r"([0-9]{1,2})[/-]([0-9]{1,2})[/-]([0-9]{4})")
_LONGEST: Final = 100
_MONTHS_DAYS: Final = range(1, 32)


def read_date(text: str, formats: tuple[str, ...] = ()) -> date | None:
    """The day that a text names, as it is written there: in ISO 8601 or one of the formats; `None` when it is neither.

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
    """The day with these numbers; `None` when the calendar has none."""
    try:
        return date(year, month, day_of_month)
    except ValueError:
        return None


def month_number(name: str) -> int | None:
    """The number of a month from its English name or at least three letters of it."""
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


def read_date_as_agentv(text: str, formats: tuple[str, ...] = ()) -> date | None:
    """The day that a text names; `None` when it names none.

    `formats` only tell, of numbers that JavaScript takes for no date, whether the day or the month comes first.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    iso = _JAVASCRIPT_ISO.fullmatch(text)
    by_javascript = _iso(iso) if iso else _legacy(_TIME.sub("", text))
    if by_javascript:
        return by_javascript
    named = _NAMED.fullmatch(text)
    month = month_number(named[2]) if named else None
    if named and month:
        return _rolled(int(named[3]), month, int(named[1]))
    numbers = _PLAIN.fullmatch(text)
    if numbers is None:
        return None
    first, second, year = (int(part) for part in numbers.groups())
    has_month_first = any("MM/DD" in form or "MM-DD" in form for form in formats)
    has_day_first = any("DD/MM" in form or "DD-MM" in form for form in formats)
    if has_month_first == has_day_first:
        # The formats do not tell: the month comes first unless only the second number can be one.
        has_day_first = first > 12 >= second
    return _rolled(year, second, first) if has_day_first else _rolled(year, first, second)


def _iso(match: re.Match[str]) -> date | None:
    year, month, day, hour, minute, sign, hours, minutes = match.groups(default="")
    first = _rolled(int(year), int(month or 1), int(day or 1))
    if first is None or not hour:
        return first
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    time = timedelta(hours=int(hour), minutes=int(minute))
    return (datetime(first.year, first.month, first.day) + time - offset).date()  # noqa: DTZ001 - UTC throughout


def _legacy(text: str) -> date | None:
    """The day that JavaScript's engines find in a text that is not ISO 8601: by numbers, or by the name of a month."""
    matched = _NUMBERS.fullmatch(text)
    if matched:
        first, second, third = (int(part) for part in matched.groups())
        year, month, day = (third, first, second) if first in _MONTHS_DAYS else (first, second, third)
    else:
        words = _WORDS.findall(text)
        # The engines look at three letters alone: `Marching` is March.
        starts = [name[:3] for name in MONTHS]
        months = [starts.index(word[:3].lower()) + 1 for word in words if word[:3].lower() in starts]
        numbers = [int(word) for word in words if word.isdecimal()]
        if len(months) != 1 or len(numbers) != 2:
            return None
        month = months[0]
        day, year = numbers if numbers[0] in _MONTHS_DAYS else reversed(numbers)
    # Years of two digits are those from 1950 to 2049.
    return _rolled(year + (2000 if year < 50 else 1900 if year < 100 else 0), month, day)


def _rolled(year: int, month: int, day: int) -> date | None:
    """The day with these numbers, where the 30th of February is one of March, as JavaScript has it."""
    if not (1 <= year <= 9999 and 1 <= month <= 12 and day in _MONTHS_DAYS):
        return None
    return date(year, month, 1) + timedelta(days=day - 1)
