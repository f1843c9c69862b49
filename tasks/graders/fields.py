"""The fields of the answer's JSON document against those of `expected_output`; dates as eval files write them."""

import math
import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.evidence import Evidence, json_in, score_grade
from passgate.tasks.graders.searches import javascript_found
from passgate.tasks.model.assertions import FieldAccuracy, FieldCheck
from passgate.tasks.model.grade import RawCheck, RawGrade
from passgate.tasks.model.json_values import MISSING, at_path, strictly_equal
from passgate.tasks.model.quotes import quote_json, quote_repr, raw
from passgate.tasks.model.task import EvalTask
from passgate.tasks.stats.estimators import weighted_mean

_PATH_SIGNS: Final = re.compile(r"[.\[\]]")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
ROUNDINGS: Final = 4
"""By how many units in the last place a difference may exceed the tolerance: 1.1 - 1 is a little more than 0.1."""
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


def expected_document(task: EvalTask) -> Any:
    """Return the object or list that a task expects, or the one that a text has as JSON. Of messages the last one of
    the assistant counts. `None` when the task expects none.
    """
    value = task.expected_output
    if task.expected_messages:
        said = [message for message in task.expected_messages if message.role == "assistant" and message.content]
        content = said[-1].content if said else None
        # The value of a JSON block, else the text.
        blocks = content if isinstance(content, tuple) else ()
        value = next((block.value for block in blocks if block.type == "json"), said[-1].text if said else None)
    if isinstance(value, str):
        try:
            return json_in(value)
        except ValueError:
            return None
    return value if isinstance(value, Mapping | list | tuple) else None


def field_at(document: Any, path: str) -> Any:
    """Return the value at a path as in `items[0].amount`; `MISSING` when it is not there."""
    return at_path(document, ".".join(part for part in _PATH_SIGNS.split(path) if part))


async def _fits(field: FieldCheck, actual: Any, expected: Any) -> bool:
    if field.match == "exact":
        return strictly_equal(actual, expected)
    if field.match == "contains" and not isinstance(actual, str):
        return isinstance(actual, list) and any(strictly_equal(item, expected) for item in actual)
    if field.match == "numeric_tolerance":
        number, found = as_number(expected), as_number(actual)
        if number is None:
            raise _unusable(field, expected, "a number")
        return found is not None and within(found, number, field.tolerance * (abs(number) if field.relative else 1))
    if not isinstance(expected, str) or not expected:
        raise _unusable(field, expected, "a text")
    if field.match == "date":
        wanted = read_date(expected, field.formats)
        if wanted is None:
            raise _unusable(field, expected, "a date")
        return isinstance(actual, str) and read_date(actual, field.formats) == wanted
    if field.match == "contains":
        return expected in actual
    return isinstance(actual, str) and await javascript_found(expected, "", actual)


def _unusable(field: FieldCheck, expected: Any, what: str) -> MeasurementError:
    needs = f"{field.path}: {field.match} needs {what} in expected_output, found "
    return MeasurementError(raw(needs, quote_json(expected, 200)))


def as_number(value: Any) -> float | None:
    """Return a finite number, or a text that is one as a whole; `None` for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def within(found: float, wanted: float, tolerance: float) -> bool:
    """Return whether two numbers differ by no more than the tolerance."""
    rounding = ROUNDINGS * math.ulp(max(abs(found), abs(wanted)))
    return abs(found - wanted) <= tolerance + rounding


async def grade_fields(options: FieldAccuracy, evidence: Evidence) -> RawGrade:
    """Compare fields of the answer with the expected ones. The score is their mean by weight, the least of them, or all
    or nothing. A field that the answer lacks is left out of them unless it is required; with none left the score is 0,
    as it is for an answer without JSON. Raises `MeasurementError` when a field has no expected value, or one that its
    rule cannot be used with: nothing to compare is not a pass.
    """
    expected = expected_document(evidence.task)
    if expected is None:
        raise MeasurementError("there is nothing to compare: expected_output contains no JSON object or list")
    pairs = [(field, field_at(expected, field.path)) for field in options.fields]
    missing = [field.path for field, value in pairs if value is MISSING]
    if missing:
        raise MeasurementError(f"there is nothing to compare: expected_output has no {', '.join(missing)}")
    try:
        document = json_in(evidence.final_answer)
    except ValueError as error:
        message = raw(f"{error}: ", quote_repr(evidence.final_answer, 200))
        return score_grade(options, 0.0, [RawCheck(passed=False, message=message)])
    checks, results, weights = list[RawCheck](), list[float](), list[float]()
    for field, value in pairs:
        actual = field_at(document, field.path)
        if actual is MISSING:
            passed, counts = not field.required, bool(field.required)
            message = raw(
                f"{field.path} is missing{', but required' if counts else '; it is optional and does not count'}"
            )
        else:
            passed, counts = await _fits(field, actual, value), True
            values = raw(quote_json(actual, 200), ", expected ", quote_json(value, 200))
            message = raw(f"{field.path} is ", values, f" ({field.match.replace('_', ' ')})")
        checks.append(RawCheck(passed=passed, message=message))
        if counts:
            results.append(float(passed))
            weights.append(field.weight)
    if options.aggregation == "weighted_average":
        score = weighted_mean(results, weights) or 0.0
    else:
        # A field is right or wrong, so the least of them is 1 when all are right.
        score = min(results, default=0.0)
    return score_grade(options, score, checks)


def read_date(text: str, formats: tuple[str, ...] = ()) -> date | None:
    """Return the day that a text names, as it is written there: in ISO 8601 or one of the formats; `None` when it is
    neither. The first format that fits counts. A format is made of YYYY, MM or M, MMM or MMMM (the English name), DD or
    D, and HH, H, mm, ss, SSS and Z for times, which are not compared. Raises `MeasurementError` for any other format.
    """
    patterns = [_pattern(form) for form in formats or DEFAULT_FORMATS]
    text = text.strip()
    iso = _ISO.fullmatch(text)
    if iso:
        return day(int(iso[1]), int(iso[2]), int(iso[3]))
    for match in filter(None, (pattern.fullmatch(text) for pattern in patterns)):
        parts = match.groupdict()
        if "name" in parts:
            letters = parts["name"].lower()
            month = next((number for number, name in enumerate(MONTHS, 1) if name.startswith(letters)), None)
        else:
            month = int(parts["month"])
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
