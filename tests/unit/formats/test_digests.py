import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.digests import (
    FileDigests,
    given_to_agents,
    judging_outside,
    named_by_command,
    named_by_graders,
    relocate_task,
    scripts_of_command,
)
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import EvalTask, Repository, TaskFile, Workspace
from tests.builders import SAYS_YES, a_task, task_document

COPIES = ["sh", "-c", "cp rubric.md . && sh tests/test_a.py"]


def command(*words: str, **more: str) -> dict[str, Any]:
    return {"type": "code_grader", "command": list(words), **more}


def make(root: Path, *names: str) -> Path:
    """The suites folder of this one, with these files, which hold their names."""
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return root / "suites"


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    checks = "checks/run.py", "checks/my run.py", "checks/__main__.py"
    return make(tmp_path, *checks, "suites/golden/tool.py", "suites/data/a")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["python3", "../../checks/run.py", "gone.py"], {"../checks/run.py"}),
        (["python3", "../../checks"], {"../checks"}),
        (["python3", "../data"], {"data"}),
        (["sh", "-c", "cd ../../checks && python3 tool.py"], {"../checks", "golden/tool.py"}),
        (["sh", "-c", "python3 '../../checks/my run.py'; python3 tool.py # it's"], {"golden/tool.py"}),
        (["python3", "tool.py", ".", "..", "../.."], {"golden/tool.py"}),
        (["/bin/sh", "\0", "x" * 5000, "x" * 300, "\ud800", ""], set()),
    ],
)
def test_graders_are_made_of_what_their_commands_name(suites: Path, words: list[str], named: set[str]) -> None:
    assert {*named_by_command(("golden", tuple(words)), suites)} == named


def test_of_a_folder_that_a_command_works_in_python_runs_one_file(suites: Path) -> None:
    make(suites.parent, "suites/golden/__main__.py", "__main__.py")
    named = {*named_by_command(("golden", ("python3", ".", "../..")), suites)}
    assert named == {"golden/__main__.py", "../__main__.py"}
    assert {*named_by_command(("../checks", ("python3", ".")), suites)} == {"../checks"}


@pytest.mark.parametrize(
    "words",
    [
        ("python3", "tool.py", "../../checks"),
        ("cp", "tool.py", "."),
        ("sh", "-c", "cp ../../checks/run.py .; python3 tool.py"),
    ],
)
def test_what_a_hook_copies_in_a_shell_it_does_not_run(suites: Path, words: tuple[str, ...]) -> None:
    assert {*scripts_of_command(("golden", words), suites)} == {"golden/tool.py"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make(tmp_path, "suites/tests/test_a.py", "suites/tests/deep/test_b.py", "suites/rubric.md")


def digest(tree: Path, name: str = "tests") -> str:
    return FileDigests(tree).of(name)


def file_of(**said: Any) -> TaskFile:
    return TaskFile.model_validate(task_document(**said))


def of_task(tree: Path, **said: Any) -> str:
    return FileDigests(tree).task(file_of(**said))


def of_grader(tree: Path, **grader: Any) -> str:
    return FileDigests(tree).graders(file_of(graders=[grader]))


def test_a_copy_has_the_same_digest_whatever_python_leaves_behind(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(tree, copy)
    make(copy, "tests/__pycache__/test_a.pyc")
    assert [digest(copy), digest(copy, "rubric.md")] == [digest(tree), digest(tree, "rubric.md")]
    assert digest(tree, "gone.md") == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda tests: (tests / "deep/test_b.py").write_text("new"),
        lambda tests: (tests / "test_a.py").rename(tests / "test_c.py"),
        lambda tests: (tests / "deep").rename(tests / "deeper"),
        lambda tests: (tests / "new.py").touch(),
        lambda tests: (tests / "test_a.py").unlink(),
        lambda tests: (tests / "test_a.py").chmod(0o755),
    ],
    ids=["content", "name", "folder", "another file", "a file less", "executable"],
)
def test_any_change_below_a_folder_changes_its_digest(tree: Path, change: Callable[[Path], object]) -> None:
    before = digest(tree)
    change(tree / "tests")
    assert digest(tree) != before


def test_the_files_of_graders_are_found() -> None:
    graders = [
        SAYS_YES,
        {"type": "deterministic_tests", "tests": ["tests/b.py", "tests/a.py"]},
        {"type": "deterministic_tests", "tests": ["tests/a.py"]},
        {"type": "static_analysis", "tools": ["ruff"], "configuration": {"ruff": "ruff.toml"}},
        {"type": "llm_rubric", "rubric": "rubric.md"},
        {"type": "llm_rubric", "rubric": "rubric.txt"},
        {"type": "llm_rubric", "rubric": "Is it kind?"},
    ]
    named = named_by_graders(file_of(graders=graders).graders)
    assert named == {"rubric.md", "rubric.txt", "ruff.toml", "tests/a.py", "tests/b.py"}


@pytest.mark.parametrize(
    ("environment", "file", "belongs"),
    [
        ({"sandbox": "notes"}, "_shared/sandboxes/notes/files/a.txt", True),
        ({"workspace": {"template": "tests"}}, "tests/test_a.py", True),
        ({"workspace": {"before_all": {"command": ["sh", "setup.sh"]}}}, "setup.sh", True),
        ({"workspace": {"before_each": {"command": COPIES}}}, "tests/test_a.py", True),
        ({"workspace": {"before_each": {"command": COPIES}}}, "rubric.md", False),
    ],
)
def test_files_of_sandbox_template_and_scripts_belong_to_the_task(
    tree: Path, environment: dict[str, Any], file: str, belongs: bool
) -> None:
    make(tree, file)
    before = of_task(tree, environment=environment)
    (tree / file).write_text("2")
    assert (of_task(tree, environment=environment) != before) is belongs


@pytest.mark.parametrize(
    ("grader", "file"),
    [
        (command("python", "judge.py", cwd="tests"), "tests/judge.py"),
        (command("python", "../tests/judge.py", cwd="tests"), "tests/judge.py"),
        ({"type": "turns", "turns": [{"assertions": [command("sh", "tests/judge.py")]}]}, "tests/judge.py"),
        ({"type": "composite", "assertions": [SAYS_YES], "aggregator": command("tests/judge.py")}, "tests/judge.py"),
        (command("python3", "../checks"), "../checks/deep/x.py"),
        (command("sh", "-c", "cd ../checks && ./run"), "../checks/run"),
        (command("sh", "-c", "python3 tests/judge.py | cat"), "tests/judge.py"),
        (command("python3", "."), "__main__.py"),
    ],
)
def test_what_commands_of_graders_name_belongs_to_the_graders(tree: Path, grader: dict[str, Any], file: str) -> None:
    make(tree, file)
    before = of_grader(tree, **grader)
    assert of_grader(tree, **grader) == before
    (tree / file).write_text("2")
    assert of_grader(tree, **grader) != before


def test_many_graders_are_not_all_remembered(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [file_of(graders=[{"type": "contains", "value": str(number)}]) for number in range(3)]
    digests = [FileDigests(tree).graders(task) for task in tasks]
    monkeypatch.setattr("passgate.tasks.formats.digests._MOST_GRADERS", 2)
    few = FileDigests(tree)
    assert [few.graders(task) for task in tasks] == digests


def test_a_grader_that_works_in_the_suites_is_the_same_whatever_else_is_in_them(tree: Path) -> None:
    grader = command("python3", ".", "..", "deep", cwd="tests")
    before = of_grader(tree, **grader)
    (tree / "tests/test_a.py").write_text("2")
    (tree.parent / "agent.py").write_text("2")
    assert of_grader(tree, **grader) == before
    (tree / "tests/deep/test_b.py").write_text("2")
    assert of_grader(tree, **grader) != before


@pytest.mark.parametrize(
    ("kind", "name"), [("file", "http_notes.md"), ("image", "http_plan.png"), ("image", "data:.png")]
)
def test_files_of_messages_belong_to_the_task_whatever_they_are_called(tree: Path, kind: str, name: str) -> None:
    is_file = not name.startswith("data:")
    if is_file:
        make(tree, name)
    messages = [{"role": "user", "content": [{"type": kind, "value": name}]}]
    asked = file_of(inputs={"messages": messages}), [TaskMessage.model_validate(message) for message in messages]
    before = FileDigests(tree).task(*asked)
    (tree / name).write_text("after")
    assert (FileDigests(tree).task(*asked) != before) is is_file


@pytest.mark.parametrize(
    "told",
    [
        {"criteria": "c"},
        {"expected_output": "e"},
        {"note": "n"},
        {"metadata": {"a": 1}},
        {"scoring": {"rule": "weighted_average"}},
    ],
)
def test_what_judges_are_told_belongs_to_the_graders_and_not_to_the_task(tree: Path, told: dict[str, Any]) -> None:
    digests = FileDigests(tree)
    assert digests.task(file_of(**told)) == digests.task(file_of())
    assert digests.graders(file_of(**told)) != digests.graders(file_of())


@pytest.mark.parametrize("name", ["/dev/zero", "/etc/hostname", "pipe", "endless"])
def test_only_files_and_folders_below_the_suites_are_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    assert FileDigests(tmp_path).of(name) == ""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The copy and the original, each with a folder `app` beside the suites."""
    made = tmp_path / "state/base/suites", tmp_path / "suites"
    for suites in made:
        make(suites, "template/a", "../app/main.py")
    return made


def moved(folders: tuple[Path, Path], **workspace: Any) -> tuple[EvalTask, EvalTask, Workspace]:
    """A task before and after, and the workspace that it has then."""
    task = a_task(workspace=Workspace.model_validate(workspace))
    after = relocate_task(task, *folders)
    assert after.workspace is not None
    return task, after, after.workspace


@pytest.mark.parametrize("template", ["template", "./x/../template", "..template"])
def test_a_template_of_the_suites_is_the_copys(folders: tuple[Path, Path], template: str) -> None:
    task, after, _ = moved(folders, template=template)
    assert after is task
    bare = a_task()
    assert relocate_task(bare, *folders) is bare


def test_a_template_outside_of_the_suites_is_the_originals_where_it_has_it(folders: tuple[Path, Path]) -> None:
    """There the agent's own files may lie, and the agent under test is the change's."""
    copy, original = folders
    task, after, workspace = moved(folders, template="../app")
    assert (copy / str(workspace.template)).resolve() == (original / "../app").resolve()
    assert after.task_digest == task.task_digest
    (copy.parent / "old").mkdir()
    task, after, _ = moved(folders, template="../old")
    assert after == task


def test_rules_of_an_agent_outside_of_the_suites_are_the_originals(folders: tuple[Path, Path]) -> None:
    copy, original = folders
    (original.parent / "app/main.py").write_text("2")
    rules = {"hook": "beforeAll", "agent_rules": {"skills": ["../app", "template"]}}
    task, after, workspace = moved(folders, extensions=[rules])
    skills = workspace.extensions[0].agent_rules.skills
    assert ((copy / skills[0]).resolve(), skills[1]) == ((original / "../app").resolve(), "template")
    assert after.task_digest != task.task_digest
    assert given_to_agents([task], original) >= {"../app", "template"}


def test_with_another_template_the_task_is_another_one(folders: tuple[Path, Path]) -> None:
    digests = set()
    for text in ("2", "3"):
        (folders[1].parent / "app/main.py").write_text(text)
        task, after, _ = moved(folders, template="../app")
        digests |= {task.task_digest, after.task_digest}
    assert len(digests) == 3


def test_repositories_of_folders_are_the_originals_wherever_they_lie(folders: tuple[Path, Path]) -> None:
    copy, original = folders
    repos = [{"repo": "template"}, {"repo": "..", "commit": "main"}, {"repo": "owner/name"}, {"repo": "https://host/x"}]
    inner, outer, *others = moved(folders, repos=repos)[2].repos
    assert (copy / inner.repo).resolve() == original / "template"
    assert ((copy / outer.repo).resolve(), outer.commit) == (original.parent, "main")
    assert others == [Repository(repo="owner/name"), Repository(repo="https://host/x")]


def test_graders_use_files_outside_of_their_suites(tmp_path: Path) -> None:
    named = {"type": "deterministic_tests", "tests": ["../app/main.py", "inside.py"]}
    runs = command("python3", "../../app/main.py", "../inside.py", cwd="template")
    asks = {"type": "llm_grader", "prompt": "Mark it.", "prompt_file": "../prompts/mark.md"}
    composite = {"type": "composite", "assertions": [runs, asks]}
    assert judging_outside([a_task()], tmp_path) == set()
    assert judging_outside([a_task(), a_task(graders=[named])], tmp_path) == {"../app/main.py"}
    assert judging_outside([a_task(graders=[composite])], tmp_path) == {"../app/main.py", "../prompts/mark.md"}


def test_hooks_run_files_and_messages_have_files_outside_of_their_suites(tmp_path: Path) -> None:
    suites = make(tmp_path, "suites/a", "agent/a")
    hooks = {
        "before_all": {"command": ["sh", "../hooks/all.sh", "../agent"]},
        "after_each": {"command": ["sh", "-c", "cp ../agent/skill.md . && sh ../hooks/each.sh"]},
        "before_each": {"command": ["cp", "-r", "../agent", "."]},
    }
    around = {
        "extensions": [{"hook": "beforeEach", "module": "../hooks/prepare.ts"}],
        "target_hooks": [{"target": "a", "after_all": {"command": ["sh", "../hooks/target.sh"]}}],
    }
    task = a_task(workspace=Workspace.model_validate({"template": "../app", **hooks, **around}))
    names = {"../hooks/all.sh", "../agent/__main__.py", "../hooks/each.sh", "../hooks/prepare.ts", "../hooks/target.sh"}
    assert judging_outside([task], suites) == names
    values = ("file", "../a.md"), ("text", "../b.md"), ("image", "../c.png"), ("image", "https://host/d.png")
    said = {"role": "user", "content": [{"type": kind, "value": value} for kind, value in values]}
    assert judging_outside([a_task(messages=[said])], tmp_path) == {"../a.md", "../c.png"}


def test_agents_are_given_files_of_sandboxes_and_templates(tmp_path: Path) -> None:
    (tmp_path / "_shared/sandboxes/box").mkdir(parents=True)
    task = a_task(workspace=Workspace(template="golden/desk"))
    assert given_to_agents([a_task(), task], tmp_path) == {"_shared/sandboxes/box/files", "golden/desk"}
