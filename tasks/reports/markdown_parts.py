"""What Markdown reports are put together from."""

from collections.abc import Iterable, Sequence

from passgate.tasks.reports import escape

NAME = 120
"""Characters of a name that are shown, as of a task or a file."""


def joined(sections: Iterable[str]) -> str:
    """The sections that are not empty, with an empty line between."""
    return "\n\n".join(section for section in sections if section)


def fitting(parts: Iterable[str], limit: int) -> list[str]:
    """The parts from the first on that have room within so many characters, each with a line end or two."""
    shown: list[str] = []
    for part in parts:
        limit -= len(part) + 2
        if limit < 0:
            break
        shown.append(part)
    return shown


def row(cells: Iterable[str]) -> str:
    """A row of a table; its cells are Markdown."""
    return f"| {' | '.join(cells)} |"


def table(header: Sequence[str], rows: Iterable[str], *, left: int) -> str:
    """A table whose first `left` columns are text and whose others are figures."""
    rule = ["---" if position < left else "---:" for position in range(len(header))]
    return "\n".join((row(header), row(rule), *rows))


def code(text: str) -> str:
    """Text from outside as code, in Markdown and in HTML within it."""
    return f"<code>{escape.markdown(text, NAME)}</code>"


def details(summary: str, parts: Iterable[str]) -> str:
    """Parts that are shown when the reader opens the summary."""
    return "\n\n".join((f"<details><summary>{summary}</summary>", *parts, "</details>"))


def items(lines: Iterable[str], limit: int, *, total: int) -> str:
    """The items of a list that have room within so many characters, and how many of all there are beyond them."""
    shown = fitting((f"- {line}" for line in lines), limit)
    more = [f"- ... and {total - len(shown)} more"] if len(shown) < total else []
    return "\n".join((*shown, *more))
