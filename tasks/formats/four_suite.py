"""The four-suite dialect: one task per YAML file."""

from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests, all_graders
from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.normalise import Origin, normalised
from passgate.tasks.formats.rules import SANDBOXES, Surroundings, findings, sandbox_names
from passgate.tasks.formats.schema_check import Difference, check_schema, schema_validator
from passgate.tasks.formats.task_messages import asked_messages, with_texts
from passgate.tasks.formats.task_shape import TaskSchemas, TaskShape
from passgate.tasks.formats.text_files import read_text
from passgate.tasks.model.assertions import LlmGrader, Unavailable
from passgate.tasks.model.graders import Composite, Grader, Turns
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask, TaskFile


@dataclass(frozen=True)
class ReadTaskFile:
    """What a task file says, and what there is to say of it."""

    task: TaskFile | None
    """Without what passgate cannot read; `None` where there are problems."""
    origin: Origin
    problems: tuple[Problem, ...] = ()
    unread: tuple[Problem, ...] = ()
    """What is left out of the task, and keeps it from being run."""
    missing: tuple[Problem, ...] = ()
    """Graders that passgate does not have."""
    warnings: tuple[Problem, ...] = ()

    @property
    def cannot_run(self) -> tuple[Problem, ...]:
        """All that keeps the task from being run."""
        return (*self.unread, *self.missing)


class TaskReader:
    """Reads task files of one suites folder under one policy."""

    def __init__(self, suites_folder: Path, policy: Policy, *, working_folder: Path) -> None:
        self._suites_folder = suites_folder.absolute()
        self._policy = policy
        self._working_folder = working_folder.absolute()
        self._digests = FileDigests(self._suites_folder)
        self._schemas = TaskSchemas()
        self._sandboxes: dict[str, list[Problem]] = {}

    def read(self, file: Path) -> tuple[EvalTask | None, ReadTaskFile]:
        """The task of a file as the pipeline uses it, and what there is to say of the file."""
        answer = self.task_file(file)
        return (None if answer.task is None else self._normalised(answer.task, answer.origin)), answer

    def task_file(self, file: Path) -> ReadTaskFile:
        """What a file says."""
        document = read_document(file, shown_path(file, self._working_folder))
        shape = TaskShape(document, self._schemas)
        said = shape.task()
        if said is not None:
            around = Surroundings(file.absolute(), self._suites_folder, self._policy)
            shape.leave_out(Difference(path, message) for path, message in findings(said, around))
            sandbox_problems = self._sandbox_problems(said.environment.sandbox)
            if sandbox_problems:
                shape.leave_out_sandbox(sandbox_problems)
        return _as_read(document, shape)

    def _sandbox_problems(self, name: str | None) -> list[Problem]:
        """What is wrong with the description of a sandbox; each sandbox is read once."""
        if name is None:
            return []
        if name not in self._sandboxes:
            self._sandboxes[name] = self._described_problems(name)
        return self._sandboxes[name]

    def _described_problems(self, name: str) -> list[Problem]:
        file = self._suites_folder / SANDBOXES / name / "sandbox.yaml"
        if name not in sandbox_names(self._suites_folder) or not file.is_file():
            return []
        document = read_document(file, shown_path(file, self._working_folder))
        return document.problems or check_schema(document, schema_validator("sandbox"))

    def _normalised(self, task: TaskFile, origin: Origin) -> EvalTask:
        return normalised(
            with_files(task, self._suites_folder),
            asked_messages(task, self._suites_folder),
            origin,
            self._policy,
            self._digests,
        )


def _as_read(document: Document, shape: TaskShape) -> ReadTaskFile:
    task = shape.task()
    if task is None:
        problems = tuple(dict.fromkeys([*shape.problems, *shape.cannot_run]))
        return ReadTaskFile(None, Origin("", document.file, 1), problems)
    line = document.keys[("task_id",)].line
    missing = missing_graders(shape.read_graders(task), document.file, line)
    unread = tuple(dict.fromkeys(shape.cannot_run))
    reasons = tuple(map(str, (*unread, *missing)))
    origin = Origin(task.task_id, document.file, line, cannot_run=reasons, unknown=tuple(shape.unknown))
    return ReadTaskFile(task, origin, unread=unread, missing=missing, warnings=tuple(shape.warnings))


def with_files(task: TaskFile, root: Path) -> TaskFile:
    """A task with what its files hold: those of the expected messages and the prompts of judges."""
    changed = {
        "expected_messages": with_texts(task.expected_messages, root),
        "graders": tuple(with_prompt(grader, root) for grader in task.graders),
    }
    return task.model_copy(update=changed)


def with_prompt(grader: Grader, root: Path) -> Grader:
    """A grader, and those that it is made of, with the prompts of their files."""
    if isinstance(grader, LlmGrader) and grader.prompt_file is not None and not grader.prompt:
        return grader.model_copy(update={"prompt": read_text(root / grader.prompt_file)})
    if isinstance(grader, Composite):
        return grader.model_copy(update={"assertions": _with_prompts(grader.assertions, root)})
    if isinstance(grader, Turns):
        turns = [turn.model_copy(update={"assertions": _with_prompts(turn.assertions, root)}) for turn in grader.turns]
        conversation = _with_prompts(grader.conversation, root)
        return grader.model_copy(update={"turns": tuple(turns), "conversation": conversation})
    return grader


def _with_prompts(graders: tuple[Grader, ...], root: Path) -> tuple[Grader, ...]:
    return tuple(with_prompt(grader, root) for grader in graders)


def missing_graders(graders: tuple[Grader, ...], file: str, line: int) -> tuple[Problem, ...]:
    """The graders of a task that passgate does not have."""
    return tuple(
        Problem(file=file, line=line, column=1, path="graders", message=f"passgate has no evaluator {grader.kind!r}")
        for grader in all_graders(graders)
        if isinstance(grader, Unavailable)
    )


def shown_path(file: Path, working_folder: Path) -> str:
    """A path as users know it: relative to the working folder when it lies inside."""
    absolute = file.absolute()
    return str(absolute.relative_to(working_folder) if absolute.is_relative_to(working_folder) else absolute)
