"""Eval files and the tasks that they are read into."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.formats.evals.node import Complaints
from passgate.tasks.formats.evals.reader import EvalReader
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask
from tests.builders import SHIPPED
from tests.unit.formats.evals.eval_files import Told, write

SOUND = {"id": "t", "input": "Hi", "criteria": "Is kind."}


@dataclass(frozen=True)
class Answer(Told):
    """What an eval file is read into."""

    tasks: tuple[EvalTask, ...]

    @property
    def one(self) -> EvalTask:
        assert self.problems == []
        (task,) = self.tasks
        return task

    @property
    def ids(self) -> list[str]:
        return [task.task_id for task in self.tasks]


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
    content = yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False)
    write(root, {".git/HEAD": "", **(files or {}), name: content})
    reader = EvalReader(root, policy, environment or {}, lambda file: str(file.relative_to(root)))
    answer = reader.read(root / name)
    return Answer(Complaints(list(answer.problems), list(answer.warnings), list(answer.cannot_run)), answer.tasks)


def read_tests(root: Path, *tests: Any, top: Mapping[str, Any] | None = None, **options: Any) -> Answer:
    """The tasks of a file with these tests, and with further keys at its top."""
    return read_file(root, {**(top or {}), "tests": list(tests)}, **options)


def read_test(root: Path, top: Mapping[str, Any] | None = None, **said: Any) -> Answer:
    """The task of a sound test that says this in addition."""
    return read_tests(root, SOUND | said, top=top)
