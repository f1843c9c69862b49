"""Digests of tasks and graders: what must be equal for two results to be comparable."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from passgate.tasks.formats.rules import SANDBOXES
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.graders import DeterministicTests, LlmRubric, StaticAnalysis
from passgate.tasks.model.task import TaskFile

_NOT_THE_TASK = frozenset({"graders", "tracked_metrics", "gates", "reference", "description", "tags"})


class FileDigests:
    """Digests of the files below a suites folder; each file or folder is read once."""

    def __init__(self, suites_folder: Path) -> None:
        self._root = suites_folder
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The digest of a file, or of a folder with everything in it."""
        if name not in self._known:
            self._known[name] = _tree_digest(self._root / name)
        return self._known[name]

    def task(self, task: TaskFile) -> str:
        """What the agent is given: inputs, environment, trials and their files."""
        # Without defaults, so that a new option does not make every task a new one.
        said = task.model_dump(mode="json", exclude=set(_NOT_THE_TASK), exclude_defaults=True)
        return digest_of([said, {name: self.of(name) for name in task_files(task)}])

    def graders(self, task: TaskFile) -> str:
        """What the trial is graded by: the graders' options and the files they use."""
        said = task.model_dump(mode="json", include={"graders", "scoring"}, exclude_defaults=True)
        return digest_of([said, {name: self.of(name) for name in grader_files(task)}])


def task_files(task: TaskFile) -> list[str]:
    """The files and folders that the agent is given or answered from, relative to the suites folder."""
    environment = task.environment
    sandbox = [f"{SANDBOXES}/{environment.sandbox}"] if environment.sandbox else []
    recording = [environment.replay.transcript] if environment.replay else []
    functions = [tool.function.rpartition(":")[0] for tool in environment.tools if tool.function]
    return sorted({*sandbox, *recording, *functions})


def grader_files(task: TaskFile) -> list[str]:
    """The files and folders that a task's graders use, relative to the suites folder."""
    return sorted(set(_grader_files(task)))


def _grader_files(task: TaskFile) -> Iterable[str]:
    for grader in task.graders:
        if isinstance(grader, DeterministicTests):
            yield from grader.tests
        elif isinstance(grader, StaticAnalysis):
            yield from grader.configuration.values()
        elif isinstance(grader, LlmRubric) and grader.rubric.endswith((".md", ".txt")):
            yield grader.rubric


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
