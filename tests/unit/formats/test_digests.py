import os
import shutil
from pathlib import Path

import pytest

from passgate.tasks.formats.digests import (
    FileDigests,
    given_to_agents,
    in_place_of,
    judging_outside,
    named_by_command,
    named_by_graders,
    run_by_command,
    words_of_command,
)
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import EvalTask, Repository, TaskFile, Workspace
from tests.builders import SAYS_YES, a_task, task_document


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    for name in ("checks/run.py", "checks/my run.py", "checks/__main__.py", "suites/golden/tool.py", "suites/data/a"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "suites"


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
    (suites / "golden/__main__.py").touch()
    (suites.parent / "__main__.py").touch()
    assert {*named_by_command(("golden", ("python3", ".", "../..")), suites)} == {
        "golden/__main__.py",
        "../__main__.py",
    }
    assert {*named_by_command(("../checks", ("python3", ".")), suites)} == {"../checks"}


def test_what_a_hook_copies_it_does_not_run(suites: Path) -> None:
    def run(*words: str) -> set[str]:
        return {*run_by_command(("golden", words), suites)}

    assert run("python3", "tool.py", "../../checks") == {"golden/tool.py"}
    assert run("cp", "tool.py", ".") == set()
    assert run("sh", "-c", "cp ../../checks/run.py .; python3 tool.py") == {"golden/tool.py"}
    assert {*words_of_command(("golden", ("cp", "tool.py", ".")), suites)} == {"golden/tool.py"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("tests/test_a.py", "tests/deep/test_b.py", "rubric.md"):
        file = tmp_path / "suites" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path / "suites"


def digest(tree: Path, name: str = "tests") -> str:
    return FileDigests(tree).of(name)


def test_a_copy_has_the_same_digest(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(tree, copy)
    assert digest(copy) == digest(tree)
    assert digest(copy, "rubric.md") == digest(tree, "rubric.md")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda tree: (tree / "tests/deep/test_b.py").write_text("new"), id="content"),
        pytest.param(lambda tree: (tree / "tests/test_a.py").rename(tree / "tests/test_c.py"), id="name"),
        pytest.param(lambda tree: (tree / "tests/deep").rename(tree / "tests/deeper"), id="folder"),
        pytest.param(lambda tree: (tree / "tests/new.py").touch(), id="another file"),
        pytest.param(lambda tree: (tree / "tests/test_a.py").unlink(), id="a file less"),
        pytest.param(lambda tree: (tree / "tests/test_a.py").chmod(0o755), id="executable"),
    ],
)
def test_any_change_below_a_folder_changes_its_digest(tree: Path, change) -> None:
    before = digest(tree)
    change(tree)
    assert digest(tree) != before


def test_what_python_leaves_behind_changes_nothing(tree: Path) -> None:
    before = digest(tree)
    (tree / "tests/__pycache__").mkdir()
    (tree / "tests/__pycache__/test_a.pyc").touch()
    assert digest(tree) == before


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
    task = TaskFile.model_validate(task_document(graders=graders))
    assert named_by_graders(task.graders) == {"rubric.md", "rubric.txt", "ruff.toml", "tests/a.py", "tests/b.py"}


def test_the_files_of_the_sandbox_belong_to_the_task(tree: Path) -> None:
    sandbox = tree / "_shared/sandboxes/notes/files"
    sandbox.mkdir(parents=True)
    (sandbox / "a.txt").write_text("1")
    task = TaskFile.model_validate(task_document(environment={"sandbox": "notes"}))
    before = FileDigests(tree).task(task)
    (sandbox / "a.txt").write_text("2")
    assert FileDigests(tree).task(task) != before


def of_grader(tree: Path, **grader: object) -> str:
    return FileDigests(tree).graders(TaskFile.model_validate(task_document(graders=[grader])))


@pytest.mark.parametrize(
    "grader",
    [
        pytest.param({"type": "code_grader", "command": ["python", "judge.py"], "cwd": "tests"}, id="command"),
        pytest.param({"type": "code_grader", "command": ["python", "../tests/judge.py"], "cwd": "tests"}, id="upwards"),
        pytest.param(
            {
                "type": "turns",
                "turns": [{"assertions": [{"type": "code_grader", "command": ["sh", "tests/judge.py"]}]}],
            },
            id="inside of turns",
        ),
        pytest.param(
            {
                "type": "composite",
                "assertions": [SAYS_YES],
                "aggregator": {"type": "code_grader", "command": ["tests/judge.py"]},
            },
            id="aggregator",
        ),
    ],
)
def test_the_programs_of_graders_belong_to_the_graders(tree: Path, grader: dict[str, object]) -> None:
    (tree / "tests/judge.py").write_text("1")
    before = of_grader(tree, **grader)
    assert of_grader(tree, **grader) == before
    (tree / "tests/judge.py").write_text("2")
    assert of_grader(tree, **grader) != before


def test_many_graders_are_not_all_remembered(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graders = [{"type": "contains", "value": str(number)} for number in range(3)]
    tasks = [TaskFile.model_validate(task_document(graders=[grader])) for grader in graders]
    digests = [FileDigests(tree).graders(task) for task in tasks]
    monkeypatch.setattr("passgate.tasks.formats.digests._MOST_GRADERS", 2)
    few = FileDigests(tree)
    assert [few.graders(task) for task in tasks] == digests


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["python3", "../checks"], "../checks/deep/x.py"),
        (["sh", "-c", "cd ../checks && ./run"], "../checks/run"),
        (["sh", "-c", "python3 tests/judge.py | cat"], "tests/judge.py"),
        (["python3", "."], "__main__.py"),
    ],
)
def test_what_commands_of_graders_name_belongs_to_the_graders(tree: Path, command: list[str], file: str) -> None:
    grader = {"type": "code_grader", "command": command}
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text("1")
    before = of_grader(tree, **grader)
    (tree / file).write_text("2")
    assert of_grader(tree, **grader) != before


def test_a_grader_that_works_in_the_suites_is_the_same_whatever_else_is_in_them(tree: Path) -> None:
    grader = {"type": "code_grader", "command": ["python3", ".", "..", "deep"], "cwd": "tests"}
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
        (tree / name).write_text("before")
    messages = [{"role": "user", "content": [{"type": kind, "value": name}]}]
    task = TaskFile.model_validate(task_document(inputs={"messages": messages}))
    asked = [TaskMessage.model_validate(message) for message in messages]
    before = FileDigests(tree).task(task, asked)
    (tree / name).write_text("after")
    assert (FileDigests(tree).task(task, asked) != before) is is_file


def test_template_and_scripts_of_the_workspace_belong_to_the_task(tree: Path) -> None:
    (tree / "setup.sh").write_text("1")
    workspace = {"template": "tests", "before_all": {"command": ["sh", "setup.sh"]}}
    task = TaskFile.model_validate(task_document(environment={"workspace": workspace}))
    digests = [FileDigests(tree).task(task)]
    (tree / "tests/test_a.py").write_text("2")
    digests.append(FileDigests(tree).task(task))
    (tree / "setup.sh").write_text("2")
    digests.append(FileDigests(tree).task(task))
    assert len(set(digests)) == 3


def test_scripts_in_the_text_of_a_hook_belong_to_the_task_and_what_it_copies_does_not(tree: Path) -> None:
    command = "cp rubric.md . && sh tests/test_a.py"
    workspace = {"before_each": {"command": ["sh", "-c", command]}}
    task = TaskFile.model_validate(task_document(environment={"workspace": workspace}))
    before = FileDigests(tree).task(task)
    (tree / "rubric.md").write_text("2")
    assert FileDigests(tree).task(task) == before
    (tree / "tests/test_a.py").write_text("2")
    assert FileDigests(tree).task(task) != before


def test_what_judges_are_told_belongs_to_the_graders_and_not_to_the_task(tree: Path) -> None:
    plain = TaskFile.model_validate(task_document())
    digests = FileDigests(tree)
    for told in (
        {"criteria": "c"},
        {"expected_output": "e"},
        {"note": "n"},
        {"metadata": {"a": 1}},
        {"scoring": {"rule": "weighted_average"}},
    ):
        task = TaskFile.model_validate(task_document(**told))
        assert digests.task(task) == digests.task(plain), told
        assert digests.graders(task) != digests.graders(plain), told


def test_what_is_not_there_has_a_digest_all_the_same(tree: Path) -> None:
    assert digest(tree, "gone.md") == ""


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


def test_a_template_outside_of_the_suites_is_the_originals_where_it_has_it(folders: tuple[Path, Path]) -> None:
    """There the agent's own files may lie, and the agent under test is the change's."""
    copy, original = folders
    task, after = moved(folders, template="../app")
    assert after.workspace is not None
    assert (copy / str(after.workspace.template)).resolve() == (original / "../app").resolve()
    assert after.task_digest == task.task_digest
    (folders[0].parent / "old").mkdir()
    task, after = moved(folders, template="../old")
    assert after == task


def test_with_another_template_the_task_is_another_one(folders: tuple[Path, Path]) -> None:
    (folders[1].parent / "app/main.py").write_text("2")
    task, after = moved(folders, template="../app")
    assert after.task_digest != task.task_digest
    (folders[1].parent / "app/main.py").write_text("3")
    assert moved(folders, template="../app")[1].task_digest != after.task_digest


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
