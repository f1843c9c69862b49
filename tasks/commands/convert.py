"""Convert: tasks of any dialect in, files of one dialect out. What is written is read again before it counts."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
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
    path: Path
    """A folder for `four-suite`, else a file."""
    policy: Policy
    environment: Mapping[str, str]
    """The variables of the process, which eval files may ask for."""
    lossy: bool = False
    """Whether to leave out what the dialect cannot say."""
    overwrite: bool = False
    """Whether to write over files that are there."""


@dataclass(frozen=True)
class Converted:
    """What was written."""

    tasks: int
    files: tuple[Path, ...]
    left_out: tuple[Problem, ...]
    """What the dialect cannot say, at the tasks that say it."""
    renamed: tuple[str, ...]
    """Tasks that had the id of another, as in `a is written as b/a`."""
    not_comparable: tuple[Problem, ...]
    """Tasks for which earlier results are no baseline any more, and why."""


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
    """The same for tasks that have been read."""
    tasks = _with_own_ids(sources)
    output = _OUTPUTS[destination.dialect](tasks, _checked(destination))
    _refuse_existing([*output.texts], destination)
    not_written = _not_written(tasks, output)
    try:
        with staging(output.texts) as staged:
            try:
                read = _read(tasks, output, staged, destination)
            except InputError:
                _refuse_losses(not_written, destination)  # which may be why the rest is wrong
                raise
            left_out = (*not_written, *_not_read(tasks, output, read, destination))
            _refuse_losses(left_out, destination)
            changed = tuple(no_longer_comparable(sources, read, output.ids))
            staged.publish()
    except (OSError, UnicodeEncodeError) as error:
        raise UsageError(f"{destination.path} cannot be written: {error}") from error
    return Converted(len(tasks), tuple(output.texts), left_out, tuple(_renamed(sources, tasks)), changed)


def _refuse_losses(losses: Sequence[Problem], destination: Destination) -> None:
    if losses and not destination.lossy:
        raise InputError([replace(loss, message=f"{loss.message}; --lossy leaves it out") for loss in losses])


def _refuse_existing(files: Sequence[Path], destination: Destination) -> None:
    there = [str(file) for file in files if file.exists() or file.is_symlink()]
    if there and not destination.overwrite:
        raise UsageError(f"{', '.join(there[:20])}: there already; --force writes over it")


def _checked(destination: Destination) -> Path:
    """The path of a destination, which its dialect can be written to."""
    path = destination.path
    if destination.dialect is Dialect.FOUR_SUITE:
        if path.exists() and not path.is_dir():
            raise UsageError(f"--out {path}: task files are written into a folder, and this is a file")
        return path
    suffixes = (".jsonl",) if destination.dialect is Dialect.JSONL else (".yaml", ".yml")
    if path.suffix not in suffixes or path.is_dir():
        raise UsageError(f"--out {path}: expected the name of a file that ends in {' or '.join(suffixes)}")
    others = [name for name in sidecar_names(path) if name != path.with_suffix(".yaml") and name.exists()]
    if destination.dialect is Dialect.JSONL and others:
        raise UsageError(f"--out {path}: {others[0]} would be its sidecar too; take another name")
    return path


def _with_own_ids(tasks: Sequence[SourceTask]) -> list[SourceTask]:
    """Tasks with no id twice: those of several prompts have the prompt's name in theirs, others their file's too."""
    for rename in (_with_prompt, lambda task: _renamed_to(task, task.origin.task_id)):
        counts = Counter(task.task.task_id for task in tasks)
        tasks = [rename(task) if counts[task.task.task_id] > 1 else task for task in tasks]
    counts = Counter(task.task.task_id for task in tasks)
    repeated = [task for task in tasks if counts[task.task.task_id] > 1]
    if repeated:
        message = "other tasks have this id too; convert them one by one"
        raise InputError([task.problem("", f"{task.task.task_id!r}: {message}") for task in repeated])
    return list(tasks)


def _with_prompt(task: SourceTask) -> SourceTask:
    _, found, label = task.origin.task_id.rpartition(f"{task.task.task_id}#")
    return _renamed_to(task, f"{task.task.task_id}#{label}") if found else task


def _renamed_to(task: SourceTask, task_id: str) -> SourceTask:
    return replace(task, task=task.task.model_copy(update={"task_id": task_id}))


def _renamed(before: Sequence[SourceTask], after: Sequence[SourceTask]) -> Iterator[str]:
    for one, other in zip(before, after, strict=True):
        if one.task.task_id != other.task.task_id:
            yield f"{one.origin.file}:{one.origin.line}: {one.task.task_id!r} is written as {other.task.task_id!r}"


def _not_written(tasks: Sequence[SourceTask], output: ConvertedFiles) -> tuple[Problem, ...]:
    """What is known to be missing before anything is read again."""
    return tuple(
        task.problem(loss.path, f"task {task.task.task_id!r}: {loss.reason}")
        for task, losses in zip(tasks, output.losses, strict=True)
        for loss in losses
    )


def _read(
    tasks: Sequence[SourceTask], output: ConvertedFiles, staged: Staged, destination: Destination
) -> tuple[SourceTask, ...]:
    """The tasks of the written files. Raises `InputError` where they cannot be read."""
    read = _READERS[destination.dialect](output, staged, destination)
    if read.problems:
        raise InputError(list(_unreadable(tasks, output, staged, read)))
    return read.tasks


def _not_read(
    tasks: Sequence[SourceTask], output: ConvertedFiles, read: Sequence[SourceTask], destination: Destination
) -> tuple[Problem, ...]:
    """What the written files do not say."""
    lost: list[Problem] = []
    for task, expected, again in zip(tasks, output.expected, read, strict=True):
        whom = f"task {task.task.task_id!r}"
        message = f"{whom}: {_WHAT[destination.dialect]} has no words for it"
        lost += [
            task.problem(path, message) for path in differences(expected, serialised_task(again.task, _SERIALISATION))
        ]
        if len(again.origin.cannot_run) < len(task.origin.cannot_run):
            lost += [
                task.problem("", f"{whom} cannot be run, and could be then: {why}") for why in task.origin.cannot_run
            ]
    return tuple(lost)


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
    return min(problem.line, count) - 1 if place is not None and place.suffix == ".jsonl" else 0


def _read_each(output: ConvertedFiles, staged: Staged, destination: Destination) -> Found:
    read = [task_of_file(written, output.root, destination.policy) for written in staged.places]
    return Found(
        tuple(task for one in read for task in one.tasks), tuple(problem for one in read for problem in one.problems)
    )


def _read_first(output: ConvertedFiles, staged: Staged, destination: Destination) -> Found:
    return tests_of_file(next(iter(staged.places)), output.root, destination.policy, destination.environment)


_SERIALISATION = Serialisation(lambda path: path)
_WHAT = {Dialect.FOUR_SUITE: "a task file", Dialect.EVAL: "EVAL.yaml", Dialect.JSONL: "JSONL"}
_OUTPUTS: Mapping[Dialect, Callable[[Sequence[SourceTask], Path], ConvertedFiles]] = {
    Dialect.FOUR_SUITE: four_suite_output,
    Dialect.EVAL: eval_output,
    Dialect.JSONL: lines_output,
}
_READERS: Mapping[Dialect, Callable[[ConvertedFiles, Staged, Destination], Found]] = {
    Dialect.FOUR_SUITE: _read_each,
    Dialect.EVAL: _read_first,
    Dialect.JSONL: _read_first,
}
