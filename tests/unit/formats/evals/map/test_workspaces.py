"""Workspaces: templates, repositories, hooks, and what passgate does not do."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.task import Hook, Repository, Workspace
from tests.unit.formats.evals.eval_tasks import SOUND, Answer, read_tests


def read(root: Path, top: dict[str, Any] | None = None, **said: Any) -> Answer:
    """A sound test in `evals/`, beside a template and a script."""
    files = {"template/a.txt": "", "evals/own/b.txt": "", "evals/setup.py": ""}
    return read_tests(root, SOUND | said, top=top, files=files, name="evals/EVAL.yaml")


def test_a_test_without_a_workspace_has_none(tmp_path: Path) -> None:
    assert read(tmp_path).one.workspace is None


def test_a_workspace_is_a_template_repositories_and_hooks(tmp_path: Path) -> None:
    said = {
        "template": "../template",
        "repos": [
            {
                "path": "./one",
                "repo": "https://example.org/a.git",
                "base_commit": "abc",
                "ancestor": 2,
                "sparse": ["src"],
            },
            {"repo": "../template", "ref": "main"},
        ],
        "hooks": {
            "before_all": {"command": ["python", "./setup.py"], "timeout_ms": 1500},
            "before_each": {"command": "echo hi", "cwd": "../template"},
            "after_each": {"reset": "fast"},
            "after_all": {"script": ["true"]},
        },
        "env": {"required_commands": ["git"], "required_python_modules": ["yaml"]},
        "isolation": "per_case",
    }
    answer = read(tmp_path, workspace=said)
    assert (answer.cannot_run, answer.warnings) == ([], [])
    assert answer.one.workspace == Workspace(
        template="template",
        repos=(
            Repository(path="./one", repo="https://example.org/a.git", commit="abc", ancestor=2, sparse=("src",)),
            Repository(repo="template", commit="main"),
        ),
        before_all=Hook(command=("python", "./setup.py"), cwd="evals", timeout_seconds=1.5),
        before_each=Hook(command=("sh", "-c", "echo hi"), cwd="template"),
        after_all=Hook(command=("true",), cwd="evals"),
        required_commands=("git",),
        required_python_modules=("yaml",),
    )


def test_a_workspace_may_stand_in_a_file_of_its_own_whose_paths_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "template").mkdir()
    (tmp_path / "workspace.yaml").write_text("template: ./template\nhooks: {before_all: {command: [ls]}}\n")
    workspace = read(tmp_path, {"workspace": "../workspace.yaml"}).one.workspace
    assert workspace == Workspace(template="template", before_all=Hook(command=("ls",)))


def test_what_a_test_says_goes_before_what_its_file_says(tmp_path: Path) -> None:
    top = {"workspace": {"template": "../template", "hooks": {"before_all": "a", "after_all": "b"}}}
    workspace = read(tmp_path, top, workspace={"template": "./own", "hooks": {"before_all": "c"}}).one.workspace
    assert workspace is not None
    assert workspace.template == "evals/own"
    assert (workspace.before_all, workspace.after_all) == (
        Hook(command=("sh", "-c", "c"), cwd="evals"),
        Hook(command=("sh", "-c", "b"), cwd="evals"),
    )


def test_hooks_that_are_not_enabled_are_none(tmp_path: Path) -> None:
    top = {"workspace": {"template": "../template", "hooks": {"before_all": "a"}}}
    assert read(tmp_path, top, workspace={"hooks": {"enabled": False}}).one.workspace == Workspace(template="template")


def test_an_environment_is_a_workspace_too(tmp_path: Path) -> None:
    said = {
        "type": "host",
        "workdir": "../template",
        "setup": {"command": ["ls"], "cwd": "."},
        "env": {"A": 1, "B": "b"},
    }
    assert read(tmp_path, {"environment": said}).one.workspace == Workspace(
        template="template", before_all=Hook(command=("ls",), cwd="evals"), environment={"A": "1", "B": "b"}
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"workspace": {"docker": {"image": "x"}}}, "workspace.docker: passgate runs nothing in Docker"),
        ({"environment": {"type": "docker"}}, "environment: passgate runs nothing in Docker"),
        (
            {"workspace": {"mode": "static"}},
            "workspace.mode: every trial has a copy: no folder can be worked in itself",
        ),
        ({"workspace": {"path": "/srv"}}, "workspace.path: every trial has a copy: no folder can be worked in itself"),
        ({"workspace": {"template": "../gone"}}, "workspace.template: no file '../gone'"),
        (
            {"workspace": {"repos": [{"repo": ""}]}},
            "workspace.repos[0].repo: there is no repository without an address",
        ),
        (
            {"workspace": {"isolation": "shared"}, "depends_on": ["other"]},
            "depends_on: every trial has a workspace of its own: it cannot have that of another test",
        ),
    ],
)
def test_what_passgate_does_not_do_keeps_the_test_from_running(
    tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    answer = read(tmp_path, **said)
    assert answer.problems == []
    assert answer.cannot_run == [f"tests[0].{message}"]


def test_a_dependency_alone_is_a_warning(tmp_path: Path) -> None:
    answer = read(tmp_path, depends_on=["other"], on_dependency_failure="skip")
    assert answer.warnings == ["tests[0].depends_on: every trial stands alone: it is run whatever comes of other tests"]
    assert answer.one.cannot_run == ()


@pytest.mark.parametrize(
    ("workspace", "problem"),
    [
        ({"templat": "x"}, "templat: unknown key; did you mean 'template'?"),
        ({"repos": [{"path": "x"}]}, "repos[0]: the key 'repo' is missing"),
        ({"repos": [{"repo": "a/b", "path": "../x"}]}, "repos[0].path: '../x' is outside the workspace"),
        (
            {"repos": [{"repo": "a/b", "commit": "a", "base_commit": "b"}]},
            "repos[0].base_commit: 'commit' and 'base_commit'",
        ),
        ({"hooks": {"before": "x"}}, "hooks.before: unknown key"),
        ({"hooks": {"before_all": {"cwd": "."}}}, "hooks.before_all: the key 'command' is missing"),
        ({"hooks": {"before_all": {"command": [1]}}}, "hooks.before_all.command: expected a command"),
        ({"isolation": "none"}, 'isolation: "none" is not one of the allowed values'),
        ({"template": "../../../etc"}, "template: '../../../etc' leaves the repository"),
    ],
)
def test_what_is_wrong_with_a_workspace_is_a_problem(tmp_path: Path, workspace: dict[str, Any], problem: str) -> None:
    (told,) = read(tmp_path, workspace=workspace).problems
    assert told.startswith(f"tests[0].workspace.{problem}")
