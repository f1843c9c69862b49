"""Input files, read from a text."""

from collections.abc import Callable
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
