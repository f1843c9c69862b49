"""Tasks that were read from a copy of their suites folder."""

from pathlib import Path

import pytest
from tests.builders import a_task

from passgate.tasks.formats.outside_folders import graders_outside, in_place_of
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.workspace import Repository, Workspace


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The copy and the original, each with a folder `app` beside the suites."""
    made = tmp_path / "state/base/suites", tmp_path / "suites"
    for suites in made:
        (suites / "template").mkdir(parents=True)
        (suites.parent / "app").mkdir()
        (suites.parent / "app/main.py").write_text("1")
    return made


def moved(folders: tuple[Path, Path], **workspace: object) -> tuple[EvalTask, EvalTask]:
    task = a_task(workspace=Workspace.model_validate(workspace))
    return task, in_place_of(task, *folders)


def test_a_task_without_a_workspace_stays_as_it_is(folders: tuple[Path, Path]) -> None:
    task = a_task()
    assert in_place_of(task, *folders) is task


@pytest.mark.parametrize("template", ["template", "./x/../template", "..template"])
def test_a_template_of_the_suites_is_the_copys(folders: tuple[Path, Path], template: str) -> None:
    task, after = moved(folders, template=template)
    assert after is task


def test_a_template_outside_of_the_suites_is_the_originals(folders: tuple[Path, Path]) -> None:
    """There the agent's own files may lie, and the agent under test is the change's."""
    copy, original = folders
    task, after = moved(folders, template="../app")
    assert after.workspace is not None
    assert (copy / str(after.workspace.template)).resolve() == (original / "../app").resolve()
    assert after.task_digest == task.task_digest


def test_with_another_template_the_task_is_another_one(folders: tuple[Path, Path]) -> None:
    (folders[1].parent / "app/main.py").write_text("2")
    task, after = moved(folders, template="../app")
    assert after.task_digest != task.task_digest
    (folders[1].parent / "app/main.py").write_text("3")
    assert moved(folders, template="../app")[1].task_digest != after.task_digest


def test_a_template_that_the_original_does_not_have_is_the_copys(folders: tuple[Path, Path]) -> None:
    (folders[0].parent / "old").mkdir()
    task, after = moved(folders, template="../old")
    assert after == task


def test_repositories_of_folders_are_the_originals_wherever_they_lie(folders: tuple[Path, Path]) -> None:
    copy, original = folders
    repos = [{"repo": "template"}, {"repo": "..", "commit": "main"}, {"repo": "owner/name"}, {"repo": "https://host/x"}]
    _, after = moved(folders, repos=repos)
    assert after.workspace is not None
    inner, outer, *others = after.workspace.repos
    assert (copy / inner.repo).resolve() == original / "template"
    assert ((copy / outer.repo).resolve(), outer.commit) == (original.parent, "main")
    assert others == [Repository(repo="owner/name"), Repository(repo="https://host/x")]


def test_graders_use_files_outside_of_their_suites(folders: tuple[Path, Path]) -> None:
    suites = folders[1]
    (suites / "inside.py").touch()
    named = {"type": "deterministic_tests", "tests": ["../app/main.py", "inside.py"]}
    runs = {"type": "code_grader", "command": ["python3", "../../app/main.py", "../gone.py"], "cwd": "template"}
    asks = {"type": "llm_grader", "prompt": "Mark it.", "prompt_file": "../prompts/mark.md"}
    composite = {"type": "composite", "assertions": [runs, asks]}
    plain = a_task()
    assert graders_outside([plain], suites) == set()
    assert graders_outside([plain, a_task(graders=[named])], suites) == {"../app/main.py"}
    assert graders_outside([a_task(graders=[composite])], suites) == {"../app/main.py", "../prompts/mark.md"}
