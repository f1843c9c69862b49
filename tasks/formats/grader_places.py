"""Where a grader stands in the file of its task."""

from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath, format_path, read_document
from passgate.tasks.model.task import EvalTask


def grader_problem(task: EvalTask, place: int | None, message: str, within: DocumentPath = ()) -> Problem:
    """A problem with the grader at a place of a task's graders, counted from 0; with all of them when that is `None`.

    `within` is where in the grader's options. It stands at their line in a task file; an eval file has it where the
    test begins, which it names.
    """
    path: DocumentPath = ("graders",) if place is None else ("graders", place, *within)
    document = read_document(Path(task.file), task.file)
    if isinstance(document.data, dict) and document.data.get("task_id") == task.task_id:
        return document.problem(path, message)
    told = f"{task.own_id}: {message}"
    return Problem(file=task.file, line=task.line, column=1, path=format_path(path), message=told)
