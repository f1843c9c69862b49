"""The four-suite dialect: one task per YAML file."""

from pathlib import Path

from jsonschema import Draft202012Validator

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests, all_graders
from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.normalise import Origin, normalised
from passgate.tasks.formats.rules import SANDBOXES, Surroundings, findings, sandbox_names
from passgate.tasks.formats.schema_check import check_schema, schema_validator, validated
from passgate.tasks.formats.task_messages import asked_messages, with_texts
from passgate.tasks.formats.text_files import read_text
from passgate.tasks.model.assertions import LlmGrader, Unavailable
from passgate.tasks.model.graders import Composite, Grader, Turns
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask, TaskFile


class TaskReader:
    """Reads task files of one suites folder under one policy."""

    def __init__(self, suites_folder: Path, policy: Policy, *, working_folder: Path) -> None:
        self._suites_folder = suites_folder.absolute()
        self._policy = policy
        self._working_folder = working_folder.absolute()
        self._digests = FileDigests(self._suites_folder)
        self._validator: Draft202012Validator = schema_validator("task")
        self._sandboxes: dict[str, list[Problem]] = {}

    def read(self, file: Path) -> EvalTask | list[Problem]:
        """The task of a file, or everything that is wrong with it."""
        document = read_document(file, shown_path(file, self._working_folder))
        task = self._task(file, document)
        return task if isinstance(task, list) else self._normalised(task, document)

    def task_file(self, file: Path) -> TaskFile | list[Problem]:
        """What a file says, or everything that is wrong with it."""
        return self._task(file, read_document(file, shown_path(file, self._working_folder)))

    def _task(self, file: Path, document: Document) -> TaskFile | list[Problem]:
        if document.problems:
            return document.problems
        task = validated(TaskFile, document, self._validator)
        if isinstance(task, list):
            return task
        around = Surroundings(file.absolute(), self._suites_folder, self._policy)
        problems = [document.problem(path, message) for path, message in findings(task, around)]
        return [*problems, *self._sandbox_problems(task.environment.sandbox)] or task

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

    def _normalised(self, task: TaskFile, document: Document) -> EvalTask:
        line = document.keys[("task_id",)].line
        missing = missing_graders(task.graders, document.file, line)
        return normalised(
            with_files(task, self._suites_folder),
            asked_messages(task, self._suites_folder),
            Origin(task.task_id, document.file, line, cannot_run=tuple(map(str, missing))),
            self._policy,
            self._digests,
        )


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
