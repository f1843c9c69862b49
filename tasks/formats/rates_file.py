"""Assumed pass rates as a file: of each task by its name, or of all in their order, with the place of every problem."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import Document, DocumentPath, UnreadableError, read_document, read_source
from passgate.tasks.formats.schema_check import nearest

_SHAPE = 'expected a mapping as in {"golden/task_id": 0.98}, or a list of rates in the order of the tasks'


def read_rates(file: Path, name: str, tasks: Sequence[str]) -> dict[str, float] | list[Problem]:
    """The pass rates that a file gives to tasks, or everything that is wrong with it. `name` is what problems call the
    file, `tasks` are those of the gate by their `suite/task_id`, in their order. A mapping need not name all of them.
    """
    document = read_document(file, name)
    if document.problems:
        return _not_json(file, name) or document.problems
    if document.data == {}:
        return [document.problem((), f"the file gives no rate: {_SHAPE}")]
    if isinstance(document.data, Mapping):
        rates, problems = dict(document.data), _of_names(document, tasks)
    elif isinstance(document.data, list):
        rates, problems = dict(zip(tasks, document.data, strict=False)), _of_number(document, tasks)
    else:
        return [document.problem((), _SHAPE)]
    found = [*problems, *_of_values(document)]
    return found or {task: float(rate) for task, rate in rates.items()}


def _not_json(file: Path, name: str) -> list[Problem]:
    """What keeps a file from being the JSON that its name says it is."""
    if file.suffix.lower() != ".json":
        return []
    try:
        # What a file lacks at its end, it lacks behind its last character and not in the empty lines after that.
        json.loads(read_source(file).rstrip())
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg}"
        return [Problem(file=name, line=error.lineno, column=error.colno, path="", message=message)]
    except (UnreadableError, ValueError, RecursionError):
        return []
    return []


def _of_names(document: Document, tasks: Sequence[str]) -> list[Problem]:
    return [
        document.problem((name,), f"the gate has no task {name!r}{nearest(name, tasks)}", at_key=True)
        for name in document.data
        if name not in tasks
    ]


def _of_number(document: Document, tasks: Sequence[str]) -> list[Problem]:
    given = len(document.data)
    if given == len(tasks):
        return []
    return [document.problem((), f"{given} rates for the {len(tasks)} tasks of the gate")]


def _of_values(document: Document) -> list[Problem]:
    return [
        document.problem(path, "expected a rate from 0 to 1, as in 0.98")
        for path, rate in _values(document.data)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1
    ]


def _values(data: Any) -> Iterator[tuple[DocumentPath, Any]]:
    pairs = data.items() if isinstance(data, Mapping) else enumerate(data)
    return (((key,), rate) for key, rate in pairs)
