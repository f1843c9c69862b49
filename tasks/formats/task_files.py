"""Files and folders as the tasks that they hold, each as a task file has it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.read.folder import files_of_paths
from passgate.tasks.formats.evals.read.recognise import is_eval
from passgate.tasks.formats.evals.reader import EvalReader
from passgate.tasks.formats.four_suite import TaskReader, shown_path
from passgate.tasks.formats.normalise import Origin
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import TaskFile


@dataclass(frozen=True)
class SourceTask:
    """A task, and where it comes from."""

    task: TaskFile
    root: Path
    """The suites folder that its paths are relative to, absolute."""
    origin: Origin

    def problem(self, path: str, message: str) -> Problem:
        """A problem with this task."""
        return Problem(file=self.origin.file, line=self.origin.line, column=1, path=path, message=message)


@dataclass(frozen=True)
class Found:
    """The tasks of a file and its problems."""

    tasks: tuple[SourceTask, ...] = ()
    problems: tuple[Problem, ...] = ()


def tasks_of_paths(paths: Iterable[Path], policy: Policy, environment: Mapping[str, str]) -> Found:
    """The tasks of files and folders of any dialect, in order, with the problems of all of them.

    `environment` are the variables of the process.
    """
    named = files_of_paths(paths, environment)
    found = [tasks_of_file(file, root, policy, environment) for root, file in named.read]
    return Found(
        tuple(task for one in found for task in one.tasks),
        tuple(dict.fromkeys(problem for one in found for problem in one.problems)),
    )


def tasks_of_file(file: Path, root: Path, policy: Policy, environment: Mapping[str, str]) -> Found:
    """The tasks of one file of any dialect, with its paths relative to a suites folder."""
    if is_eval(file):
        return tests_of_file(file, root, policy, environment)
    return task_of_file(file, root, policy)


def tests_of_file(file: Path, root: Path, policy: Policy, environment: Mapping[str, str]) -> Found:
    """The tests of an eval file."""
    working_folder = Path.cwd()
    reader = EvalReader(root, policy, environment, lambda path: shown_path(path, working_folder))
    said, complaints = reader.task_files(file)
    tasks = tuple(SourceTask(task, root, origin) for task, origin in said)
    return Found(tasks, tuple(complaints.problems))


def task_of_file(file: Path, root: Path, policy: Policy) -> Found:
    """The task of a task file. What passgate cannot read, or does not know, it cannot write either: a problem."""
    answer = TaskReader(root, policy, working_folder=Path.cwd()).task_file(file)
    unread = [*answer.problems, *answer.unread, *answer.warnings]
    if answer.task is None or unread:
        return Found(problems=tuple(unread))
    return Found((SourceTask(answer.task, root, answer.origin),))
