"""Input files, read from a text."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from passgate.tasks.errors import Problem

Said = TypeVar("Said")


def read_text(file: Path, text: str, read: Callable[[Path, str], Said | list[Problem]]) -> Said | list[str]:
    """What a file of this text says; else its problems, from their line on."""
    file.write_text(text, encoding="utf-8")
    answer = read(file, file.name)
    if isinstance(answer, list):
        return [str(problem).removeprefix(f"{file.name}:") for problem in answer]
    return answer


def beginnings(texts: object, expected: Sequence[str]) -> list[str]:
    """Each text as far as it is told what to expect of it."""
    assert isinstance(texts, Sequence), texts
    return [text[: len(beginning)] for text, beginning in zip_longest(texts, expected, fillvalue="")]
