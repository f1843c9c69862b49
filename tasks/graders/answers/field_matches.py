"""Whether one field of the answer is as expected."""

import math
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from passgate.tasks.errors import MeasurementError
from passgate.tasks.graders.answers.field_dates import read_date
from passgate.tasks.graders.answers.regexes import regex_found
from passgate.tasks.graders.texts import as_json
from passgate.tasks.model.assertions import FieldCheck
from passgate.tasks.model.json_values import strictly_equal

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
ROUNDINGS: Final = 4
"""By how many of the smallest steps between two numbers a difference may pass the tolerance: 1.1 is 0.1 from 1."""


async def field_matches(field: FieldCheck, actual: Any, expected: Any) -> bool:
    """Whether the value in the answer matches the expected one by the field's rule.

    Raises `MeasurementError` when the expected value cannot be used with that rule.
    """
    return await _RULES[field.match](field, actual, expected)


async def _exact(_field: FieldCheck, actual: Any, expected: Any) -> bool:
    return strictly_equal(actual, expected)


async def _contains(field: FieldCheck, actual: Any, expected: Any) -> bool:
    if isinstance(actual, list):
        return any(strictly_equal(item, expected) for item in actual)
    return isinstance(actual, str) and _text(field, expected) in actual


async def _regex(field: FieldCheck, actual: Any, expected: Any) -> bool:
    pattern = _text(field, expected)
    return isinstance(actual, str) and await regex_found(pattern, "", actual)


async def _numeric(field: FieldCheck, actual: Any, expected: Any) -> bool:
    wanted, found = as_number(expected), as_number(actual)
    if wanted is None:
        raise _unusable(field, expected, "a number")
    return found is not None and within(found, wanted, field.tolerance * (abs(wanted) if field.relative else 1))


async def _date(field: FieldCheck, actual: Any, expected: Any) -> bool:
    wanted = read_date(_text(field, expected), field.formats)
    if wanted is None:
        raise _unusable(field, expected, "a date")
    return isinstance(actual, str) and read_date(actual, field.formats) == wanted


_RULES: Final[dict[str, Callable[[FieldCheck, Any, Any], Awaitable[bool]]]] = {
    "exact": _exact,
    "contains": _contains,
    "regex": _regex,
    "numeric_tolerance": _numeric,
    "date": _date,
}


def as_number(value: Any) -> float | None:
    """A finite number, or a text that is one as a whole; `None` for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def within(found: float, wanted: float, tolerance: float) -> bool:
    """Whether two numbers differ by no more than the tolerance."""
    rounding = ROUNDINGS * math.ulp(max(abs(found), abs(wanted)))
    return abs(found - wanted) <= tolerance + rounding


def _text(field: FieldCheck, expected: Any) -> str:
    if not isinstance(expected, str) or not expected:
        raise _unusable(field, expected, "a text")
    return expected


def _unusable(field: FieldCheck, expected: Any, what: str) -> MeasurementError:
    return MeasurementError(
        f"{field.path}: {field.match} needs {what} in expected_output, found {as_json(expected, 200)}"
    )
