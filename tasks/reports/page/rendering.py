"""The templates of the pages, with what agents wrote and what charts draw in the shape that they show.

What agents wrote is bounded, and every character of it visible. The places of charts are numbers.

A policy lets nothing but the style and the script of the pages have any effect.
"""

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from passgate.tasks.model.history import TrendPoint
from passgate.tasks.model.task import Suite
from passgate.tasks.model.transcript import ChangedFile
from passgate.tasks.model.verdict import EarlierRun
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import readable
from passgate.tasks.reports.trial import DIFF_LINES, milliseconds

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDED_LINES, _FOLDED_CHARACTERS = 12, 900  # What is longer is folded
_FIRST_LINE: Final = 120
_MOST_COMPARED: Final = 120  # Lines of each side: the time of a comparison may grow with the cube of it
SPARK_WIDTH: Final = 88
SPARK_HEIGHT: Final = 20
_EDGE = 3
BINS: Final = 28
BIN_WIDTH: Final = 16
BIN_HEIGHT: Final = 52
_NEAR: Final = 1.02  # Figures that differ less than by this factor lie in one bin


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
        "quantity": lambda number, unit: (
            milliseconds(number * 1000) if unit == "s" and number < 1 else figures.quantity(number, unit)
        ),
        "milliseconds": milliseconds,
        "answer_comparison": answer_comparison,
        "diff_lines": _diff_lines,
        "figures": figures,
        "mean": lambda numbers: sum(numbers) / len(numbers) if numbers else None,
        "subject": findings.reason_subject,
        "weight": findings.weight,
    }
    # A name or a short text from outside is a `line`.
    environment.filters |= {"view": text_view, "line": lambda text, limit=300: readable(text, limit)[0]}
    return environment


class TextView(NamedTuple):
    """A text as it is shown."""

    text: str
    lines: int
    left_out: int  # Characters of the middle that are not shown

    @property
    def folded(self) -> bool:
        return self.lines > _FOLDED_LINES or len(self.text) > _FOLDED_CHARACTERS

    @property
    def first_line(self) -> str:
        line = self.text.partition("\n")[0]
        return line if len(line) <= _FIRST_LINE else f"{line[: _FIRST_LINE - 1]}…"


def text_view(value: Any, limit: int) -> TextView:
    """Return a text as it is, any other value as JSON, at most about `limit` characters of it."""
    text, left_out = readable(value if isinstance(value, str) else _json(value), limit)
    return TextView(text, text.count("\n") + 1, left_out)


def anchor(name: str, number: int | None = None) -> str:
    """Return the id of a task or a trial on a page: `golden/say-yes`, `golden/say-yes/2`."""
    plain = "".join(mark if mark.isalnum() or mark in "-_./" else f"~{ord(mark):x}" for mark in name)
    return plain if number is None else f"{plain}/{number}"


class AnswerComparison(NamedTuple):
    """What was expected and what came."""

    expected: TextView
    actual: TextView
    lines: tuple[tuple[str | None, str | None], ...]
    """Both side by side, `None` where one has no line; empty where they are too long to be compared."""

    @property
    def same(self) -> bool:
        return self.expected.text == self.actual.text


def answer_comparison(expected: Any, actual: str, limit: int) -> AnswerComparison:
    """Return what was expected, a text or a JSON value, beside what came. JSON is compared in one layout."""
    if not isinstance(expected, str):
        try:
            actual = _json(json.loads(actual))
        except (ValueError, RecursionError):
            actual = actual.strip()
    sides = text_view(expected, limit), text_view(actual, limit)
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


class Spark(NamedTuple):
    """The shares of passed trials of runs, the newest last."""

    points: str
    last_x: float
    last_y: float
    label: str


def spark(runs: Sequence[EarlierRun]) -> Spark | None:
    """Return a line of at least one run; `None` without any."""
    if not runs:
        return None
    step = (SPARK_WIDTH - 2 * _EDGE) / max(1, len(runs) - 1)
    places = [
        (_EDGE + step * place, SPARK_HEIGHT - _EDGE - (SPARK_HEIGHT - 2 * _EDGE) * run.passed / run.measured)
        for place, run in enumerate(runs)
    ]
    shares = ", ".join(f"{run.passed}/{run.measured}" for run in runs[-6:])
    what = f"last {len(runs)} runs" if len(runs) > 1 else "last run"
    return Spark(
        " ".join(f"{x:.1f},{y:.1f}" for x, y in places), *places[-1], f"{what}, trials passed, newest last: {shares}"
    )


class ValueLine(NamedTuple):
    """The values of a suite, run by run: a line of 600 by 60 with the places of its runs."""

    suite: str
    points: str
    dots: tuple[tuple[float, float, str], ...]  # Where a run is, and what it is
    label: str


def value_lines(points: Sequence[TrendPoint]) -> tuple[ValueLine, ...]:
    """Return a line for each suite, over the runs that have a value."""
    lines = []
    for suite in Suite:
        known = [(point, point.value) for point in points if point.suite is suite and point.value is not None]
        step = 580 / max(1, len(known) - 1)
        dots = tuple(
            (10 + step * place, 52 - 44 * value, f"{point.started_at:%Y-%m-%d}: {figures.percent(value)}")
            for place, (point, value) in enumerate(known)
        )
        if dots:
            label = f"{suite}: {figures.count(len(dots), 'run')}, the last {figures.percent(known[-1][1])}"
            lines.append(ValueLine(suite.value, " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in dots), dots, label))
    return tuple(lines)


class Spread(NamedTuple):
    """How the values of one side of a histogram are spread."""

    total: int
    bars: tuple[tuple[float, float, float], ...]  # The place from the left and from the top of each bar, and its height
    quantiles: tuple[tuple[str, float], ...]


class Histogram(NamedTuple):
    """How one figure is spread now, above a line, and at the baseline, below it. The axis is logarithmic."""

    now: Spread
    before: Spread
    low: float
    high: float


def histogram(now: Sequence[float], before: Sequence[float]) -> Histogram | None:
    """Both distributions over one axis; `None` without a figure above 0 now."""
    now, before = ([value for value in values if value > 0 and math.isfinite(value)] for values in (now, before))
    if not now:
        return None
    low, high = min((*now, *before)), max((*now, *before))
    if high < low * _NEAR:
        low, high = low / 2, high * 2
    width = math.log(high / low)

    def spread(values: Sequence[float], *, above: bool) -> Spread:
        if not values:
            return Spread(0, (), ())
        counts = [0] * BINS
        for value in values:
            counts[min(BINS - 1, int(math.log(value / low) / width * BINS))] += 1
        heights = [BIN_HEIGHT * count / max(counts) for count in counts]
        bars = (
            (number * BIN_WIDTH, BIN_HEIGHT - height if above else BIN_HEIGHT + 2, height)
            for number, height in enumerate(heights)
            if height
        )
        p95 = sorted(values)[math.ceil(0.95 * len(values)) - 1]
        return Spread(len(values), tuple(bars), (("median", median(values)), ("P95", p95)))

    return Histogram(spread(now, above=True), spread(before, above=False), low, high)
