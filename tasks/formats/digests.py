"""The files that tasks use, and digests of tasks and graders: what must be equal for two results to be comparable."""

import hashlib
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from passgate.tasks.formats.rules import HOOKS, names_a_file, sandbox_names
from passgate.tasks.model.grader_options import Command
from passgate.tasks.model.graders import Grader, all_graders
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.sandbox import SANDBOXES
from passgate.tasks.model.task import AgentRules, EvalTask, McpServer, TaskFile, Workspace

# Bytes that Linux takes for a path and for a part of it: asking for a longer one raises.
_LONGEST_NAME = 4096
_LONGEST_PART = 255
_RUN_BY_PYTHON = "__main__.py"
# Programs that put files where the agent works and run none of them.
_COPYING = frozenset(("cp", "git", "install", "ln", "mv", "rsync", "tar"))
_OPERATORS = frozenset(";&|()")
# What trials are graded by beside the graders.
_OF_GRADING = frozenset({"scoring", "criteria", "expected_output", "expected_messages", "note", "metadata"})
_NOT_THE_TASK = _OF_GRADING | {
    *("task_id", "suite", "graders", "tracked_metrics", "gates", "reference"),
    *("description", "tags", "conversation_id", "target"),
}
_MOST_GRADERS = 256  # those that are remembered stay in memory


def named_by_command(command: Command, root: Path) -> Iterator[str]:
    """Yield the files and folders that a command names, also in a text for a shell, relative to the suites folder
    `root`.

    Of a folder that it works in, or that holds the suites folder, only what Python runs there.
    """
    for name in _path_words(command):
        if (root / name).is_file():
            yield name
        elif (root / name).is_dir():
            is_one_of_ours = not _is_outside(name) and Path(os.path.normpath(command[0])).is_relative_to(name)
            if not _holds_suites(name) and not is_one_of_ours:
                yield name
            elif (root / name / _RUN_BY_PYTHON).is_file():
                yield os.path.normpath(f"{name}/{_RUN_BY_PYTHON}")


def scripts_of_command(command: Command, root: Path) -> Iterator[str]:
    """Yield the files of the suites folder that are words of a command, or that a text for a shell in it names, but for
    what that puts somewhere else.
    """
    yield from (name for name in (*_names(*command), *_path_words(command, _COPYING)) if (root / name).is_file())


def _is_outside(name: str) -> bool:
    """Return whether a name that is relative to the suites folder leads out of it."""
    return Path(os.path.normpath(name)).parts[:1] == (os.pardir,)


def _path_words(command: Command, without: Collection[str] = ()) -> Iterator[str]:
    """Return the words that may be paths, also in texts for a shell, but for those of some programs."""
    return _names(command[0], (word for part in _parts(command[1]) if part[0] not in without for word in part))


def _names(folder: str, words: Iterable[str]) -> Iterator[str]:
    """Yield the words that may be paths, relative to the suites folder."""
    for word in words:
        is_short = len(word) <= _LONGEST_NAME and all(
            len(part.encode("utf-8", "surrogatepass")) <= _LONGEST_PART for part in word.split("/")
        )
        if is_short and "\0" not in word and not word.startswith("/"):
            yield os.path.normpath(f"{folder}/{word}")


def _parts(words: tuple[str, ...]) -> list[list[str]]:
    """Return the commands that a command is made of: itself, and those of its texts for a shell."""
    parts = [[*words]]
    for text in (word for word in words if any(letter.isspace() for letter in word)):
        parts.append([])
        inner = shlex.shlex(text, posix=True, punctuation_chars=True)
        inner.commenters = ""  # a `#` begins a comment only at the start of a word, which shlex cannot tell
        try:
            split = list(inner)
        except ValueError:  # a quote without its end
            split = text.split()
        for word in split:
            if _OPERATORS.issuperset(word):
                parts.append([])
            else:
                parts[-1].append(word)
    return [part for part in parts if part]


def _holds_suites(name: str) -> bool:
    return {*Path(name).parts} <= {os.pardir}


class FileDigests:
    """Digests of the files below a suites folder; each file or folder is read once, each grader is looked at once."""

    def __init__(self, suites_folder: Path) -> None:
        self._root = suites_folder
        self._known: dict[str, str] = {}
        self._graders: dict[int, tuple[Grader, Any]] = {}
        self._commands: dict[tuple[Command, Any], tuple[str, ...]] = {}

    def of(self, name: str) -> str:
        """Return the digest of a file, or of a whole folder; an empty text for what is not there or is absolute."""
        if name not in self._known:
            path = self._root / name
            is_ours = not Path(name).is_absolute() and (path.is_file() or path.is_dir())
            self._known[name] = _tree_digest(path) if is_ours else ""
        return self._known[name]

    def task(self, task: TaskFile, messages: Sequence[TaskMessage] = ()) -> str:
        """Return what the agent is given: inputs with the files of its messages, environment, trials and their files;
        not what the task is called.
        """
        # Without defaults, so that a new option does not make every task a new one.
        said = task.model_dump(mode="json", exclude={*_NOT_THE_TASK}, exclude_defaults=True)
        hooks = around_commands(task.environment.workspace, task.environment.mcp_servers)
        names = {*task_files(task), *message_files(messages), *self._command_files(hooks, scripts_of_command)}
        return json_digest([said, {name: self.of(name) for name in names}])

    def graders(self, task: TaskFile) -> str:
        """Return what the trial is graded by: the graders' options, their inputs from the task, and their files."""
        options = []
        for grader in task.graders:
            # Many tests may share one grader. It is kept beside its options: its id is its own only while it lives.
            if id(grader) not in self._graders:
                if len(self._graders) >= _MOST_GRADERS:
                    self._graders.clear()
                self._graders[id(grader)] = grader, grader.model_dump(mode="json", exclude_defaults=True)
            options.append(self._graders[id(grader)][1])
        said = task.model_dump(mode="json", include=set(_OF_GRADING), exclude_defaults=True) | {"graders": options}
        commands = self._command_files(grader_commands(task.graders), named_by_command)
        names = {*named_by_graders(task.graders), *commands}
        return json_digest([said, {name: self.of(name) for name in names}])

    def _command_files(
        self, commands: Iterable[Command], names: Callable[[Command, Path], Iterable[str]]
    ) -> Iterator[str]:
        """Yield what commands have of the suites folder, relative to it."""
        for command in commands:
            if (command, names) not in self._commands:
                self._commands[command, names] = tuple(names(command, self._root))
            yield from self._commands[command, names]


def task_files(task: TaskFile) -> list[str]:
    """Return the files and folders that the agent is given or answered from, relative to the suites folder."""
    environment = task.environment
    names = {tool.function.rpartition(":")[0] for tool in environment.tools if tool.function}
    if environment.sandbox:
        names.add(f"{SANDBOXES}/{environment.sandbox}")
    if environment.replay:
        names.add(environment.replay.transcript)
    if environment.workspace:
        names.update(rule_files(environment.workspace))
    if environment.workspace and environment.workspace.template:
        names.add(environment.workspace.template)
    return sorted(names)


def rule_files(workspace: Workspace) -> Iterator[str]:
    """Yield the files and folders that extensions copy into a workspace, relative to the suites folder."""
    for extension in workspace.extensions:
        for paths in extension.agent_rules.model_dump().values() if extension.agent_rules is not None else ():
            yield from paths


def message_files(messages: Iterable[TaskMessage]) -> Iterator[str]:
    """Yield the files of messages, relative to the suites folder."""
    for message in messages:
        for block in message.content if isinstance(message.content, tuple) else ():
            if names_a_file(block):
                yield str(block.value)


def named_by_graders(graders: Iterable[Grader]) -> set[str]:
    """Return the files and folders that graders use, relative to the suites folder; their prompts are options."""
    return {path.name for one in all_graders(graders) for path in one.named_paths() if path.kind in {"file", "tests"}}


def grader_commands(graders: Iterable[Grader]) -> Iterator[Command]:
    """Yield the commands that graders run."""
    return (command for grader in all_graders(graders) for command in grader.commands())


def around_commands(workspace: Workspace | None, servers: Mapping[str, McpServer]) -> Iterator[Command]:
    """Yield the commands that prepare a workspace and tidy it up, and those of MCP servers."""
    for each in (workspace, *workspace.target_hooks) if workspace is not None else ():
        yield from ((hook.cwd, hook.command) for name in HOOKS if (hook := getattr(each, name)) is not None)
    modules = [each.module for each in workspace.extensions] if workspace is not None else []
    programs = (*modules, *(server.command for server in servers.values()))
    yield from ((".", (program,)) for program in programs if program is not None)


def _tree_digest(path: Path) -> str:
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    # What Python leaves behind differs from machine to machine.
    files = sorted(entry for entry in path.rglob("*") if entry.is_file() and "__pycache__" not in entry.parts)
    modes = {entry: entry.stat().st_mode & 0o111 != 0 for entry in files}
    return json_digest([[entry.relative_to(path).as_posix(), modes[entry], _tree_digest(entry)] for entry in files])


def judging_outside(tasks: Sequence[EvalTask], suites_folder: Path) -> set[str]:
    """Return the files and folders outside of a suites folder that its tasks go by, relative to it: what they are
    graded with (tests and settings, prompts of judges, what commands name), scripts of hooks, and files of messages.

    Whether they are there does not matter. The folders that the agent works on are not among them, and neither is what
    hooks copy.
    """
    graders = [grader for task in tasks for grader in task.graders]
    named = {
        f"{name}/{_RUN_BY_PYTHON}" if _holds_suites(name) else name
        for command in {*grader_commands(graders)}
        for name in _path_words(command)
    }
    # Of a folder only what Python runs there: the agent may work on the rest.
    run = {
        f"{name}/{_RUN_BY_PYTHON}" if (suites_folder / name).is_dir() else name
        for command in {each for task in tasks for each in around_commands(task.workspace, task.mcp_servers)}
        for name in _path_words(command, _COPYING)
    }
    messages = {name for task in tasks for name in message_files((*task.messages, *task.expected_messages))}
    read = {path.name for grader in all_graders(graders) for path in grader.named_paths() if path.kind != "folder"}
    return {*filter(_is_outside, {*read, *named, *run, *messages})}


def given_to_agents(tasks: Iterable[EvalTask], suites_folder: Path) -> set[str]:
    """Return the files and folders of a suites folder that agents get copies of, relative to it."""
    sandboxes = {f"{SANDBOXES}/{name}/files" for name in sandbox_names(suites_folder)}
    spaces = [task.workspace for task in tasks if task.workspace is not None]
    rules = {name for space in spaces for name in rule_files(space)}
    return sandboxes | rules | {space.template for space in spaces if space.template}


def relocate_task(task: EvalTask, copy: Path, original: Path) -> EvalTask:
    """Return a task that was read from a copy of a suites folder, with the folders that its agent works on outside of
    it as they are around the original, and local repositories too.

    An agent's own files may lie in them, and the agent under test is the original's. Where such a folder differs the
    task is another one, and so is its digest.
    """
    workspace = task.workspace
    if workspace is None:
        return task

    def moved(name: str) -> str:
        return Path(os.path.relpath((original / name).resolve(), copy.resolve())).as_posix()

    given = [*([workspace.template] if workspace.template is not None else []), *rule_files(workspace)]
    places = {name: moved(name) for name in given if _is_outside(name) and (original / name).exists()}
    digest = task.task_digest
    for name in (name for name in given if name in places):
        before, now = (FileDigests(folder).of(name) for folder in (copy, original))
        if before != now and places[name] != name:
            digest = json_digest([digest, now])
    extensions = []
    for extension in workspace.extensions:
        kinds = {kind: tuple(places.get(name, name) for name in names) for kind, names in extension.agent_rules or ()}
        update = {"agent_rules": AgentRules(**kinds)} if extension.agent_rules is not None else {}
        extensions.append(extension.model_copy(update=update))
    # A copy holds no repository, wherever in it that lies.
    repos = [
        each.model_copy(update={"repo": moved(each.repo)}) if (original / each.repo).is_dir() else each
        for each in workspace.repos
    ]
    template = places.get(workspace.template, workspace.template) if workspace.template is not None else None
    moves = {"template": template, "extensions": tuple(extensions), "repos": tuple(repos)}
    relocated = workspace.model_copy(update=moves)
    changes = {"workspace": relocated, "task_digest": digest}
    return task if relocated == workspace else task.model_copy(update=changes)
