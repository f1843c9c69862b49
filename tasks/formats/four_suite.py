"""The four-suite dialect, one task per YAML file, and how a task of any dialect becomes the one that the pipeline uses.

The schema leaves most of a task free. Every file that it accepts is a task: what passgate cannot read is left out of
it, and told.
"""

import copy
import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.document import Document, DocumentPath, SourceTexts, format_path, read_document
from passgate.tasks.formats.findings import read_text
from passgate.tasks.formats.rules import asked_messages, fill_texts, findings, sandbox_names
from passgate.tasks.formats.schema_check import (
    Difference,
    check_schema,
    difference_problem,
    differences,
    model_differences,
    schema_validator,
    surely_valid,
)
from passgate.tasks.model.assertions import LlmGrader, Unavailable
from passgate.tasks.model.graders import Composite, Grader, Turns, all_graders
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.policy import Policy, SuitePolicy
from passgate.tasks.model.sandbox import SANDBOXES
from passgate.tasks.model.task import Budgets, EvalTask, GateName, GateSelection, TaskFile, TrackedMetrics, UnknownPart
from passgate.tasks.model.trial import metric_columns

_AS_IN_THE_FILE = (
    *("suite", "description", "tags", "inputs", "graders", "reference", "scoring", "criteria", "expected_output"),
    *("expected_messages", "note", "metadata", "target"),
)
_AS_IN_THE_ENVIRONMENT = ("sandbox", "network", "tools", "mcp_servers", "replay", "user", "workspace")


@dataclass(frozen=True)
class Origin:
    """Where a task comes from, and what is known of it beside what its file says."""

    task_id: str  # unique among all tasks of the suites folder
    file: str
    line: int
    suite_assumed: bool = False
    cannot_run: tuple[str, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()


@dataclass(frozen=True)
class Loaded:
    """What files hold: their tasks, and what there is to say of the files."""

    tasks: tuple[EvalTask, ...] = ()  # those that are right
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    cannot_run: tuple[Problem, ...] = ()  # what tasks need and passgate does not support
    files: int = 0  # files that were read
    others: tuple[Path, ...] = ()  # files of folders that are neither tasks nor evals
    outside: frozenset[str] = frozenset()  # where eval files look outside of the suites folder, relative to it


def together(read: Sequence[Loaded]) -> Loaded:
    """Return what several files hold; problems that they share are one."""
    lists = ("problems", "warnings", "cannot_run")
    return Loaded(
        tasks=tuple(task for one in read for task in one.tasks),
        files=sum(one.files for one in read),
        others=tuple(file for one in read for file in one.others),
        outside=frozenset(place for one in read for place in one.outside),
        **{name: tuple(dict.fromkeys(item for one in read for item in getattr(one, name))) for name in lists},
    )


def normalise(
    task: TaskFile, messages: Sequence[TaskMessage], origin: Origin, policy: Policy, digests: FileDigests
) -> EvalTask:
    """Return a task with the defaults of its suite; `messages` are its inputs' with what files held."""
    suite = policy.suites[task.suite]
    environment = task.environment
    return EvalTask(
        **{name: getattr(task, name) for name in _AS_IN_THE_FILE},
        **{name: getattr(environment, name) for name in _AS_IN_THE_ENVIRONMENT},
        task_id=origin.task_id,
        reset=environment.reset.commands,
        budgets=_limits(environment.budgets, suite),
        k=task.trials.k or suite.k,
        metric=task.trials.metric or suite.metric,
        tracked_metrics=_columns(task.tracked_metrics),
        gates=_gates(task.gates),
        messages=tuple(messages),
        test_id="" if task.task_id == origin.task_id else task.task_id,
        suite_assumed=origin.suite_assumed,
        cannot_run=origin.cannot_run,
        unknown=origin.unknown,
        file=origin.file,
        line=origin.line,
        task_digest=digests.task(task, messages),
        grader_digest=digests.graders(task),
    )


@cache
def _limits(budgets: Budgets, suite: SuitePolicy) -> Budgets:
    return budgets.over(Budgets(max_steps=suite.max_steps).over(suite.budgets))


@cache
def _columns(tracked: tuple[str | TrackedMetrics, ...]) -> tuple[str, ...]:
    columns: dict[str, Any] = {}
    for item in tracked:
        names = (item.metrics or (item.type,)) if isinstance(item, TrackedMetrics) else (item,)
        columns |= dict.fromkeys(column for name in names for column in metric_columns(name))
    return tuple(columns)


@cache
def _gates(selection: GateSelection) -> frozenset[GateName]:
    takes = (selection.ci_merge_gate, selection.nightly, selection.release_candidate)
    gates = (GateName.CI_MERGE, GateName.NIGHTLY, GateName.RELEASE_CANDIDATE)
    return frozenset(itertools.compress(gates, takes))


_OPEN: Final[frozenset[DocumentPath]] = frozenset(
    [(), ("environment",), ("environment", "reset"), ("environment", "budgets"), ("trials",), ("gates",)]
)  # the mappings with free keys
_NEEDED: Final = frozenset({"task_id", "suite", "description"})  # where one of these is wrong there is no task
_UNREADABLE: Final = "unreadable"  # no metric and no kind of grader has this name


class TaskShape:
    """What a document says of a task, as far as passgate reads it, and what there is to say of the rest."""

    def __init__(self, document: Document) -> None:
        self.problems: list[Problem] = list(document.problems)
        self.cannot_run: list[Problem] = []
        self.warnings: list[Problem] = []
        self.unknown: list[UnknownPart] = []
        self._left_out: set[DocumentPath] = set()
        self._document = document
        self._data = document.data
        self._task: TaskFile | None = None  # until something is left out
        if self.problems:
            return
        task = surely_valid(TaskFile, document.data)
        # A task of an eval file has no metrics, so that the model does not ask for one as the schema does.
        if task is not None and task.tracked_metrics:
            self._task = task
            return
        found = differences(document.data, schema_validator("task"))
        # What every task has, with every runner.
        floor = differences(document.data, schema_validator("four_suite")) if found else ()
        if {difference.path for difference in floor} & {difference.path for difference in found}:
            self.problems += dict.fromkeys(difference_problem(document, difference) for difference in found)
        else:
            self.leave_out(found)

    def task(self) -> TaskFile | None:
        """Return the task without what was left out; `None` where there are problems."""
        while self._task is None and not self.problems:
            try:
                self._task = TaskFile.model_validate(self._data)
            except ValidationError as error:
                # What the schema does not say: keys that exclude each other, numbers that fit into no machine's word.
                found = model_differences(error)
                left_out = len(self._left_out)
                self.leave_out(found)
                if len(self._left_out) == left_out:
                    self.problems += [difference_problem(self._document, difference) for difference in found]
        return None if self.problems else self._task

    def leave_out(self, found: Iterable[Difference]) -> None:
        """Take out of the task what is wrong, and say of each part what that means."""
        parts = {part for difference in found if (part := self._leave_out_part(difference))}
        if parts:
            self.take_out({part for part in parts if not _is_below(part, parts)})
            self._left_out |= parts

    def take_out(self, parts: Iterable[DocumentPath]) -> None:
        """Take parts out of the task, without a word."""
        self._data, self._task = copy.deepcopy(self._data), None
        for *above, key in parts:
            container = reduce(getitem, above, self._data)
            if not isinstance(key, int):
                del container[key]
            # An item of a list has one in its place that is known to be none, so that the others keep their places.
            elif above == ["graders"]:
                kind = container[key].get("type") if isinstance(container[key], dict) else None
                container[key] = {"type": "unavailable", "kind": str(kind or _UNREADABLE)}
            else:
                container[key] = {"type": _UNREADABLE} if above == ["tracked_metrics"] else _UNREADABLE

    def read_graders(self, task: TaskFile) -> tuple[Grader, ...]:
        """Return the graders of the task without those that stand for what cannot be read."""
        return tuple(grader for index, grader in enumerate(task.graders) if ("graders", index) not in self._left_out)

    def _leave_out_part(self, difference: Difference) -> DocumentPath:
        """Say what is wrong. Return the part of the document that goes with it; an empty path for all of it."""
        problem, path = difference_problem(self._document, difference), difference.path
        if not path or path[0] in _NEEDED:
            self.problems.append(problem)
            return ()
        # A key that is not known where keys are free. A misspelt one is none: a limit that is misspelt is not held.
        is_free = difference.is_unknown_key and path[:-1] in _OPEN and not difference.is_misspelt
        part = path if is_free else path[: _part_length(path)]
        if part in self._left_out or _is_below(part, self._left_out):
            return ()
        if path[0] == "tracked_metrics" or is_free:
            value = reduce(getitem, part, self._document.data)
            self.unknown.append(UnknownPart(path=format_path(part), value=value))
            self.warnings.append(replace(problem, message=f"{problem.message} (recorded, without effect)"))
        else:
            self.cannot_run.append(problem)
        return part


def _part_length(path: DocumentPath) -> int:
    """Return how much of a path leads to the part of a task that is left out for something wrong at the path."""
    match path:
        case ("tracked_metrics", int(), "metrics", int(), *_):
            return 4
        case ("tracked_metrics" | "graders", int(), *_) | ("environment" | "inputs", str(), *_):
            return 2
        case _:
            return 1


def _is_below(part: DocumentPath, parts: Collection[DocumentPath]) -> bool:
    return any(part[:length] in parts for length in range(1, len(part)))


@dataclass(frozen=True)
class ReadTaskFile:
    """What a task file says, and what there is to say of it."""

    task: TaskFile | None  # without what passgate cannot read; `None` where there are problems
    origin: Origin
    problems: tuple[Problem, ...] = ()
    unread: tuple[Problem, ...] = ()  # what is left out of the task, and keeps it from being run
    missing: tuple[Problem, ...] = ()  # graders that passgate does not have
    warnings: tuple[Problem, ...] = ()


class TaskReader:
    """Reads task files of one suites folder under one policy."""

    def __init__(
        self, suites_folder: Path, policy: Policy, *, working_folder: Path, sources: SourceTexts | None = None
    ) -> None:
        self._suites_folder = suites_folder.absolute()
        self._policy = policy
        self._working_folder = working_folder.absolute()
        self._sources = sources
        self._digests = FileDigests(self._suites_folder)
        self._sandboxes: dict[str, list[Problem]] = {}

    def read(self, file: Path) -> tuple[EvalTask | None, ReadTaskFile]:
        """Return the task of a file as the pipeline uses it, and what there is to say of the file."""
        answer = self.task_file(file)
        if answer.task is None:
            return None, answer
        task, messages = fill_files(answer.task, self._suites_folder), asked_messages(answer.task, self._suites_folder)
        return normalise(task, messages, answer.origin, self._policy, self._digests), answer

    def task_file(self, file: Path) -> ReadTaskFile:
        """Return what a file says."""
        document = read_document(file, shown_path(file, self._working_folder), self._sources)
        shape = TaskShape(document)
        said = shape.task()
        if said is not None:
            found = findings(said, file.absolute(), self._suites_folder, self._policy)
            shape.leave_out(Difference(path, message) for path, message in found)
            if sandbox_problems := self._sandbox_problems(said.environment.sandbox):
                shape.cannot_run += sandbox_problems
                shape.take_out([("environment", "sandbox")])
            said = shape.task()
        if said is None:
            problems = tuple(dict.fromkeys([*shape.problems, *shape.cannot_run]))
            return ReadTaskFile(None, Origin("", document.file, 1), problems)
        line = document.key_line("task_id")
        kinds = [grader.kind for grader in all_graders(shape.read_graders(said)) if isinstance(grader, Unavailable)]
        whole = Problem(file=document.file, line=line, column=1, path="graders", message="")
        missing = tuple(replace(whole, message=f"passgate has no evaluator {kind!r}") for kind in kinds)
        unread = tuple(dict.fromkeys(shape.cannot_run))
        reasons = tuple(map(str, (*unread, *missing)))
        origin = Origin(said.task_id, document.file, line, cannot_run=reasons, unknown=tuple(shape.unknown))
        return ReadTaskFile(said, origin, unread=unread, missing=missing, warnings=tuple(shape.warnings))

    def _sandbox_problems(self, name: str | None) -> list[Problem]:
        """Return what is wrong with the description of a sandbox; each sandbox is read once."""
        if name is None:
            return []
        if name not in self._sandboxes:
            file, problems = self._suites_folder / SANDBOXES / name / "sandbox.yaml", list[Problem]()
            if name in sandbox_names(self._suites_folder) and file.is_file():
                document = read_document(file, shown_path(file, self._working_folder))
                problems = document.problems or check_schema(document, schema_validator("sandbox"))
            self._sandboxes[name] = problems
        return self._sandboxes[name]


def fill_files(task: TaskFile, root: Path) -> TaskFile:
    """Return a task with what its files hold: those of the expected messages and the prompts of judges."""
    messages, graders = fill_texts(task.expected_messages, root), _fill_prompts(task.graders, root)
    return task.model_copy(update={"expected_messages": messages, "graders": graders})


def _fill_prompts(graders: tuple[Grader, ...], root: Path) -> tuple[Grader, ...]:
    found: list[Grader] = []
    for grader in graders:
        update: dict[str, Any] = {}
        if isinstance(grader, LlmGrader) and grader.prompt_file is not None and not grader.prompt:
            update["prompt"] = read_text(root / grader.prompt_file)
        elif isinstance(grader, Composite):
            update["assertions"] = _fill_prompts(grader.assertions, root)
        elif isinstance(grader, Turns):
            asserted = [(turn, _fill_prompts(turn.assertions, root)) for turn in grader.turns]
            update["turns"] = tuple(turn.model_copy(update={"assertions": members}) for turn, members in asserted)
            update["conversation"] = _fill_prompts(grader.conversation, root)
        found.append(grader.model_copy(update=update) if update else grader)
    return tuple(found)


def shown_path(file: Path, working_folder: Path) -> str:
    """Return a path as users know it: relative to the working folder when it lies inside."""
    absolute = file.absolute()
    return str(absolute.relative_to(working_folder) if absolute.is_relative_to(working_folder) else absolute)
