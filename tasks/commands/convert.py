"""Convert: tasks of any dialect in, files of one dialect out. The written files are read again before they count."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from pathlib import Path

from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.conversion import (
    ConvertedFiles,
    Staged,
    eval_output,
    four_suite_output,
    lines_output,
    no_longer_comparable,
    staging,
)
from passgate.tasks.formats.evals.read.case_files import sidecar_names
from passgate.tasks.formats.evals.write.serialise import Serialisation, differences, serialised_task
from passgate.tasks.formats.loading import Found, SourceTask, task_of_file, tasks_of_paths, tests_of_file
from passgate.tasks.model.policy import Policy


class Dialect(StrEnum):
    """What tasks can be written as."""

    FOUR_SUITE = "four-suite"
    EVAL = "eval"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Destination:
    """Where tasks are written, and as what."""

    dialect: Dialect
    path: Path  # a folder for `four-suite`, else a file
    policy: Policy
    environment: Mapping[str, str]  # the variables of the process, which eval files may ask for
    lossy: bool = False  # leave out what the dialect cannot express
    overwrite: bool = False  # write over files that exist


@dataclass(frozen=True)
class Converted:
    """What was written."""

    tasks: int
    files: tuple[Path, ...]
    left_out: tuple[Problem, ...]  # what the dialect cannot express, at the tasks that say it
    renamed: tuple[str, ...]  # tasks that had the id of another: `a is written as b/a`
    not_comparable: tuple[Problem, ...]  # tasks whose earlier results are no baseline any more, and why


def convert(paths: Sequence[Path], destination: Destination) -> Converted:
    """Write the tasks of files and folders as another dialect: all of them, or nothing.

    Raises `InputError` with the problems of the files, or with what cannot be written; `UsageError` where the
    destination cannot be.
    """
    found = tasks_of_paths(paths, destination.policy, destination.environment)
    if found.problems:
        raise InputError(found.problems)
    if not found.tasks:
        raise UsageError(f"no task files in {', '.join(map(str, paths))}: neither tasks nor evals")
    return write_tasks(found.tasks, destination)


def write_tasks(sources: Sequence[SourceTask], destination: Destination) -> Converted:
    """Write tasks that have been read. See `convert`."""
    tasks = _with_own_ids(sources)
    _check_path(destination)
    what, make_output = _DIALECTS[destination.dialect]
    output = make_output(tasks, destination.path)
    # A dangling link does not exist for `exists`, but writing would go to where it points.
    there = [str(file) for file in output.texts if file.exists() or file.is_symlink()]
    if there and not destination.overwrite:
        raise UsageError(f"{', '.join(there[:20])}: there already; --force writes over it")
    not_written = [
        task.problem(loss.path, f"task {task.task.task_id!r}: {loss.reason}")
        for task, losses in zip(tasks, output.losses, strict=True)
        for loss in losses
    ]
    try:
        with staging(output.texts) as staged:
            read = _read_again(output, staged, destination)
            if read.problems:
                # A loss may be the reason why the rest cannot be read, so it is reported first.
                _refuse_losses(not_written, destination)
                raise InputError(list(_unreadable(tasks, output, staged, read)))
            left_out = (*not_written, *_not_read(tasks, output, read.tasks, what))
            _refuse_losses(left_out, destination)
            changed = tuple(no_longer_comparable(sources, read.tasks, output.ids))
            staged.publish()
    except (OSError, UnicodeEncodeError) as error:
        raise UsageError(f"{destination.path} cannot be written: {error}") from error
    renamed = tuple(
        f"{one.origin.file}:{one.origin.line}: {one.task.task_id!r} is written as {other.task.task_id!r}"
        for one, other in zip(sources, tasks, strict=True)
        if one.task.task_id != other.task.task_id
    )
    return Converted(len(tasks), tuple(output.texts), left_out, renamed, changed)


def _refuse_losses(losses: Sequence[Problem], destination: Destination) -> None:
    if losses and not destination.lossy:
        raise InputError([replace(loss, message=f"{loss.message}; --lossy leaves it out") for loss in losses])


def _check_path(destination: Destination) -> None:
    path = destination.path
    if destination.dialect is Dialect.FOUR_SUITE:
        if path.exists() and not path.is_dir():
            raise UsageError(f"--out {path}: task files are written into a folder, and this is a file")
        return
    suffixes = (".jsonl",) if destination.dialect is Dialect.JSONL else (".yaml", ".yml")
    if path.suffix not in suffixes or path.is_dir():
        raise UsageError(f"--out {path}: expected the name of a file that ends in {' or '.join(suffixes)}")
    others = [name for name in sidecar_names(path) if name != path.with_suffix(".yaml") and name.exists()]
    if destination.dialect is Dialect.JSONL and others:
        raise UsageError(f"--out {path}: {others[0]} would be its sidecar too; take another name")


def _with_own_ids(sources: Sequence[SourceTask]) -> list[SourceTask]:
    """Tasks with no id twice. Raises `InputError` for tasks that have the same id whatever is tried."""

    def repeated() -> set[str]:
        return {task_id for task_id, count in Counter(one.task.task_id for one in tasks).items() if count > 1}

    tasks = list(sources)
    # The prompt's name comes first: it is short, while the full id has the file's path in it.
    for own_id in (_id_with_prompt, attrgetter("origin.task_id")):
        ids = repeated()
        tasks = [
            replace(one, task=one.task.model_copy(update={"task_id": own_id(one)})) if one.task.task_id in ids else one
            for one in tasks
        ]
    ids = repeated()
    message = "other tasks have this id too; convert them one by one"
    if ids:
        raise InputError(
            [one.problem("", f"{one.task.task_id!r}: {message}") for one in tasks if one.task.task_id in ids]
        )
    return tasks


def _id_with_prompt(task: SourceTask) -> str:
    _, found, label = task.origin.task_id.rpartition(f"{task.task.task_id}#")
    return f"{task.task.task_id}#{label}" if found else task.task.task_id


def _read_again(output: ConvertedFiles, staged: Staged, destination: Destination) -> Found:
    """The tasks of the written files, in the order in which they were written."""
    if destination.dialect is not Dialect.FOUR_SUITE:
        # The first file names the others: a JSONL file has its sidecar beside it.
        return tests_of_file(next(iter(staged.places)), output.root, destination.policy, destination.environment)
    read = [task_of_file(written, output.root, destination.policy) for written in staged.places]
    return Found(
        tuple(task for one in read for task in one.tasks), tuple(problem for one in read for problem in one.problems)
    )


def _not_read(
    tasks: Sequence[SourceTask], output: ConvertedFiles, read: Sequence[SourceTask], what: str
) -> Iterator[Problem]:
    """What the written files do not say."""
    for task, expected, again in zip(tasks, output.expected, read, strict=True):
        whom = f"task {task.task.task_id!r}"
        for path in differences(expected, serialised_task(again.task, Serialisation(lambda path: path))):
            yield task.problem(path, f"{whom}: {what} has no words for it")
        # What kept the task from a run is lost with it: then a run would take the task for one that it can measure.
        if len(again.origin.cannot_run) < len(task.origin.cannot_run):
            for why in task.origin.cannot_run:
                yield task.problem("", f"{whom} cannot be run, and could be then: {why}")


def _unreadable(tasks: Sequence[SourceTask], output: ConvertedFiles, staged: Staged, read: Found) -> Iterator[Problem]:
    """Problems of written files as problems of the tasks that they come from."""
    names = {str(written.name): place for written, place in staged.places.items()}
    for problem in read.problems:
        place = names.get(Path(problem.file).name)
        task = tasks[_number(problem, place, output)]
        path = re.sub(r"^tests\[\d+\]\.?", "", problem.path)
        yield task.problem(path, f"task {task.task.task_id!r} cannot be written to {place}: {problem.message}")


def _number(problem: Problem, place: Path | None, output: ConvertedFiles) -> int:
    """Which task a problem of a written file is about; the first where it is about all."""
    count, files = len(output.expected), [*output.texts]
    listed = re.match(r"tests\[(\d+)\]", problem.path)
    if listed:
        return min(int(listed[1]), count - 1)
    if place is not None and len(files) == count:
        return files.index(place)
    return min(problem.line, count) - 1 if place is not None and place.suffix == ".jsonl" else 0  # a line is a task


_DIALECTS: Mapping[Dialect, tuple[str, Callable[[Sequence[SourceTask], Path], ConvertedFiles]]] = {
    Dialect.FOUR_SUITE: ("a task file", four_suite_output),
    Dialect.EVAL: ("EVAL.yaml", eval_output),
    Dialect.JSONL: ("JSONL", lines_output),
}
