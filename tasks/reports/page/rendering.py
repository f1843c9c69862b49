"""The templates of the pages, and what agents wrote in the shape that they show: bounded, every character visible.

The pages have a policy that lets nothing but their own style and script have any effect.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from passgate.tasks.model.transcript import ChangedFile
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import readable
from passgate.tasks.reports.trial import DIFF_LINES, milliseconds

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDED_LINES, _FOLDED_CHARACTERS = 12, 900  # What is longer is folded
_FIRST_LINE: Final = 120
_MOST_COMPARED: Final = 120  # Lines of each side: the time of a comparison may grow with the cube of it


@cache
def templates() -> "Environment":
    """Return the templates of the pages. Whatever they are given is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("passgate.tasks.reports.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = files("passgate.tasks.reports.page").joinpath("templates")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    environment.globals |= {
        "style": style,
        "script": script,
        "policy": f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "base-uri 'none'; form-action 'none'",
        "quantity": _quantity,
        "milliseconds": milliseconds,
        "compared": compared,
        "diff_lines": _diff_lines,
        "figures": figures,
        "mean": lambda numbers: sum(numbers) / len(numbers) if numbers else None,
        "subject": findings.reason_subject,
        "weight": findings.weight,
    }
    # A name or a short text from outside is a `line`.
    environment.filters |= {"shown": shown, "line": lambda text, limit=300: readable(text, limit)[0]}
    return environment


def _quantity(number: float, unit: str) -> str:
    return figures.quantity(number * 1000, "ms") if unit == "s" and number < 1 else figures.quantity(number, unit)


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
    text, left_out = readable(value if isinstance(value, str) else _json(value), limit)
    return Shown(text, text.count("\n") + 1, left_out)


def anchor(name: str, number: int | None = None) -> str:
    """Return the id of a task or a trial on a page: `golden/say-yes`, `golden/say-yes/2`."""
    plain = "".join(mark if mark.isalnum() or mark in "-_./" else f"~{ord(mark):x}" for mark in name)
    return plain if number is None else f"{plain}/{number}"


class AnswerComparison(NamedTuple):
    """What was expected and what came."""

    expected: Shown
    actual: Shown
    lines: tuple[tuple[str | None, str | None], ...]
    """Both side by side, `None` where one has no line; empty where they are too long to be compared."""

    @property
    def same(self) -> bool:
        return self.expected.text == self.actual.text


def compared(expected: Any, actual: str, limit: int) -> AnswerComparison:
    """Return what was expected, a text or a JSON value, beside what came. JSON is compared in one layout."""
    if not isinstance(expected, str):
        try:
            actual = _json(json.loads(actual))
        except (ValueError, RecursionError):
            actual = actual.strip()
    sides = shown(expected, limit), shown(actual, limit)
    return AnswerComparison(*sides, tuple(_side_by_side(*(side.text.split("\n") for side in sides))))


def _side_by_side(expected: Sequence[str], actual: Sequence[str]) -> list[tuple[str | None, str | None]]:
    lines: list[tuple[str | None, str | None]] = []
    if max(len(expected), len(actual)) <= _MOST_COMPARED:
        for _, first, last, from_, to in SequenceMatcher(None, expected, actual, autojunk=False).get_opcodes():
            lines += zip_longest(expected[first:last], actual[from_:to])
    return lines


def _diff_lines(file: ChangedFile, limit: int) -> tuple[tuple[str, str], ...]:
    """Return the lines of a file's diff, each with its kind: `added`, `deleted`, `place` or nothing."""
    # The first two lines are the names of the files.
    text, _ = readable("\n".join((file.diff or "").split("\n")[2:]), limit)
    return tuple((DIFF_LINES.get(line[:1], ""), line) for line in text.split("\n")) if text else ()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)
