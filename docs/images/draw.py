"""Draw the terminal report of a run as SVG: `python docs/images/draw.py VERDICT.json TITLE > gate.svg`."""

import sys
from html import escape
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from passgate.tasks.model.verdict import Verdict
from passgate.tasks.reports.terminal import terminal

WIDTH = 100
THEME = TerminalTheme(
    (22, 27, 34),
    (214, 221, 228),
    [
        (110, 118, 129),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (214, 221, 228),
    ],
)
# rich's own template loads fonts from another host; whoever looks at this one has a monospaced font.
TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>@title@</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 17px; font-family: ui-sans-serif, system-ui, "DejaVu Sans", sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def drawing(verdict: Verdict, title: str) -> str:
    """Draw the terminal report of a verdict as a self-contained SVG."""
    console = Console(file=StringIO(), record=True, width=WIDTH, color_system="standard", force_terminal=True)
    console.print(Text.from_ansi(terminal(verdict, width=WIDTH, color=True)))
    picture = console.export_svg(title=title, theme=THEME, code_format=TEMPLATE, unique_id="gate")
    return picture.replace("@title@", escape(title))


if __name__ == "__main__":
    verdict_file, title = sys.argv[1:]
    sys.stdout.write(drawing(Verdict.model_validate_json(Path(verdict_file).read_bytes()), title))
