"""Folders with eval files, and what their tests are."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.compose import raw_tests
from passgate.tasks.formats.evals.documents import Documents, find_ground
from passgate.tasks.formats.evals.node import Complaints
from passgate.tasks.formats.evals.raw import RawTest


@dataclass(frozen=True)
class Answer:
    """What reading an eval file gave."""

    tests: tuple[RawTest, ...]
    complaints: Complaints

    @property
    def ids(self) -> list[str | None]:
        return [test.id for test in self.tests]

    @property
    def values(self) -> list[Any]:
        return [test.node.value for test in self.tests]

    @property
    def problems(self) -> list[str]:
        return [str(problem) for problem in self.complaints.problems]

    @property
    def warnings(self) -> list[str]:
        return [str(problem) for problem in self.complaints.warnings]


@dataclass(frozen=True)
class Told:
    """What is told of a file, as `path: message`."""

    complaints: Complaints

    @property
    def problems(self) -> list[str]:
        return [f"{problem.path}: {problem.message}" for problem in self.complaints.problems]

    @property
    def warnings(self) -> list[str]:
        return [f"{problem.path}: {problem.message}" for problem in self.complaints.warnings]

    @property
    def cannot_run(self) -> list[str]:
        return [f"{problem.path}: {problem.message}" for problem in self.complaints.cannot_run]


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")


def read(root: Path, name: str, environment: Mapping[str, str] | None = None) -> Answer:
    """The tests of one file of a folder that is a repository."""
    (root / ".git").mkdir(exist_ok=True)
    ground, complaints = find_ground(root / name, root), Complaints()
    documents = Documents(ground, complaints, environment or {}, lambda file: str(file.relative_to(root)))
    return Answer(tuple(raw_tests(root / name, documents)), complaints)


def read_first(root: Path, files: Mapping[str, str], environment: Mapping[str, str] | None = None) -> Answer:
    """The tests of the first of these files."""
    write(root, files)
    return read(root, next(iter(files)), environment)
