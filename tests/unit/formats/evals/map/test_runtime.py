"""Time, target, threshold and repeats, wherever a file says them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.model.task import Hook, Metric, Repository, Workspace
from tests.builders import SHIPPED
from tests.unit.formats.evals.eval_tasks import SOUND, Answer, read_file, read_test, read_tests

DIFFERS = "says something else than execution.threshold; keep one of them"
COPY = "every trial has a copy: no folder can be worked in itself"
NEEDS_TWO = ": a confidence interval needs a count of 2 or more"


@pytest.mark.parametrize(
    ("top", "said", "threshold"),
    [
        ({}, {}, 0.8),
        ({"threshold": 0.1}, {}, 0.1),
        ({"experiment": {"threshold": 0.2}}, {}, 0.2),
        ({"experiment": {"threshold": 0.2}}, {"execution": {"threshold": 0.3}}, 0.3),
        ({"execution": {"threshold": 0.2}}, {"threshold": 0.4}, 0.4),
        ({"run": {"threshold": 0.2}}, {"execution": {"threshold": 0.3}, "run": {"threshold": 0.5}}, 0.5),
        ({"threshold": 0.5, "execution": {"threshold": 0.5}}, {}, 0.5),
    ],
)
def test_the_nearest_threshold_counts(tmp_path: Path, top: Any, said: Any, threshold: float) -> None:
    assert read_test(tmp_path, top, **said).one.scoring.threshold == threshold


def test_the_run_of_a_test_goes_before_that_of_its_include_and_that_before_the_files(tmp_path: Path) -> None:
    cases = "- {id: a, input: x, criteria: c, run: {threshold: 0.9}}\n- {id: b, input: x, criteria: c}\n"
    top = {
        "experiment": {"threshold": 0.2, "timeout_seconds": 7},
        "tests": [{"include": "inner.yaml", "type": "tests", "run": {"threshold": 0.5}}],
    }
    tasks = read_file(tmp_path, top, files={"inner.yaml": cases}).tasks
    assert [(task.scoring.threshold, task.budgets.max_seconds) for task in tasks] == [(0.9, 7), (0.5, 7)]


def test_a_wrapper_says_how_the_tests_of_its_suites_are_run(tmp_path: Path) -> None:
    inner = (
        "experiment: {threshold: 0.1, repeat: {count: 9, strategy: mean}}\ntests: [{id: a, input: x, criteria: c}]\n"
    )
    wrapper = {
        "experiment": {"threshold": 0.7, "repeat": 2},
        "tests": [{"include": "inner.eval.yaml", "type": "suite"}],
    }
    task = read_file(tmp_path, wrapper, files={"inner.eval.yaml": inner}).one
    assert (task.scoring.threshold, task.k, task.metric) == (0.7, 2, Metric.PASS_HAT_K)


@pytest.mark.parametrize(
    ("top", "problem"),
    [
        ({"threshold": 0.5, "execution": {"threshold": 0.6}}, f"threshold: {DIFFERS}"),
        ({"threshold": 0}, "threshold: with a threshold of 0 nothing can fail"),
        ({"threshold": "high"}, 'threshold: expected a number, not "high"'),
        ({"execution": {"timeout_seconds": 0}}, "execution.timeout_seconds: must be at least 1, not 0"),
        ({"execution": {"timeout_seconds": 3601}}, "execution.timeout_seconds: must be at most 3600, not 3601"),
        ({"execution": {"timeout_seconds": 0.5}}, "execution.timeout_seconds: expected a whole number, not 0.5"),
        ({"run": {"timeout_seconds": 0}}, "run.timeout_seconds: must be more than 0"),
        ({"execution": {"timeout": 5}}, "execution.timeout: unknown key; did you mean 'timeout_seconds'?"),
        ({"experiment": [1]}, "experiment: expected a mapping, not [1]"),
        ({"compat": "promptfoo"}, 'compat: the only value is agentv, not "promptfoo"'),
    ],
)
def test_what_is_wrong_at_the_top_is_told_once(tmp_path: Path, top: dict[str, Any], problem: str) -> None:
    assert read_tests(tmp_path, SOUND, SOUND | {"id": "u"}, top=top).problems == [problem]


@pytest.mark.parametrize(
    ("top", "said", "seconds"),
    [
        ({}, {}, 600),
        ({"execution": {"timeout_seconds": 30}}, {}, 30),
        ({"evaluate_options": {"timeout_ms": 1500}}, {}, 1.5),
        ({"execution": {"timeout_seconds": 30}}, {"execution": {"timeout_seconds": 60}}, 60),
    ],
)
def test_a_time_limit_is_a_budget(tmp_path: Path, top: Any, said: Any, seconds: float) -> None:
    assert read_test(tmp_path, top, **said).one.budgets.max_seconds == seconds


def test_scores_are_agentvs_where_the_file_or_the_policy_says_so(tmp_path: Path) -> None:
    assert read_test(tmp_path).one.scoring.compat is None
    assert read_test(tmp_path, {"compat": "agentv"}).one.scoring.compat == "agentv"
    policy = SHIPPED.model_copy(update={"compat": "agentv"})
    assert read_tests(tmp_path, SOUND, policy=policy).one.scoring.compat == "agentv"


def test_what_is_not_for_one_test_is_a_warning(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, SOUND | {"id": "u"}, top={"experiment": {"budget_usd": 1}})
    assert answer.warnings == [
        "experiment.budget_usd: what a run may cost is said on the command line, with --max-cost"
    ]
    assert answer.tasks[0].budgets.max_cost_usd is None
    answer = read_test(tmp_path, {"execution": {"targets": ["a", "b", "c"]}})
    assert answer.warnings == ["execution.targets: a run has one agent, that of --agent: it is not run with b, c too"]
    answer = read(tmp_path, depends_on=["other"], on_dependency_failure="skip")
    assert answer.warnings == ["tests[0].depends_on: every trial stands alone: it is run whatever comes of other tests"]
    assert answer.one.cannot_run == ()


@pytest.mark.parametrize(
    "top",
    [
        {"execution": {"target": "gpt"}},
        {"experiment": {"targets": ["gpt", {"name": "other"}]}},
        {"providers": [{"id": "openai", "label": "gpt"}]},
    ],
)
def test_the_first_target_is_kept(tmp_path: Path, top: dict[str, Any]) -> None:
    assert read_test(tmp_path, top).one.target == "gpt"


@pytest.mark.parametrize(
    ("top", "k", "metric"),
    [
        ({}, 3, Metric.PASS_HAT_K),
        ({"execution": {"trials": {"count": 4, "strategy": "pass_at_k"}}}, 4, Metric.PASS_AT_K),
        ({"experiment": {"repeat": {"count": 4, "strategy": "pass_all"}}}, 4, Metric.PASS_HAT_K),
        ({"experiment": {"repeat": {"count": 4, "strategy": "pass_any"}}}, 4, Metric.PASS_AT_K),
        ({"run": {"repeat": {"count": 4, "strategy": "mean"}}}, 4, Metric.MEAN),
        ({"execution": {"trials": {"count": 2, "strategy": "confidence_interval"}}}, 2, Metric.CONFIDENCE_INTERVAL),
        ({"experiment": {"runs": 5, "early_exit": False}}, 5, Metric.PASS_HAT_K),
        ({"evaluate_options": {"repeat": 6}}, 6, Metric.PASS_HAT_K),
        ({"policy": {"runs": 7}}, 7, Metric.PASS_HAT_K),
    ],
)
def test_repeats_are_trials_and_their_strategy_is_a_metric(tmp_path: Path, top: Any, k: int, metric: Metric) -> None:
    task = read_test(tmp_path, top).one
    assert (task.k, task.metric) == (k, metric)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("run: {threshold: 0}", "run.threshold: with a threshold of 0 nothing can fail"),
        ("run: {repeat: 0}", "run.repeat: must be from 1 to 1000, not 0"),
        ("run: {repeat: {count: 1, strategy: confidence_interval}}", f"run.repeat{NEEDS_TWO}"),
        ("run: {repeat: {count: 2, strategy: al}}", 'run.repeat.strategy: "al" is not one of the allowed values'),
        ("run: {repeat: {strategy: mean}}", "run.repeat: the key 'count' is missing"),
        ("run: {repeat: {count: 2, stratgy: mean}}", "run.repeat.stratgy: unknown key; did you mean 'strategy'?"),
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
def test_what_is_wrong_with_repeats_or_a_workspace_is_a_problem(tmp_path: Path, said: str, problem: str) -> None:
    (told,) = read(tmp_path, **yaml.safe_load(said)).problems
    assert told.startswith(f"tests[0].{problem}")


def read(root: Path, top: dict[str, Any] | None = None, **said: Any) -> Answer:
    """A sound test in `evals/`, beside a template and a script."""
    files = {"template/a.txt": "", "evals/own/b.txt": "", "evals/setup.py": ""}
    return read_tests(root, SOUND | said, top=top, files=files, name="evals/EVAL.yaml")


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
