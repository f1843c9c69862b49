"""Expected and actual tool calls beside each other, as plain text."""

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from passgate.tasks.model.transcript import ToolCall

Row = tuple[ToolCall | None, ToolCall | None, bool]
"""The expected call, the actual one, and whether they agree."""
_WIDTH: Final = 64
_BEFORE_DIFFERENCE: Final = 20
_MOST_ROWS: Final = 30
_ROWS_BEFORE_DIFFERENCE: Final = 5


def side_by_side(rows: Sequence[Row]) -> str:
    """A line per row, numbered from 1, with a `!` where expected and actual differ.

    Long calls are cut, where they differ around the first difference; of many rows those around the first difference
    are shown.
    """
    first = next((index for index, (_, _, agree) in enumerate(rows) if not agree), 0)
    start = max(0, first - _ROWS_BEFORE_DIFFERENCE)
    shown = rows[start : start + _MOST_ROWS]
    cells = [("expected", "actual", True), *(_cells(row) for row in shown)]
    width = max(len(expected) for expected, _, _ in cells)
    lines = [
        f"{' ' if agree else '!'} {number:>4}  {expected:<{width}}  {actual}".rstrip()
        for number, (expected, actual, agree) in zip_longest(["", *range(start + 1, start + 1 + len(shown))], cells)
    ]
    after = len(rows) - start - len(shown)
    notes = [f"       ({count} more {where})" for count, where in ((start, "before"), (after, "after")) if count]
    return "\n".join([*lines, *notes])


def _cells(row: Row) -> tuple[str, str, bool]:
    expected, actual, agree = row
    left, right = _shown(expected), _shown(actual)
    start = 0 if agree or expected is None or actual is None else _first_difference(left, right)
    return _cut(left, start), _cut(right, start), agree


def _shown(call: ToolCall | None) -> str:
    if call is None:
        return "(none)"
    text = f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False, sort_keys=True, default=str)}"
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _first_difference(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip_longest(left, right)) if a != b), 0)


def _cut(text: str, difference: int) -> str:
    start = 0 if difference < _WIDTH else difference - _BEFORE_DIFFERENCE
    before, after = "…" if start else "", "…" if len(text) > start + _WIDTH else ""
    return f"{before}{text[start : start + _WIDTH]}{after}"
