"""prices.yaml as a file: what models cost, with the place of every problem."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.findings import Finding
from passgate.tasks.formats.schema_check import read_model
from passgate.tasks.model.price import PriceTable

PRICES_FILE = "prices.yaml"


def read_prices(file: Path, name: str) -> PriceTable | list[Problem]:
    """The prices of a file, or everything that is wrong with it. `name` is what problems call the file."""
    return read_model(PriceTable, "prices", file, name, _findings, at_key=True)


def _findings(table: PriceTable) -> Iterator[Finding]:
    patterns = list(table.models)
    for position, pattern in enumerate(patterns):
        if not pattern.strip():
            yield ("models", pattern), "a price needs the name of a model, or a pattern"
            continue
        wider = next((earlier for earlier in patterns[:position] if _covers(earlier, pattern)), None)
        if wider is not None:
            yield ("models", pattern), f"never used: {wider!r} stands before it and matches the same names"


def _covers(pattern: str, other: str) -> bool:
    """Whether a pattern surely matches every name that another one matches."""
    # With `*` as its only wildcard, what it matches of the other's text it matches of all that the text stands for.
    return "*" in pattern and not {"?", "["} & {*pattern} and fnmatchcase(other, pattern)
