"""The parts of a document: what a report says, for every renderer.

A bare `str` holds passgate's own words. A text from outside is a `Span`, which a renderer escapes and cuts.
"""

from enum import StrEnum
from typing import NamedTuple


class Tone(StrEnum):
    """What a text means to its reader; a renderer has a style for each."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    OPEN = "open"
    """Nobody knows yet, or somebody has to look."""
    QUIET = "quiet"
    """It is beside the point."""


class SpanKind(StrEnum):
    """What a span is."""

    TEXT = "text"
    STRONG = "strong"
    NAME = "name"
    """A path, a task, a digest."""


class Span(NamedTuple):
    """A text from outside, or one that stands out."""

    text: str
    kind: SpanKind = SpanKind.TEXT
    tone: Tone = Tone.PLAIN


Words = tuple[str | Span, ...]


def name(text: str) -> Span:
    """Return a name from outside."""
    return Span(text, SpanKind.NAME)


def strong(text: str, tone: Tone = Tone.PLAIN) -> Span:
    """Return a text that stands out."""
    return Span(text, SpanKind.STRONG, tone)


class Item(NamedTuple):
    """One item of a list."""

    words: Words
    tone: Tone = Tone.PLAIN
    is_decisive: bool = False
    """Whether a renderer shows it before it shows any other item."""
    mark: str = ""
    """What a terminal shows before it, in place of the mark of its tone."""


class Items(NamedTuple):
    """A list, with the decisive items first."""

    items: tuple[Item, ...]
    most: int = 500
    """The number of items that a summary shows."""
    most_on_screen: int = 500

    def more(self, shown: int) -> str:
        """Return the words on the items after the first `shown`; empty if there are none."""
        rest = self.items[shown:]
        decisive = sum(item.is_decisive for item in rest)
        kinds = f", {decisive} of them of graders, policy, agents or prices," if decisive else ""
        return f"... and {len(rest)} more{kinds}" if rest else ""


class Table(NamedTuple):
    """A table whose first columns are texts and whose others are figures."""

    header: tuple[str, ...]
    rows: tuple[tuple[str | Span, ...], ...]
    texts: int = 1
    """The number of columns with texts."""
    note: str = ""


class Commands(NamedTuple):
    """The lines of shell commands."""

    lines: tuple[str, ...]


class Remark(NamedTuple):
    """A line in passgate's own words on what stands above it."""

    text: str


class Section(NamedTuple):
    """A part of a document under a title."""

    title: Words
    blocks: tuple[Words | Items | Table | Commands | Remark, ...] = ()
    tone: Tone = Tone.PLAIN
