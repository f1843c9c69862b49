"""A file of true pass rates, one per task."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from passgate.tasks.errors import InputError, Problem
from passgate.tasks.formats.document import Document, read_document

MOST_TASKS = 500


def read_rates(file: Path) -> dict[str, float]:
    """The rate of each task, by its name or its place in the list.

    The file is JSON: a list of rates, or an object of name and rate; each above 0 and at most 1. Raises `InputError`
    with every problem and its place.
    """
    document = read_document(file, str(file))
    problems = document.problems or list(_problems(document))
    if problems:
        raise InputError(problems)
    return dict(_pairs(document.data))


def _pairs(data: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(data, dict):
        yield from data.items()
    else:
        yield from ((f"task {place}", rate) for place, rate in enumerate(data, start=1))


def _problems(document: Document) -> Iterator[Problem]:
    data = document.data
    if not isinstance(data, list | dict) or not data:
        yield document.problem((), "expected a list of pass rates, as in [0.99, 0.95], or an object of name and rate")
        return
    if len(data) > MOST_TASKS:
        yield document.problem((), f"{len(data)} tasks are more than {MOST_TASKS}")
    for key, rate in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
            yield document.problem((key,), f"expected a pass rate above 0 and at most 1, not {rate!r:.40}")
