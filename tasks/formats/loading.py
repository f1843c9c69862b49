"""Files in, tasks and policies out."""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TypeVar

from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.document import DocumentPath, SourceTexts, format_path, read_document
from passgate.tasks.formats.folder import NamedFile, folder_files, path_files
from passgate.tasks.formats.four_suite import Loaded, Origin, TaskReader, shown_path, together
from passgate.tasks.formats.project_files import (
    PINS_FILE,
    PRICES_FILE,
    QUARANTINE_FILE,
    read_pins,
    read_policy,
    read_prices,
    read_quarantine,
)
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.policy import Policy, QuarantineFile
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import EvalTask, TaskFile

Read = TypeVar("Read")


@contextmanager
def _no_collection() -> Iterator[None]:
    # Hardly anything that reading makes is garbage; looking for it all the while takes a fifth of its time.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True)
class SourceTask:
    """A task, and where it comes from."""

    task: TaskFile
    root: Path  # the suites folder that its paths are relative to, absolute
    origin: Origin

    def problem(self, path: str, message: str) -> Problem:
        """Return a problem with this task."""
        return Problem(file=self.origin.file, line=self.origin.line, column=1, path=path, message=message)


@dataclass(frozen=True)
class Found:
    """The tasks of a file and its problems."""

    tasks: tuple[SourceTask, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_eval_file(file: Path, root: Path, policy: Policy, environment: Mapping[str, str]) -> Found:
    """Return the tests of an eval file."""
    from passgate.tasks.formats.evals.reader import EvalReader

    shown = partial(shown_path, working_folder=Path.cwd())
    tests, documents = EvalReader(root, policy, environment, shown).tests(file)
    tasks = tuple(SourceTask(test.task, root, origin) for test, origin in tests)
    return Found(tasks, tuple(dict.fromkeys(documents.complaints.problems)))


def read_task_file(file: Path, root: Path, policy: Policy) -> Found:
    """Return the task of a task file; what passgate cannot read, or does not know, is a problem."""
    answer = TaskReader(root, policy, working_folder=Path.cwd()).task_file(file)
    unread = (*answer.problems, *answer.unread, *answer.warnings)
    if answer.task is None or unread:
        return Found(problems=unread)
    return Found((SourceTask(answer.task, root, answer.origin),))


def load_policy(file: Path) -> Policy:
    """Read a gates file. Raises `UsageError` when there is none, `InputError` with all its problems."""
    if not file.exists():
        raise UsageError(f"no gates file {file}: name one with --gates, or make one with `passgate init`")
    return _load(file, read_policy)


def _load(file: Path, read: Callable[[Path, str], Read | list[Problem]]) -> Read:
    """Return what a file holds. Raises `InputError` when that is problems."""
    answer = read(file, shown_path(file, Path.cwd()))
    if isinstance(answer, list):
        raise InputError(answer)
    return answer


def policy_or_default(file: Path) -> Policy:
    """Return the policy of a gates file, or the shipped one as `policy_of_run`. Raises as `load_policy`."""
    return policy_of_run(file)[0]


def policy_of_run(gates: Path, named: Path | None = None) -> tuple[Policy, bool]:
    """Return the policy that a run goes by, and whether it is the one that passgate ships: where no gates file is named
    and there is none of the usual name. `named` is what the user calls the file, where that is not its path. Raises as
    `load_policy`.
    """
    is_shipped = (named or gates) == Path(RunRequest().gates) and not gates.exists()
    if not is_shipped:
        return load_policy(gates), False
    with as_file(files("passgate").joinpath("gates.yaml")) as shipped:
        return load_policy(shipped), True


def load_prices(gates: Path) -> PriceTable:
    """Return the prices beside the gates file before the shipped ones. Raises `InputError`."""
    with as_file(files("passgate").joinpath("tasks", "metering", PRICES_FILE)) as shipped:
        prices = load_price_table(shipped)
    own = gates.parent / PRICES_FILE
    return load_price_table(own).over(prices) if own.exists() else prices


def load_price_table(file: Path) -> PriceTable:
    """Read one table of prices. Raises `InputError` with all its problems."""
    return _load(file, read_prices)


def load_quarantine(gates: Path, tasks: Sequence[EvalTask]) -> QuarantineFile:
    """Return the tasks that do not block for a while: quarantine.yaml beside the gates file, empty where there is none,
    its tasks as `suite/task_id`. `tasks` are all those of the suites folder.

    Raises `InputError` with all its problems.
    """
    file = gates.parent / QUARANTINE_FILE
    if not file.exists():
        return QuarantineFile()
    return _load(file, partial(read_quarantine, today=datetime.now(UTC).date(), tasks=tasks))


def load_pins(gates: Path) -> Pins | None:
    """Return what baseline.yaml beside the gates file pins, if there is one. Raises `InputError`."""
    file = gates.parent / PINS_FILE
    return load_pins_file(file) if file.exists() else None


def load_pins_file(file: Path) -> Pins:
    """Read one baseline.yaml. Raises `InputError` with all its problems."""
    return _load(file, read_pins)


def load_tasks(suites_folder: Path, policy: Policy) -> tuple[EvalTask, ...]:
    """Read every task of a suites folder. Raises `InputError` with the problems of all files together."""
    return load_folder(suites_folder, policy).tasks


@_no_collection()
def load_folder(
    suites_folder: Path, policy: Policy, working_folder: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Loaded:
    """Return what the files of a suites folder hold, named as seen from `working_folder`, where that is not the
    process's own.

    `environment` are the variables that eval files may use. Raises as `load_tasks`.
    """
    if not suites_folder.is_dir():
        raise UsageError(f"no suites folder {suites_folder}: name one with --suites, or make one with `passgate init`")
    sources = SourceTexts()
    found = folder_files(suites_folder, environment, sources)
    named = [NamedFile(suites_folder, file, is_eval=False) for file in found.tasks]
    named += [NamedFile(suites_folder, file, is_eval=True) for file in found.evals]
    named.sort(key=lambda one: one.file)
    loaded = _read_files(named, sources, policy, working_folder or Path.cwd(), environment)
    if loaded.problems:
        raise InputError(loaded.problems)
    return loaded


@_no_collection()
def load_paths(paths: Iterable[Path], policy: Policy) -> Loaded:
    """Read the tasks of files and folders: those that are right, and every problem of the others."""
    sources = SourceTexts()
    named, others = path_files(paths, os.environ, sources)
    by_root: dict[Path, list[NamedFile]] = {}
    for file in named:
        by_root.setdefault(file.root, []).append(file)
    read = [_read_files(files, sources, policy, Path.cwd(), os.environ) for files in by_root.values()]
    return together([*read, Loaded(others=others)])


def _read_files(
    files: Sequence[NamedFile], sources: SourceTexts, policy: Policy, here: Path, environment: Mapping[str, str]
) -> Loaded:
    """Return the tasks of files of one suites folder. A duplicate task id is a problem."""
    if not files:
        return Loaded()
    task_files = TaskReader(files[0].root, policy, working_folder=here, sources=sources)
    eval_files, shown_as = None, partial(shown_path, working_folder=here.absolute())
    read: list[Loaded] = []
    for one in files:
        shown = shown_as(one.file).encode("utf-8", "backslashreplace").decode()
        if shown != shown_as(one.file):
            message = "the name of the file is not UTF-8 text: rename it"
            read.append(Loaded(problems=(Problem(file=shown, line=1, column=1, path="", message=message),), files=1))
        elif one.is_eval:
            # Imported late: most suites have no eval files.
            from passgate.tasks.formats.evals.reader import EvalReader

            eval_files = eval_files or EvalReader(one.root, policy, environment, shown_as)
            read.append(eval_files.read(one.file))
        else:
            task, said = task_files.read(one.file)
            cannot_run = (*said.unread, *said.missing)
            read.append(Loaded((task,) if task else (), said.problems, said.warnings, cannot_run, files=1))
    loaded = together(read)
    tasks: dict[str, EvalTask] = {}
    repeated: list[Problem] = []
    for task in loaded.tasks:
        first = tasks.setdefault(task.task_id, task)
        if first is not task:
            message = f"{task.task_id!r} is also the task_id of {first.file}:{first.line}"
            repeated.append(Problem(file=task.file, line=task.line, column=1, path="task_id", message=message))
    return replace(loaded, tasks=tuple(tasks.values()), problems=(*loaded.problems, *repeated))


def refuse_what_cannot_run(tasks: Sequence[EvalTask], loaded: Loaded) -> None:
    """Raise `InputError` with everything that these of the loaded tasks need and passgate does not support."""
    reasons = {reason for task in tasks for reason in task.cannot_run}
    missing = [problem for problem in loaded.cannot_run if str(problem) in reasons]
    if missing:
        raise InputError(missing)


def grader_problem(task: EvalTask, place: int | None, message: str) -> Problem:
    """Return a problem with a task's grader at a place, counted from 0; with all of them if that is `None`.

    It stands at the grader's line in a task file; an eval file has it where the test begins, which it names.
    """
    path: DocumentPath = ("graders",) if place is None else ("graders", place)
    document = read_document(Path(task.file), task.file)
    if isinstance(document.data, dict) and document.data.get("task_id") == task.task_id:
        return document.problem(path, message)
    told = f"{task.own_id}: {message}"
    return Problem(file=task.file, line=task.line, column=1, path=format_path(path), message=told)
