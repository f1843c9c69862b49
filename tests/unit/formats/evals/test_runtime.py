"""Time, target, threshold and repeats, wherever a file says them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.model.task import Metric
from tests.unit.formats.evals.eval_tasks import SOUND, read_file, read_test, read_tests

DIFFERS = "says something else than execution.threshold; keep one of them"
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
        ({"run": {"timeout_seconds": 0}}, "run.timeout_seconds: must be more than 0, not 0"),
        ({"execution": {"timeout": 5}}, "execution.timeout: unknown key; did you mean 'timeout_seconds'?"),
        ({"experiment": [1]}, "experiment: expected a mapping, not [1]"),
        (
            {"compat": "agentv"},
            "compat: removed key: leave it out; docs/compatibility.md lists where AgentV computes other scores",
        ),
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


def test_what_is_not_for_one_test_is_a_warning(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, SOUND | {"id": "u"}, top={"experiment": {"budget_usd": 1}})
    assert answer.warnings == [
        "experiment.budget_usd: what a run may cost is said on the command line, with --max-cost"
    ]
    assert answer.tasks[0].budgets.max_cost_usd is None
    answer = read_test(tmp_path, {"execution": {"targets": ["a", "b", "c"]}})
    assert answer.warnings == ["execution.targets: a run has one agent, that of --agent: it is not run with b, c too"]
    answer = read_test(tmp_path, depends_on=["other"], on_dependency_failure="skip")
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
        ("run: {repeat: 0}", "run.repeat: must be at least 1, not 0"),
        ("run: {repeat: {count: 1, strategy: confidence_interval}}", f"run.repeat{NEEDS_TWO}"),
        ("run: {repeat: {count: 2, strategy: al}}", 'run.repeat.strategy: "al" is not one of the allowed values'),
        ("run: {repeat: {strategy: mean}}", "run.repeat: the key 'count' is missing"),
        ("run: {repeat: {count: 2, stratgy: mean}}", "run.repeat.stratgy: unknown key; did you mean 'strategy'?"),
    ],
)
def test_what_is_wrong_with_repeats_is_a_problem(tmp_path: Path, said: str, problem: str) -> None:
    (told,) = read_test(tmp_path, **yaml.safe_load(said)).problems
    assert told.startswith(f"tests[0].{problem}")
