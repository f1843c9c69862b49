"""The checks of a grader that say what must not be: nothing but something bad shows whether they can fail.

What must be is shown by the known-good, which has it. A misspelled name of what must not be is never noticed.
"""

from collections.abc import Iterator
from typing import NamedTuple

from passgate.tasks.model.graders import (
    CommandCheck,
    FileCheck,
    Grader,
    JsonCheck,
    OutputCheck,
    PolicyCheck,
    SqliteCheck,
    StateCheck,
    ToolCalls,
)


class Prohibition(NamedTuple):
    """One check of what must not be."""

    check: int
    """Its place among the checks of the grader's grade."""
    option: str
    """Where the grader's options say it, as `forbidden`."""
    place: int
    """Its place in a list of them."""


def prohibitions_of(options: Grader) -> list[Prohibition]:
    """The prohibitions of a grader whose grade has a check for each of its options, in their order."""
    match options:
        case ToolCalls():
            return _listed("forbidden", len(options.forbidden), after=len(options.required))
        case PolicyCheck():
            return list(_of_policy(options))
        case OutputCheck():
            before = (options.equals is not None) + len(options.contains)
            return _listed("not_contains", len(options.not_contains), after=before)
        case StateCheck():
            places = [place for place, check in enumerate(options.expect) if _forbids(check)]
            return [Prohibition(place, "expect", place) for place in places]
        case _:
            return []


def _listed(option: str, number: int, *, after: int) -> list[Prohibition]:
    return [Prohibition(after + place, option, place) for place in range(number)]


def _of_policy(options: PolicyCheck) -> Iterator[Prohibition]:
    check = 0
    for option in ("deny_tools", "deny_output", "arguments"):
        number = len(getattr(options, option))
        yield from _listed(option, number, after=check)
        check += number
    if options.secrets:
        # Credentials are recognised by passgate's own patterns: nobody can misspell them.
        check += 1
    yield from _listed("canaries", len(options.canaries), after=check)


def _forbids(check: FileCheck | JsonCheck | SqliteCheck | CommandCheck) -> bool:
    match check:
        case FileCheck():
            demands = check.equals is not None or check.contains or check.matches is not None
            return not check.exists or bool(check.not_contains and not demands)
        case JsonCheck():
            return check.absent
        case SqliteCheck():
            others = check.rows is not None or "value" in check.model_fields_set or check.min_rows
            return check.max_rows is not None and not others
        case CommandCheck():
            return False
