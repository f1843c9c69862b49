"""Render documents for a terminal, with rich."""

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from passgate.tasks.reports.document import Commands, Items, Remark, Section, Span, SpanKind, Table, Tone, Words
from passgate.tasks.reports.escape import printable, printable_lines

NAME: Final = 200  # Characters of a name that are shown, as of a task or a file
MESSAGE: Final = 500
SHORT_MESSAGE: Final = 160
_LONGEST_TEXT: Final = 2000
STYLES: Final = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.BAD: "red", Tone.OPEN: "yellow", Tone.QUIET: "dim"}
_MARKS: Final = {Tone.PLAIN: "·", Tone.GOOD: "✓", Tone.BAD: "✗", Tone.OPEN: "!", Tone.QUIET: "·"}
# What agents write has backticks too: a command begins with a program that our messages name.
_QUOTED: Final = re.compile(r"`(?:passgate|git|gh|pip|prefect|sudo) [^`\n]{1,200}`")
_GLUE: Final = "\ue000"  # Stands for a space where no line may end


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
        for text, width in _wrap_commands(self._text, narrower.max_width):
            for line in console.render_lines(text, narrower.update(width=width), pad=False):
                yield begin
                yield from line
                yield Segment.line()
                begin = Segment(self._bar, Style(dim=True))


def _wrap_commands(text: Text, width: int) -> Iterator[tuple[Text, int]]:
    """Yield a text's parts and their widths: no line ends within a command that its reader may copy."""
    glued = text.copy()
    glued.plain = _QUOTED.sub(lambda found: found[0].replace(" ", _GLUE), text.plain)
    begin = 0
    for found in _QUOTED.finditer(text.plain):
        length = found.end() - found.start()
        if length > width:
            if found.start() > begin:
                yield glued[begin : found.start()], width
            yield glued[found.start() : found.end()], length
            begin = found.end() + (text.plain[found.end() : found.end() + 1] == " ")
    if begin < len(text) or not begin:
        yield glued[begin:], width


def _console(width: int, *, color: bool = False) -> Console:
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


def render_parts(*parts: RenderableType, width: int, color: bool) -> str:
    """Render the parts one below the other, at most `width` columns wide; without colour it is plain text."""
    console = _console(width, color=color)
    with console.capture() as capture:
        for part in parts:
            console.print(part, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().replace(_GLUE, " ").split("\n")[:-1])


def render(*sections: Section, width: int, color: bool, elsewhere: str = "") -> str:
    """Render a document, at most `width` columns wide: whole lists, or what a screen shows if more is `elsewhere`."""
    is_whole = not elsewhere
    parts = (part for one in sections for part in section_parts(one, width, is_whole=is_whole, elsewhere=elsewhere))
    return render_parts(*parts, width=width, color=color).removeprefix("\n")


def heading(text: str | Text, style: str = "bold") -> Text:
    """Return a line that opens a section, with an empty line before it."""
    return Text("\n", style).append(text)


def section_parts(
    section: Section, width: int, *, is_whole: bool = True, longest: int = _LONGEST_TEXT, elsewhere: str = ""
) -> Iterator[RenderableType]:
    """Yield an empty line, the title and the blocks of a section, with at most `longest` characters of each text.

    Unless `is_whole`, it has only the items that a screen shows, and says how many more are `elsewhere`.
    """
    title = words_text(section.title, longest)
    yield heading(title, f"bold {STYLES[section.tone]}".strip()) if section.title else Text()
    for block in section.blocks:
        match block:
            case Items():
                for item in block.items if is_whole else block.items[: block.most_on_screen]:
                    mark = item.mark or _MARKS[item.tone]
                    yield Marked(mark, words_text(item.words, longest), style=STYLES[item.tone])
                if not is_whole and (more := block.more(block.most_on_screen)):
                    yield Text(f"{more} {elsewhere}")
            case Table():
                yield _table(block, width, longest)
                if block.note:
                    yield Text(printable(block.note, longest), "dim")
            case Commands():
                for line in printable_lines("\n".join(block.lines), lines=len(block.lines), limit=MESSAGE):
                    yield Text(f"  {line}", "bold")
            case Remark():
                yield Text(block.text, "dim")
            case words:
                yield Marked("·", words_text(words, longest))


def words_text(words: Words, longest: int = _LONGEST_TEXT) -> Text:
    """Return words as rich shows them, each text from outside escaped and cut to `longest` characters."""
    return Text.assemble(*(_span(part, longest) for part in words))


def _span(part: str | Span, longest: int) -> Text:
    if not isinstance(part, Span):
        return Text(part)
    style = f"{'bold ' if part.kind is SpanKind.STRONG else ''}{STYLES[part.tone]}".strip()
    return Text(printable(part.text, NAME if part.kind is SpanKind.NAME else longest), style)


def _table(table: Table, width: int, longest: int) -> RenderableType:
    """Return a table. No figure is ever broken: where they have no room side by side, each row becomes lines."""
    rows = [[_span(cell, longest) for cell in row] for row in table.rows]
    gap = 1 if width < 100 else 2
    plus = {" +": "\n+"}
    for has_high_header, breaks in ((False, {}), (False, plus), (True, plus), (True, {**plus, ", ": ",\n"})):
        names = ["\n".join(name.rsplit(" ", 1)) if has_high_header else name for name in table.header]
        columns = [Column(name, overflow="fold") for name in names[: table.texts]]
        columns += [Column(name.replace(" ", _GLUE), justify="right", no_wrap=True) for name in names[table.texts :]]
        drawn = RichTable(*columns, box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="bold")
        drawn.show_header = any(names)
        for row in rows:
            drawn.add_row(*row[: table.texts], *(_figure(cell, breaks) for cell in row[table.texts :]))
        if table.texts == len(names) or _console(1000).measure(drawn).minimum <= width:
            return drawn
    lines = list[Text | Marked]()
    for first, *others in rows:
        cells = (f"{name} {_figure(cell, {}).plain}" for name, cell in zip(table.header[1:], others, strict=True))
        lines += [first, Marked("│", Text(" · ".join(cells)), style="dim")]
    return Group(*lines)


def _figure(cell: Text, breaks: Mapping[str, str]) -> Text:
    """Return a figure whose lines end nowhere but at these breaks."""
    figure = cell.copy()
    for found, broken in breaks.items():
        figure.plain = figure.plain.replace(found, broken)
    figure.plain = figure.plain.replace(" ", _GLUE)
    return figure
