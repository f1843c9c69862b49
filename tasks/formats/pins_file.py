"""baseline.yaml as a file: what is pinned as the baseline, with the place of every problem."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from passgate.tasks.errors import Problem
from passgate.tasks.files.atomic_write import write_atomically
from passgate.tasks.formats.findings import Finding
from passgate.tasks.formats.schema_check import read_model
from passgate.tasks.model.baseline import Pins

PINS_FILE = "baseline.yaml"

_HEADER = "# What passgate compares with, whatever is newer: `passgate baseline show`, `passgate baseline clear`.\n"


def read_pins(file: Path, name: str) -> Pins | list[Problem]:
    """What a file pins, or everything that is wrong with it. `name` is what problems call the file."""
    return read_model(Pins, "baseline", file, name, _findings, at_key=True)


def _findings(pins: Pins) -> Iterator[Finding]:
    for key in ("reason", "by"):
        if not getattr(pins, key).strip():
            yield (key,), "must not be blank"
    says_runs = "runs" in pins.model_fields_set
    if pins.commit is not None and says_runs:
        yield ("runs",), "give `commit` or `runs`, not both"
    elif says_runs and not pins.runs:
        yield ("runs",), "must not be empty"
    elif pins.commit is None and not pins.runs:
        yield (), "one of these keys is needed: commit, runs"


def write_pins(file: Path, pins: Pins) -> None:
    """Write a file whole or not at all, over what was there; every text is of one line. Raises `StorageError`."""
    content = pins.model_dump(mode="json", exclude_none=True)
    if not pins.runs:
        del content["runs"]
    text = _HEADER + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    write_atomically(file, text)
