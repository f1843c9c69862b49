"""Tasks that were read from a copy of their suites folder."""

from pathlib import Path

import pytest

from passgate.tasks.formats.digests import given_to_agents, in_place_of, judging_outside
from passgate.tasks.model.task import EvalTask, Repository, Workspace
from tests.builders import a_task


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


def test_graders_use_files_outside_of_their_suites(tmp_path: Path) -> None:
    named = {"type": "deterministic_tests", "tests": ["../app/main.py", "inside.py"]}
    runs = {"type": "code_grader", "command": ["python3", "../../app/main.py", "../inside.py"], "cwd": "template"}
    asks = {"type": "llm_grader", "prompt": "Mark it.", "prompt_file": "../prompts/mark.md"}
    composite = {"type": "composite", "assertions": [runs, asks]}
    plain = a_task()
    assert judging_outside([plain], tmp_path) == set()
    assert judging_outside([plain, a_task(graders=[named])], tmp_path) == {"../app/main.py"}
    assert judging_outside([a_task(graders=[composite])], tmp_path) == {"../app/main.py", "../prompts/mark.md"}


def test_hooks_run_files_and_messages_have_files_outside_of_their_suites(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    for folder in (suites, tmp_path / "agent"):
        folder.mkdir()
    hooks = {
        "before_all": {"command": ["sh", "../hooks/all.sh", "../agent"]},
        "after_each": {"command": ["sh", "-c", "cp ../agent/skill.md . && sh ../hooks/each.sh"]},
        "before_each": {"command": ["cp", "-r", "../agent", "."]},
    }
    task = a_task(workspace=Workspace.model_validate({"template": "../app", **hooks}))
    assert judging_outside([task], suites) == {"../hooks/all.sh", "../agent/__main__.py", "../hooks/each.sh"}
    blocks = [{"type": "file", "value": "../a.md"}, {"type": "text", "value": "../b.md"}]
    blocks += [{"type": "image", "value": "../c.png"}, {"type": "image", "value": "https://host/d.png"}]
    said = {"role": "user", "content": blocks}
    assert judging_outside([a_task(messages=[said])], tmp_path) == {"../a.md", "../c.png"}


def test_agents_are_given_files_of_sandboxes_and_templates(tmp_path: Path) -> None:
    (tmp_path / "_shared/sandboxes/box").mkdir(parents=True)
    task = a_task(workspace=Workspace(template="golden/desk"))
    assert given_to_agents([a_task(), task], tmp_path) == {"_shared/sandboxes/box/files", "golden/desk"}
