"""The shape of a task file: what is refused, what keeps the task from being run, and what is without effect.

The schema of the four-suite format leaves most of a task free. Every file that it accepts is a task: what passgate
cannot read is left out of it, and told.
"""

import copy
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Final

from jsonschema import Draft202012Validator
from pydantic import ValidationError

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import Document, DocumentPath, format_path
from passgate.tasks.formats.schema_check import (
    Difference,
    difference_problem,
    differences,
    model_differences,
    schema_validator,
)
from passgate.tasks.model.graders import Grader
from passgate.tasks.model.task import TaskFile, UnknownPart

_OPEN: Final[frozenset[DocumentPath]] = frozenset(
    [(), ("environment",), ("environment", "reset"), ("environment", "budgets"), ("trials",), ("gates",)]
)
"""The mappings with free keys."""
_METRICS: Final = "tracked_metrics"
_NEEDED: Final = frozenset({"task_id", "suite", "description"})
"""Where one of these is wrong there is no task."""
_UNREADABLE: Final = "unreadable"


class TaskSchemas:
    """The two schemas of task files."""

    def __init__(self) -> None:
        self.known: Draft202012Validator = schema_validator("task")
        """What passgate knows."""
        self.floor: Draft202012Validator = schema_validator("four_suite")
        """What every task has, whoever runs it."""


class TaskShape:
    """What a document says of a task, as far as passgate reads it, and what there is to say of the rest."""

    def __init__(self, document: Document, schemas: TaskSchemas) -> None:
        self.problems: list[Problem] = list(document.problems)
        self.cannot_run: list[Problem] = []
        self.warnings: list[Problem] = []
        self.unknown: list[UnknownPart] = []
        self._left_out: set[DocumentPath] = set()
        self._document = document
        self._data = document.data
        if not self.problems:
            self._check(schemas)

    def task(self) -> TaskFile | None:
        """The task without what was left out; `None` where there are problems."""
        while not self.problems:
            try:
                return TaskFile.model_validate(self._data)
            except ValidationError as error:
                # What the schema does not say: keys that exclude each other, numbers that fit into no machine's word.
                found = model_differences(error)
                left_out = len(self._left_out)
                self.leave_out(found)
                if len(self._left_out) == left_out:
                    self.problems += [difference_problem(self._document, difference) for difference in found]
        return None

    def leave_out(self, found: Iterable[Difference]) -> None:
        """Take out of the task what is wrong, and say of each part what that means."""
        parts = {part for difference in found if (part := self._told(difference))}
        self._data = _without(self._data, {part for part in parts if not _is_below(part, parts)})
        self._left_out |= parts

    def leave_out_sandbox(self, problems: Iterable[Problem]) -> None:
        """Take the sandbox out of the task for problems in a file of its own."""
        self.cannot_run += problems
        self._data = _without(self._data, [("environment", "sandbox")])

    def read_graders(self, task: TaskFile) -> tuple[Grader, ...]:
        """The graders of the task without those that stand for what cannot be read."""
        return tuple(grader for index, grader in enumerate(task.graders) if ("graders", index) not in self._left_out)

    def _check(self, schemas: TaskSchemas) -> None:
        found = differences(self._document.data, schemas.known)
        refused = {difference.path for difference in differences(self._document.data, schemas.floor)} if found else {}
        if any(difference.path in refused for difference in found):
            self.problems += dict.fromkeys(difference_problem(self._document, difference) for difference in found)
        elif found:
            self.leave_out(found)

    def _told(self, difference: Difference) -> DocumentPath:
        """Say what is wrong. Gives the part of the document that goes with it; an empty path for all of it."""
        problem = difference_problem(self._document, difference)
        if not difference.path or difference.path[0] in _NEEDED:
            self.problems.append(problem)
            return ()
        part = difference.path if difference.is_unknown_key and _is_open(difference) else _part(difference.path)
        if part in self._left_out or _is_below(part, self._left_out):
            return ()
        if difference.path[0] == _METRICS or _is_open(difference):
            self.unknown.append(UnknownPart(path=format_path(part), value=_at(self._document.data, part)))
            self.warnings.append(replace(problem, message=f"{problem.message} (recorded, without effect)"))
        else:
            self.cannot_run.append(problem)
        return part


def _is_open(difference: Difference) -> bool:
    """Whether a key is not known where keys are free. A misspelt one is none: a limit that is misspelt is not held."""
    return difference.is_unknown_key and difference.path[:-1] in _OPEN and not difference.is_misspelt


def _part(path: DocumentPath) -> DocumentPath:
    """The part of a task that is left out for something wrong in it."""
    match path:
        case ("tracked_metrics", int(), "metrics", int(), *_):
            return path[:4]
        case ("tracked_metrics" | "graders", int(), *_) | ("environment" | "inputs", str(), *_):
            return path[:2]
        case _:
            return path[:1]


def _is_below(part: DocumentPath, parts: Collection[DocumentPath]) -> bool:
    return any(part[:length] in parts for length in range(1, len(part)))


def _at(data: Any, path: DocumentPath) -> Any:
    for key in path:
        data = data[key]
    return data


def _without(data: Any, parts: Iterable[DocumentPath]) -> Any:
    """A copy of a task's data without some parts. An item of a list has one in its place that is known to be none."""
    data = copy.deepcopy(data)
    for part in parts:
        *above, key = part
        container = _at(data, tuple(above))
        if isinstance(key, int):
            container[key] = _stand_in(part, container[key])
        else:
            del container[key]
    return data


def _stand_in(part: DocumentPath, item: Any) -> Any:
    match part:
        case ("graders", _):
            kind = item.get("type") if isinstance(item, dict) else None
            return {"type": "unavailable", "kind": str(kind or _UNREADABLE)}
        case ("tracked_metrics", _):
            return {"type": _UNREADABLE}
        case _:
            return _UNREADABLE
