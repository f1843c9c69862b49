"""Digests of tasks and graders: what must be equal for two results to be comparable."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from passgate.tasks.formats.rules import SANDBOXES
from passgate.tasks.formats.task_messages import names_a_file
from passgate.tasks.model.assertions import CodeGrader
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.graders import Composite, DeterministicTests, Grader, LlmRubric, StaticAnalysis, Turns
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import TaskFile

_NOT_THE_TASK = frozenset(
    (
        *("graders", "tracked_metrics", "gates", "reference", "description", "tags"),
        *("scoring", "criteria", "expected_output", "expected_messages", "note", "metadata", "conversation_id"),
        "target",
    )
)
_OF_GRADING = frozenset({"scoring", "criteria", "expected_output", "expected_messages", "note", "metadata"})
"""What trials are graded by beside the graders."""
_MOST_GRADERS = 256
_LONGEST_NAME = 4096

_Command = tuple[str, tuple[str, ...]]
"""A folder relative to the suites folder, and the words of what runs there."""


class FileDigests:
    """Digests of the files below a suites folder; each file or folder is read once, each grader is looked at once."""

    def __init__(self, suites_folder: Path) -> None:
        self._root = suites_folder
        self._known: dict[str, str] = {}
        self._graders: dict[int, tuple[Grader, Any]] = {}
        self._commands: dict[_Command, tuple[str, ...]] = {}

    def of(self, name: str) -> str:
        """The digest of a file, or of a folder with everything in it; of what is not there, or is no path relative to
        the suites folder, it is empty.
        """
        if name not in self._known:
            path = self._root / name
            is_ours = not Path(name).is_absolute() and (path.is_file() or path.is_dir())
            self._known[name] = _tree_digest(path) if is_ours else ""
        return self._known[name]

    def task(self, task: TaskFile, messages: Sequence[TaskMessage] = ()) -> str:
        """What the agent is given: inputs with the files of its messages, environment, trials and their files."""
        # Without defaults, so that a new option does not make every task a new one.
        said = task.model_dump(mode="json", exclude=set(_NOT_THE_TASK), exclude_defaults=True)
        names = {*task_files(task), *_message_files(messages), *self._command_files(_hook_commands(task))}
        return digest_of([said, {name: self.of(name) for name in names}])

    def graders(self, task: TaskFile) -> str:
        """What the trial is graded by: the graders' options, what they are told, and the files they use."""
        told = task.model_dump(mode="json", include=set(_OF_GRADING), exclude_defaults=True)
        said = told | {"graders": [self._grader(grader) for grader in task.graders]}
        return digest_of([said, {name: self.of(name) for name in self.files_of_graders(task.graders)}])

    def files_of_graders(self, graders: Sequence[Grader]) -> set[str]:
        """The files and folders that graders use, relative to the suites folder: those that they name, and the scripts
        that they run.
        """
        return {*named_by_graders(graders), *self._command_files(_grader_commands(graders))}

    def _grader(self, grader: Grader) -> Any:
        """A grader's options; many tests may share one grader."""
        known = self._graders.get(id(grader))
        if known is None:
            if len(self._graders) >= _MOST_GRADERS:
                self._graders.clear()
            known = self._graders[id(grader)] = grader, grader.model_dump(mode="json", exclude_defaults=True)
        return known[1]

    def _command_files(self, commands: Iterable[_Command]) -> Iterator[str]:
        """The words of commands that are files, relative to the suites folder."""
        for command in commands:
            if command not in self._commands:
                self._commands[command] = tuple(_files_of(command, self._root))
            yield from self._commands[command]


def task_files(task: TaskFile) -> list[str]:
    """The files and folders that the agent is given or answered from, relative to the suites folder."""
    environment = task.environment
    sandbox = [f"{SANDBOXES}/{environment.sandbox}"] if environment.sandbox else []
    recording = [environment.replay.transcript] if environment.replay else []
    functions = [tool.function.rpartition(":")[0] for tool in environment.tools if tool.function]
    template = [environment.workspace.template] if environment.workspace and environment.workspace.template else []
    return sorted({*sandbox, *recording, *functions, *template})


def _message_files(messages: Sequence[TaskMessage]) -> Iterator[str]:
    for message in messages:
        for block in message.content if isinstance(message.content, tuple) else ():
            if names_a_file(block):
                yield str(block.value)


def named_by_graders(graders: Iterable[Grader]) -> set[str]:
    """The files and folders that graders name, relative to the suites folder."""
    return {name for grader in all_graders(graders) for name in _named_files(grader)}


def all_graders(graders: Iterable[Grader]) -> Iterator[Grader]:
    """Graders with those that they are made of."""
    for grader in graders:
        yield grader
        if isinstance(grader, Composite):
            yield from all_graders(grader.assertions)
        elif isinstance(grader, Turns):
            yield from all_graders(member for turn in grader.turns for member in turn.assertions)
            yield from all_graders(grader.conversation)


def _named_files(grader: Grader) -> Iterable[str]:
    if isinstance(grader, DeterministicTests):
        return grader.tests
    if isinstance(grader, StaticAnalysis):
        return grader.configuration.values()
    if isinstance(grader, LlmRubric) and grader.rubric.endswith((".md", ".txt")):
        return (grader.rubric,)
    return ()


def _grader_commands(graders: Iterable[Grader]) -> Iterator[_Command]:
    for grader in all_graders(graders):
        if isinstance(grader, CodeGrader):
            yield grader.cwd, grader.command
        elif isinstance(grader, Composite) and grader.aggregator.command:
            yield grader.aggregator.cwd, grader.aggregator.command


def _hook_commands(task: TaskFile) -> Iterator[_Command]:
    workspace = task.environment.workspace
    if workspace is not None:
        hooks = (workspace.before_all, workspace.before_each, workspace.after_each, workspace.after_all)
        yield from ((hook.cwd, hook.command) for hook in hooks if hook is not None)


def _files_of(command: _Command, root: Path) -> Iterator[str]:
    folder, words = command
    for word in words:
        name = os.path.normpath(f"{folder}/{word}")
        if len(word) <= _LONGEST_NAME and "\0" not in word and not word.startswith("/") and (root / name).is_file():
            yield name


def _tree_digest(path: Path) -> str:
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = sorted(entry for entry in path.rglob("*") if entry.is_file() and "__pycache__" not in entry.parts)
    return digest_of(
        [
            [entry.relative_to(path).as_posix(), entry.stat().st_mode & 0o111 != 0, _tree_digest(entry)]
            for entry in files
        ]
    )
