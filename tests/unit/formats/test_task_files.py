"""Files and folders as the tasks that they hold."""

from pathlib import Path

import pytest
import yaml

from passgate.tasks.formats.loading import tasks_of_paths
from tests.builders import SHIPPED, write_task

TEST = {"id": "t", "input": "Hi", "criteria": "Is kind."}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def add_eval(name: str, *tests: dict[str, str]) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump({"tests": list(tests)}))
    return file


def test_files_of_every_dialect_are_read(folder: Path) -> None:
    write_task(Path("suites/golden/a.yaml"), task_id="a", suite="golden")
    add_eval("suites/golden/b/EVAL.yaml", TEST)
    found = tasks_of_paths([Path("suites")], SHIPPED, {})
    assert found.problems == ()
    assert [source.task.task_id for source in found.tasks] == ["a", "t"]
    assert {source.root for source in found.tasks} == {folder / "suites"}
    assert [source.origin.file for source in found.tasks] == ["suites/golden/a.yaml", "suites/golden/b/EVAL.yaml"]


def test_a_file_outside_of_suites_is_its_own_world(folder: Path) -> None:
    found = tasks_of_paths([add_eval("evals/x.yaml", TEST)], SHIPPED, {})
    assert [source.root for source in found.tasks] == [folder / "evals"]


def test_a_file_that_is_named_twice_is_read_once() -> None:
    add_eval("evals/x.yaml", TEST)
    found = tasks_of_paths([Path("evals/x.yaml"), Path("evals/x.yaml")], SHIPPED, {})
    assert len(found.tasks) == 1


def test_problems_of_all_files_come_together() -> None:
    paths = [add_eval("a.yaml", {"id": "x"}), add_eval("b.yaml", {"id": "y"})]
    assert {problem.file for problem in tasks_of_paths(paths, SHIPPED, {}).problems} == {"a.yaml", "b.yaml"}
