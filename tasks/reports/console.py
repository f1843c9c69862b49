"""Rich as a function: something to show goes in, text comes out."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, OverflowMethod, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from passgate.tasks.model.verdict import Decision

NAME = 200  # Characters of a name that are shown, as of a task or a file
MESSAGE = 500
SHORT_MESSAGE = 160
DECISION_STYLE = {Decision.PASS: "bold green", Decision.FAIL: "bold red", Decision.INCONCLUSIVE: "bold yellow"}


# What agents write has backticks too: a command begins with a program that our messages name.
_QUOTED = re.compile(r"`(?:passgate|git|gh|pip|prefect|sudo) [^`\n]{1,200}`")
_GLUE = "\ue000"  # Stands for a space where no line may end


class Marked:
    """Text whose first line begins with `mark` and whose further lines begin with a bar.

    No line begins with the text itself, so nothing in the text can look like a line of the report, or like a command to
    the runner of a CI job. The exception is an empty `mark`: then the first words of the text must be ours.
    """

    def __init__(self, mark: str, text: Text, *, style: str = "", indent: int = 0) -> None:
        self._mark = f"{' ' * indent}{mark} " if mark else ""
        self._bar = f"{' ' * indent}{'│'.ljust(len(mark))} "
        self._text = text
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrower = options.update(width=max(1, options.max_width - len(self._bar)))
        begin = Segment(self._mark, Style.parse(self._style))
        for text, width in _with_whole_commands(self._text, narrower.max_width):
            for line in console.render_lines(text, narrower.update(width=width), pad=False):
                yield begin
                yield from line
                yield Segment.line()
                begin = Segment(self._bar, Style(dim=True))


def _with_whole_commands(text: Text, width: int) -> Iterator[tuple[Text, int]]:
    """Yield the parts of a text with the width of each: commands between backticks are not broken at the end of a line,
    so that whoever copies one has it whole. One that is longer than a line stands out of it.
    """
    begin = 0
    for found in _QUOTED.finditer(text.plain):
        length = found.end() - found.start()
        if length > width:
            if found.start() > begin:
                yield _glued(text[begin : found.start()]), width
            yield _glued(text[found.start() : found.end()]), length
            begin = found.end() + (text.plain[found.end() : found.end() + 1] == " ")
    if begin < len(text) or not begin:
        yield _glued(text[begin:]), width


def _glued(text: Text) -> Text:
    glued = text.copy()
    glued.plain = _QUOTED.sub(lambda found: found[0].replace(" ", _GLUE), text.plain)
    return glued


def rendered(*parts: RenderableType, width: int, color: bool) -> str:
    """Return the parts one below the other, at most `width` columns wide; without colour it is plain text."""
    console = _console(width, color)
    with console.capture() as capture:
        for part in parts:
            console.print(part, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().replace(_GLUE, " ").split("\n")[:-1])


def _console(width: int, color: bool) -> Console:
    # Every setting is given, so that rich takes none from the environment, such as NO_COLOR or COLUMNS.
    return Console(
        file=StringIO(),
        width=width,
        height=100,
        color_system="standard" if color else None,
        force_terminal=color,
        force_interactive=False,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def columns(*names: str, justify: JustifyMethod = "left", no_wrap: bool = False) -> list[Column]:
    """Columns of a `plain_table`. Where they wrap, words that are too long are broken."""
    overflow: OverflowMethod = "ellipsis" if no_wrap else "fold"
    return [Column(name, justify=justify, no_wrap=no_wrap, overflow=overflow) for name in names]


def plain_table(
    width: int, columns: Iterable[Column], rows: Iterable[Iterable[RenderableType]], *, show_header: bool = True
) -> Table:
    """Return a table without lines whose columns stand closer where there is little room."""
    gap = 1 if width < 100 else 2
    # A column of rich holds its cells: without copies two tables could not have the same columns.
    copies = (column.copy() for column in columns)
    table = Table(*copies, box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
    table.show_header = show_header
    for row in rows:
        table.add_row(*row)
    return table


def figures_table(width: int, names: Sequence[str], rows: Iterable[Sequence[Text]]) -> RenderableType:
    """Return a table of figures below the names of the first column. No figure is ever broken: where they have no room
    side by side, each row becomes lines.
    """
    rows = [list(row) for row in rows]
    for header in (names, ["\n".join(name.rsplit(" ", 1)) for name in names]):
        figures = [Column(name, justify="right", no_wrap=True, overflow="fold") for name in header[1:]]
        table = plain_table(width, [*columns(header[0]), *figures], rows)
        longest = max((row[0].cell_len for row in rows), default=0)
        shortest = max((cell_len(word) for row in rows for word in row[0].plain.split()), default=0)
        if _console(1000, color=False).measure(table).maximum - (longest - shortest) <= width:
            return table
    return Group(*(part for row in rows for part in _row_in_lines(names, row)))


def _row_in_lines(names: Sequence[str], row: Sequence[Text]) -> tuple[Text, Marked]:
    parts = (f"{name} {_GLUE.join(cell.plain.split())}" for name, cell in zip(names[1:], row[1:], strict=True))
    return row[0], Marked("│", Text(" · ".join(parts)), style="dim")


def fitting_table(make: Callable[[str], Table], width: int, wide: str, narrow: str) -> Table:
    """Return the table that `make` gives for a separator between two parts of a cell: `wide`, or `narrow` where that is
    too wide.
    """
    return first_fitting(width, map(make, (wide, narrow)))


def first_fitting(width: int, tables: Iterable[Table]) -> Table:
    """Return the first of some tables that is not too wide, or the last of them."""
    console = _console(1000, color=False)
    for table in tables:
        if console.measure(table).maximum <= width:
            break
    return table


def heading(text: str, style: str = "bold") -> Text:
    """Return a line that opens a section, with an empty line before it."""
    return Text(f"\n{text}", style)
