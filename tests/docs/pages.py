"""The pages of the documentation, and what is in them: sections, tables, examples, links."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from tests.project import REPOSITORY

PAGES = {
    str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8")
    for path in sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])
}
README = PAGES["README.md"]
_BLOCK = r"^( *)```(\w*)\n(.*?)^\1```$"
"""A fenced block, also one that is indented in a list."""


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].removeprefix("# ")


def blocks(*languages: str, page: str | None = None) -> list[Any]:
    """Every fenced block of these languages, or of one page only, as parameters with a name each."""
    found = [
        Block(name, match[2], dedent(match[3]))
        for name, text in PAGES.items()
        for match in re.finditer(_BLOCK, text, re.MULTILINE | re.DOTALL)
    ]
    chosen = [block for block in found if block.language in languages and page in {None, block.page}]
    return [pytest.param(block, id=f"{block.page}:{number}") for number, block in enumerate(chosen)]


def without_blocks(text: str) -> str:
    return re.sub(_BLOCK, "", text, flags=re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one of whatever level."""
    parts = re.split(r"^#+ (.*)$", without_blocks(PAGES[page]), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def rows(text: str) -> list[list[str]]:
    """The cells of every line of the tables, heads included."""
    # In code a bar is escaped as `\|`.
    lines = [re.split(r"(?<!\\)\|", line.strip("|")) for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines]


class Entry(NamedTuple):
    """What a table or a list says of one name, such as a key."""

    name: str
    note: str
    """What is in parentheses after the name, in lists of keys the default; in a row the cells between."""
    meaning: str


def entries(text: str) -> list[Entry]:
    """Every name that is explained: a row of a table that begins with code alone, or an item such as `- `a` (1): b`."""
    found = [(row[0], " | ".join(row[1:-1]), row[-1]) for row in rows(text)]
    for item in re.split(r"\n(?= *- )|\n *\n", text):
        if match := re.fullmatch(r"- ((?:`[^`]+`, )*`[^`]+`)(?: \(([^)]*)\))?:(?: (.*))?", " ".join(item.split())):
            found.append((match[1], match[2] or "", match[3] or ""))
    return [
        Entry(name, note, meaning)
        for codes, note, meaning in found
        if re.fullmatch(r"(`[^`]+`(, )?)+", codes)
        for name in re.findall(r"`([^`]+)`", codes)
    ]


def terms(text: str) -> list[str]:
    """The names that the tables and lists of a text explain."""
    return [entry.name for entry in entries(text)]


def meanings(page: str, heading: str) -> dict[str, str]:
    """What a section says of each name."""
    return {entry.name: entry.meaning for entry in entries(section(page, heading))}


def listings(text: str) -> list[str]:
    """The tables and lists of a text, one by one."""
    parts = (part.strip("\n") for part in re.split(r"\n *\n", text))
    return [part for part in parts if part.startswith(("|", "- "))]


def listing(text: str, begin: str = "") -> str:
    """The first table or list of a text, or the first after these words."""
    return listings(text[text.index(begin) :])[0]


def table(text: str, head: str) -> str:
    """The first table of a text whose first column has this head."""
    return next(one for one in listings(text) if one.startswith(f"| {head} |"))


def code_in(text: str) -> set[str]:
    """Every piece of code of a text."""
    return set(re.findall(r"`([^`]+)`", text))


def dead_links(page: str, text: str) -> list[str]:
    """The links of a page to files and headings that are not there."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(text)):
        name, _, anchor = target.partition("#")
        file = (REPOSITORY / page).parent / name if name else REPOSITORY / page
        if "://" in target:
            continue
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    return dead


def anchors(file: Path) -> set[str]:
    """What links to the headings of a page end with."""
    headings = re.findall(r"^#+ (.*)$", without_blocks(file.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
