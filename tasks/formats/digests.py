"""Digests of tasks and graders: what must be equal for two results to be comparable."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from passgate.tasks.formats.command_files import Command, named_by_command, run_by_command, words_of_command
from passgate.tasks.formats.rules import SANDBOXES
from passgate.tasks.formats.task_messages import names_a_file
from passgate.tasks.model.assertions import CodeGrader
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.graders import Composite, DeterministicTests, Grader, LlmRubric, StaticAnalysis, Turns
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import TaskFile
from passgate.tasks.model.workspace import Workspace

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

_Names = Callable[[Command, Path], Iterable[str]]
"""What a command in a suites folder has of it."""


class FileDigests:
    """Digests of the files below a suites folder; each file or folder is read once, each grader is looked at once."""

    def __init__(self, suites_folder: Path) -> None:
        self._root = suites_folder
        self._known: dict[str, str] = {}
        self._graders: dict[int, tuple[Grader, Any]] = {}
        self._commands: dict[tuple[Command, _Names], tuple[str, ...]] = {}

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
        hooks = hook_commands(task.environment.workspace)
        scripts = {*self._command_files(hooks, words_of_command), *self._command_files(hooks, run_by_command)}
        names = {*task_files(task), *message_files(messages), *scripts}
        return digest_of([said, {name: self.of(name) for name in names}])

    def graders(self, task: TaskFile) -> str:
        """What the trial is graded by: the graders' options, what they are told, and the files they use."""
        told = task.model_dump(mode="json", include=set(_OF_GRADING), exclude_defaults=True)
        said = told | {"graders": [self._grader(grader) for grader in task.graders]}
        return digest_of([said, {name: self.of(name) for name in self.files_of_graders(task.graders)}])

    def files_of_graders(self, graders: Sequence[Grader]) -> set[str]:
        """The files and folders that graders use, relative to the suites folder: those that they name, and those that
        their commands name.
        """
        return {*named_by_graders(graders), *self._command_files(grader_commands(graders), named_by_command)}

    def _grader(self, grader: Grader) -> Any:
        """A grader's options; many tests may share one grader."""
        known = self._graders.get(id(grader))
        if known is None:
            if len(self._graders) >= _MOST_GRADERS:
                self._graders.clear()
            known = self._graders[id(grader)] = grader, grader.model_dump(mode="json", exclude_defaults=True)
        return known[1]

    def _command_files(self, commands: Iterable[Command], names: _Names) -> Iterator[str]:
        """What commands have of the suites folder, relative to it."""
        for command in commands:
            if (command, names) not in self._commands:
                self._commands[command, names] = tuple(names(command, self._root))
            yield from self._commands[command, names]


def task_files(task: TaskFile) -> list[str]:
    """The files and folders that the agent is given or answered from, relative to the suites folder."""
    environment = task.environment
    sandbox = [f"{SANDBOXES}/{environment.sandbox}"] if environment.sandbox else []
    recording = [environment.replay.transcript] if environment.replay else []
    functions = [tool.function.rpartition(":")[0] for tool in environment.tools if tool.function]
    template = [environment.workspace.template] if environment.workspace and environment.workspace.template else []
    return sorted({*sandbox, *recording, *functions, *template})


def message_files(messages: Iterable[TaskMessage]) -> Iterator[str]:
    """The files of messages, relative to the suites folder."""
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


def grader_commands(graders: Iterable[Grader]) -> Iterator[Command]:
    """The commands that graders run."""
    for grader in all_graders(graders):
        if isinstance(grader, CodeGrader):
            yield grader.cwd, grader.command
        elif isinstance(grader, Composite) and grader.aggregator.command:
            yield grader.aggregator.cwd, grader.aggregator.command


def hook_commands(workspace: Workspace | None) -> list[Command]:
    """The commands that prepare a workspace and tidy it up."""
    if workspace is None:
        return []
    hooks = (workspace.before_all, workspace.before_each, workspace.after_each, workspace.after_all)
    return [(hook.cwd, hook.command) for hook in hooks if hook is not None]


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
