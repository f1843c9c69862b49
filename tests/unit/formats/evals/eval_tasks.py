"""Eval files and the tasks that they are read into."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.map.reader import EvalReader
from passgate.tasks.formats.evals.read.node import Complaints
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask
from tests.builders import SHIPPED
from tests.unit.formats.evals.eval_files import write

SOUND = {"id": "t", "input": "Hi", "criteria": "Is kind."}


@dataclass(frozen=True)
class Answer:
    """What an eval file is read into."""

    tasks: tuple[EvalTask, ...]
    complaints: Complaints

    @property
    def one(self) -> EvalTask:
        assert self.problems == []
        (task,) = self.tasks
        return task

    @property
    def ids(self) -> list[str]:
        return [task.task_id for task in self.tasks]

    @property
    def problems(self) -> list[str]:
        return [_text(problem) for problem in self.complaints.problems]

    @property
    def warnings(self) -> list[str]:
        return [_text(problem) for problem in self.complaints.warnings]

    @property
    def cannot_run(self) -> list[str]:
        return [_text(problem) for problem in self.complaints.cannot_run]


def _text(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}"


def read_file(
    root: Path,
    document: Any,
    *,
    name: str = "EVAL.yaml",
    files: Mapping[str, str] | None = None,
    policy: Policy = SHIPPED,
    environment: Mapping[str, str] | None = None,
) -> Answer:
    """The tasks of one file of a repository, whose root is the suites folder too."""
    # By way of JSON nothing is an alias of anything.
    data = json.loads(json.dumps(document))
    content = data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False)
    write(root, {".git/HEAD": "", **(files or {}), name: content})
    reader = EvalReader(root, policy, environment or {}, lambda file: str(file.relative_to(root)))
    answer = reader.read(root / name)
    complaints = Complaints(list(answer.problems), list(answer.warnings), list(answer.cannot_run))
    return Answer(answer.tasks, complaints)


def read_tests(root: Path, *tests: Any, top: Mapping[str, Any] | None = None, **options: Any) -> Answer:
    """The tasks of a file with these tests, and with further keys at its top."""
    return read_file(root, {**(top or {}), "tests": list(tests)}, **options)


def read_test(root: Path, top: Mapping[str, Any] | None = None, **said: Any) -> Answer:
    """The task of a sound test that says this in addition."""
    return read_tests(root, SOUND | said, top=top)
