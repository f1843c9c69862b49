"""Tables that a benchmark writes into a page of the docs, between two marks."""

from pathlib import Path


def write_between(page: Path, marks: tuple[str, str], text: str) -> None:
    """Put a text between the marks of a page. Exits where the page has none."""
    begin, end = marks
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no place for the tables: it lacks {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
