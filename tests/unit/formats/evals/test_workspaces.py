"""Workspaces, hooks and extensions, wherever a file says them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.model.task import AgentRules, Extension, Hook, Repository, TargetHooks, Workspace
from tests.unit.formats.evals.eval_tasks import SOUND, Answer, read_tests

COPY = "every trial has a copy: no folder can be worked in itself"
AS_A_TEXT = "expected `file://PATH:HOOK` or `agentv:agent-rules:HOOK`, with one of beforeAll, beforeEach, afterEach"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("workspace: {templat: x}", "workspace.templat: unknown key; did you mean 'template'?"),
        ("workspace: {repos: [{path: x}]}", "workspace.repos[0]: the key 'repo' is missing"),
        ("workspace: {repos: [{repo: a/b, path: ../x}]}", "workspace.repos[0].path: '../x' is outside the workspace"),
        ("workspace: {repos: [{repo: a, commit: a, base_commit: b}]}", "workspace.repos[0].base_commit: 'commit' and"),
        ("workspace: {hooks: {before: x}}", "workspace.hooks.before: unknown key"),
        ("workspace: {hooks: {before_all: {cwd: .}}}", "workspace.hooks.before_all: the key 'command' is missing"),
        ("workspace: {hooks: {before_all: {command: [1]}}}", "workspace.hooks.before_all.command: expected a command"),
        ("workspace: {isolation: none}", 'workspace.isolation: "none" is not one of the allowed values'),
        ("workspace: {template: ../../../etc}", "workspace.template: '../../../etc' leaves the repository"),
    ],
)
def test_what_is_wrong_with_a_workspace_is_a_problem(tmp_path: Path, said: str, problem: str) -> None:
    (told,) = read(tmp_path, **yaml.safe_load(said)).problems
    assert told.startswith(f"tests[0].{problem}")


def read(root: Path, top: dict[str, Any] | None = None, **said: Any) -> Answer:
    """A sound test in `evals/`, beside a template and a script."""
    files = {"template/a.txt": "", "evals/own/b.txt": "", "evals/setup.py": ""}
    return read_tests(root, SOUND | said, top=top, files=files, name="evals/EVAL.yaml")


RULES = AgentRules(skills=("evals/own",), rules=("template/a.txt", "evals/setup.py"))
SAID_RULES = {"skills": "./own", "rules": ["../template/a.txt", "setup.py"]}


@pytest.mark.parametrize(
    ("said", "extension"),
    [
        ("file://./hooks.mts:beforeEach", Extension(hook="beforeEach", module="evals/hooks.mts")),
        ("file://../shared.js:afterAll", Extension(hook="afterAll", module="shared.js")),
        ("agentv:agent-rules", Extension(hook="beforeAll", agent_rules=AgentRules())),
        ("agentv:agent-rules:afterEach", Extension(hook="afterEach", agent_rules=AgentRules())),
        ({"id": "agentv:agent-rules", **SAID_RULES}, Extension(hook="beforeAll", agent_rules=RULES)),
        (
            {"id": "agentv:agent-rules", "hook": "beforeEach", "config": SAID_RULES},
            Extension(hook="beforeEach", agent_rules=RULES),
        ),
    ],
)
def test_extensions_belong_to_the_workspace(tmp_path: Path, said: Any, extension: Extension) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/hooks.mts").touch()
    (tmp_path / "shared.js").touch()
    answer = read(tmp_path, {"extensions": [said]})
    assert (answer.cannot_run, answer.warnings) == ([], [])
    assert answer.one.workspace == Workspace(extensions=(extension,))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("x", ": expected a list, not "),
        ([1], f"[0]: {AS_A_TEXT}"),
        (["hooks.ts:beforeAll"], f"[0]: {AS_A_TEXT}"),
        (["file://hooks.ts"], f"[0]: {AS_A_TEXT}"),
        (["file://hooks.ts:setUp"], f"[0]: {AS_A_TEXT}"),
        (["agentv:other:beforeAll"], f"[0]: {AS_A_TEXT}"),
        (["file://patch.py:beforeEach"], "[0]: 'patch.py' is not a JavaScript or TypeScript module; give another"),
        ([{"id": "mine"}], "[0].id: `id` must be agentv:agent-rules; a module stands as a text"),
        ([{"id": "agentv:agent-rules", "skill": "x"}], "[0].skill: unknown key; did you mean 'skills'?"),
        ([{"id": "agentv:agent-rules", "hook": "always"}], '[0].hook: "always" is not one of the allowed values'),
        (["file://../../out.ts:beforeAll"], "[0]: '../../out.ts' leaves the repository"),
    ],
)
def test_what_is_wrong_with_extensions_is_a_problem(tmp_path: Path, said: Any, problem: str) -> None:
    (told,) = read(tmp_path, {"extensions": said}).problems
    assert told.startswith(f"extensions{problem}")


def test_a_module_that_is_not_there_keeps_the_tests_from_running(tmp_path: Path) -> None:
    answer = read(tmp_path, {"extensions": ["file://gone.ts:beforeAll"]})
    assert (answer.problems, answer.cannot_run) == ([], ["extensions[0]: no file 'gone.ts'"])


@pytest.mark.parametrize("key", ["execution", "experiment", None])
def test_targets_may_have_hooks(tmp_path: Path, key: str | None) -> None:
    hooks = {"before_each": {"command": ["ls", "x"]}, "after_each": "rm x"}
    targets = {"targets": ["plain", {"name": "with", "use_target": "plain", "hooks": hooks}]}
    answer = read(tmp_path, {key: targets} if key else targets)
    assert answer.one.target == "plain"
    assert answer.one.workspace == Workspace(
        target_hooks=(
            TargetHooks(target="plain"),
            TargetHooks(
                target="with",
                before_each=Hook(command=("ls", "x"), cwd="evals"),
                after_each=Hook(command=("sh", "-c", "rm x"), cwd="evals"),
            ),
        )
    )
    assert answer.warnings[0].endswith("hooks are those of the target that has the agent's name, else of plain")
    assert read(tmp_path, {"targets": [{"name": "a", "hooks": {}}]}).one.workspace is None


def test_a_workspace_is_a_template_repositories_and_hooks(tmp_path: Path) -> None:
    url = "https://example.org/a.git"
    said = {
        "template": "../template",
        "repos": [
            {"path": "./one", "repo": url, "base_commit": "abc", "ancestor": 2, "sparse": ["src"]},
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
            Repository(path="./one", repo=url, commit="abc", ancestor=2, sparse=("src",)),
            Repository(repo="template", commit="main"),
        ),
        before_all=Hook(command=("python", "./setup.py"), cwd="evals", timeout_seconds=1.5),
        before_each=Hook(command=("sh", "-c", "echo hi"), cwd="template"),
        after_all=Hook(command=("true",), cwd="evals"),
        required_commands=("git",),
        required_python_modules=("yaml",),
    )
    assert read(tmp_path).one.workspace is None


def test_a_workspace_may_stand_in_a_file_of_its_own_whose_paths_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "template").mkdir()
    (tmp_path / "workspace.yaml").write_text("template: ./template\nhooks: {before_all: {command: [ls]}}\n")
    workspace = read(tmp_path, {"workspace": "../workspace.yaml"}).one.workspace
    assert workspace == Workspace(template="template", before_all=Hook(command=("ls",)))
    extended = read(tmp_path, {"workspace": "../workspace.yaml", "extensions": ["agentv:agent-rules"]}).one.workspace
    assert (workspace.folder, extended.folder) == (None, ".")


def test_what_a_test_says_goes_before_what_its_file_says_and_hooks_may_be_off(tmp_path: Path) -> None:
    top = {"workspace": {"template": "../template", "hooks": {"before_all": "a", "after_all": "b"}}}
    own = {"template": "./own", "hooks": {"before_all": "c"}}
    assert read(tmp_path, top, workspace=own).one.workspace == Workspace(
        template="evals/own",
        before_all=Hook(command=("sh", "-c", "c"), cwd="evals"),
        after_all=Hook(command=("sh", "-c", "b"), cwd="evals"),
    )
    assert read(tmp_path, top, workspace={"hooks": {"enabled": False}}).one.workspace == Workspace(template="template")


def test_an_environment_is_a_workspace_too(tmp_path: Path) -> None:
    setup = {"command": ["ls"], "cwd": "."}
    said = {"type": "host", "workdir": "../template", "setup": setup, "env": {"A": 1, "B": "b"}}
    assert read(tmp_path, {"environment": said}).one.workspace == Workspace(
        template="template", before_all=Hook(command=("ls",), cwd="evals"), environment={"A": "1", "B": "b"}
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"workspace": {"docker": {"image": "x"}}}, "workspace.docker: passgate runs nothing in Docker"),
        ({"environment": {"type": "docker"}}, "environment: passgate runs nothing in Docker"),
        ({"workspace": {"mode": "static"}}, f"workspace.mode: {COPY}"),
        ({"workspace": {"path": "/srv"}}, f"workspace.path: {COPY}"),
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
def test_what_passgate_does_not_do_cannot_run(tmp_path: Path, said: dict[str, Any], message: str) -> None:
    answer = read(tmp_path, **said)
    assert (answer.problems, answer.cannot_run) == ([], [f"tests[0].{message}"])


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    "said",
    [
        {"workspace": {"template": "../seed"}},
        {"input": [{"role": "user", "content": [{"type": "file", "value": "../seed/a.txt"}]}]},
    ],
    ids=["template", "prompt"],
)
def test_files_that_a_checkout_has_left_out_are_told_before_a_trial(tmp_path: Path, said: Any) -> None:
    files = {"seed/a.txt": POINTER}
    found = read_tests(tmp_path, SOUND | said, files=files, name="evals/EVAL.yaml")
    assert "git lfs pull" in "".join(map(str, found.cannot_run))
