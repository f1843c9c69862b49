"""Tasks that are reported without blocking for a while."""

import re
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grader_options import Text

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _day(value: Any) -> Any:
    """A text as the day that it names; other values as they are. Raises `ValueError` for a text that names none."""
    if not isinstance(value, str):
        return value
    try:
        day = date.fromisoformat(value) if _DAY.fullmatch(value) else None
    except ValueError:
        day = None
    if day is None:
        raise ValueError("expected a day of the calendar as in 2026-12-31")
    return day


class QuarantineEntry(Frozen):
    """One task that does not block until it is repaired. Vetoes of it block all the same."""

    task: Text
    """`suite/task_id`, or the task_id."""
    owner: Text
    """Who repairs it."""
    reason: Text
    issue: Text
    """A link to where the repair is followed."""
    expires: Annotated[date, BeforeValidator(_day)]
    """The last day (UTC) on which it does not block, as in 2026-12-31."""


class QuarantineFile(Frozen):
    """The whole of quarantine.yaml."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    most: Annotated[int, Field(ge=0, le=1000)] = 5
    """The most entries that there may be."""
    most_days: Annotated[int, Field(ge=1, le=365)] = 90
    """How far ahead `expires` may lie."""
    release_after: Annotated[int, Field(ge=1)] = 10
    """After so many green runs in a row on the baseline branch the task is proposed for release."""
    tasks: tuple[QuarantineEntry, ...] = ()
