"""A project of task files, which a test adds."""

from pathlib import Path
from typing import Any

from tests.builders import REPOSITORY, write_task


def begin_project(folder: Path) -> Path:
    """This folder, with an empty suites folder and the shipped gates."""
    (folder / "gates.yaml").write_bytes((REPOSITORY / "gates.yaml").read_bytes())
    (folder / "suites").mkdir()
    return folder


def add(name: str, **changes: Any) -> Path:
    """A task file of a suite of the working folder, as in `golden/name`."""
    suite, _, task_id = name.partition("/")
    return write_task(Path("suites") / f"{name}.yaml", task_id=task_id, suite=suite, **changes)


def add_all(*names: str) -> None:
    for name in names:
        add(name)
