"""What agents wrote, for a page: bounded, every character visible, in the shape that the templates show."""

import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

from passgate.tasks.model.transcript import ChangedFile
from passgate.tasks.reports.escape import readable
from passgate.tasks.reports.trial import DIFF_LINES

_FOLDED_LINES, _FOLDED_CHARACTERS = 12, 900  # What is longer is folded
_FIRST_LINE = 120
_MOST_COMPARED = 120  # Lines of each side: the time of a comparison may grow with the cube of it


class Shown(NamedTuple):
    """A text as it is shown."""

    text: str
    lines: int
    left_out: int
    """Characters of the middle that are not shown."""

    @property
    def folded(self) -> bool:
        return self.lines > _FOLDED_LINES or len(self.text) > _FOLDED_CHARACTERS

    @property
    def first_line(self) -> str:
        line = self.text.partition("\n")[0]
        return line if len(line) <= _FIRST_LINE else f"{line[: _FIRST_LINE - 1]}…"


def shown(value: Any, limit: int) -> Shown:
    """Return a text as it is, any other value as JSON, at most about `limit` characters of it."""
    text, left_out = readable(value if isinstance(value, str) else as_json(value), limit)
    return Shown(text, text.count("\n") + 1, left_out)


def line(text: str, limit: int = 300) -> str:
    """Return a name or a short text from outside, with every invisible character as its escape."""
    return readable(text, limit)[0]


def anchor(name: str, number: int | None = None) -> str:
    """Return the id of a task or a trial on a page: `golden/say-yes`, `golden/say-yes/2`."""
    plain = "".join(mark if mark.isalnum() or mark in "-_./" else f"~{ord(mark):x}" for mark in name)
    return plain if number is None else f"{plain}/{number}"


def diff_lines(file: ChangedFile, limit: int) -> tuple[tuple[str, str], ...]:
    """Return the lines of a file's diff, each with its kind: `added`, `deleted`, `place` or nothing."""
    # The first two lines are the names of the files.
    text, _ = readable("\n".join((file.diff or "").split("\n")[2:]), limit)
    return tuple((DIFF_LINES.get(line[:1], ""), line) for line in text.split("\n")) if text else ()


def as_json(value: Any) -> str:
    """Return a value as JSON, indented."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


class DiffLine(NamedTuple):
    """A line of two texts side by side; `None` where that text has none."""

    expected: str | None
    actual: str | None

    @property
    def same(self) -> bool:
        return self.expected == self.actual


class AnswerComparison(NamedTuple):
    """What was expected and what came."""

    expected: Shown
    actual: Shown
    lines: tuple[DiffLine, ...]
    """Both side by side; empty where they are too long to be compared."""

    @property
    def same(self) -> bool:
        return self.expected.text == self.actual.text


def compared(expected: Any, actual: str, limit: int) -> AnswerComparison:
    """Return what was expected, a text or a JSON value, beside what came. JSON is compared in one layout."""
    if not isinstance(expected, str):
        try:
            actual = as_json(json.loads(actual))
        except (ValueError, RecursionError):
            actual = actual.strip()
    sides = shown(expected, limit), shown(actual, limit)
    return AnswerComparison(*sides, tuple(_side_by_side(*(side.text.split("\n") for side in sides))))


def _side_by_side(expected: Sequence[str], actual: Sequence[str]) -> list[DiffLine]:
    if max(len(expected), len(actual)) > _MOST_COMPARED:
        return []
    lines: list[DiffLine] = []
    for _, first, last, from_, to in SequenceMatcher(None, expected, actual, autojunk=False).get_opcodes():
        left, right = expected[first:last], actual[from_:to]
        lines += [DiffLine(*pair) for pair in zip_longest(left, right)]
    return lines
