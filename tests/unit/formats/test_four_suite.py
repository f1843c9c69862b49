"""Task files as people write them, right and wrong."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import Problem
from passgate.tasks.formats.four_suite import TaskReader, shown_path
from passgate.tasks.formats.loading import load_paths
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.policy import Policy, SuitePolicy
from passgate.tasks.model.task import Budgets, EvalTask, GateName, Metric, SequentialTest, Suite
from tests.builders import REPOSITORY, SAYS_YES, SHIPPED, write_task

EXAMPLES = REPOSITORY / "tests" / "examples"
VALID, INVALID = EXAMPLES / "valid" / "four_suite", EXAMPLES / "invalid" / "four_suite"


def task_files(folder: Path) -> list[str]:
    files = (file for suffix in ("yaml", "yml") for file in folder.rglob(f"*.{suffix}"))
    return sorted(str(file.relative_to(folder)) for file in files if "_shared" not in file.parts)


def as_expected(problem: Problem, example: str) -> str:
    """The lines of an `.expected` file name no file, unless the problem is in another one."""
    return str(problem).removeprefix(f"{example}:")


@pytest.fixture
def read(tmp_path: Path):
    def _read(
        policy: Policy = SHIPPED, /, *, name: str = "task.yaml", **changes: Any
    ) -> EvalTask | list[Problem] | None:
        file = write_task(tmp_path / name, **changes)
        task, said = TaskReader(tmp_path, policy, working_folder=tmp_path).read(file)
        return [*said.problems, *said.unread, *said.warnings] or task

    return _read


def test_there_are_examples() -> None:
    assert len(task_files(VALID)) >= 5
    assert len(task_files(INVALID)) >= 30


@pytest.mark.parametrize("example", task_files(VALID))
def test_every_valid_example_loads(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(VALID)
    loaded = load_paths([Path(example)], SHIPPED)
    assert loaded.problems == ()
    assert [task.file for task in loaded.tasks] == [example]


@pytest.mark.parametrize("example", task_files(INVALID))
def test_every_invalid_example_has_the_expected_problems(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(INVALID)
    loaded = load_paths([Path(example)], SHIPPED)
    assert loaded.tasks == () or loaded.tasks[0].cannot_run or loaded.warnings
    wrong = sorted(
        [*loaded.problems, *loaded.cannot_run], key=lambda problem: (problem.file, problem.line, problem.column)
    )
    found = [as_expected(problem, example) for problem in wrong]
    found += [f"warning: {as_expected(problem, example)}" for problem in loaded.warnings]
    expected = Path(example).with_suffix(".expected").read_text(encoding="utf-8")
    assert "".join(f"{line}\n" for line in found) == expected


def test_every_key_of_a_task_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(VALID)
    (task,) = load_paths([Path("open_ended/everything.yml")], SHIPPED).tasks
    assert task.suite is Suite.OPEN_ENDED
    assert task.description == "Every key that a task can have, with a description of two lines."
    assert task.tags == ("first", "second")
    assert task.prompt == "Say yes.\n"
    assert task.inputs["customer"] == {"name": "Zoë", "orders": [1, 2.5, None, True]}
    assert (task.sandbox, task.reset, task.network) == ("notes", ("date > started",), False)
    assert task.budgets == Budgets(max_steps=12, max_tool_calls=0, max_tokens=1000, max_cost_usd=0.25, max_seconds=0.5)
    assert (task.k, task.metric) == (7, Metric.PASS_HAT_K)
    assert [grader.type for grader in task.graders] == [
        "deterministic_tests",
        "static_analysis",
        "state_check",
        "tool_calls",
        "trajectory_metrics",
        "policy_check",
        "output_check",
        "llm_rubric",
        "llm_rubric",
    ]
    assert [grader.label for grader in task.graders][-2:] == ["llm_rubric", "in words"]
    assert task.tracked_metrics == (
        *("tokens_in", "tokens_cached", "tokens_out", "total_tokens", "steps"),
        *("wall_time_seconds", "p95_step_latency_ms", "time_to_first_token", "tool_error_rate"),
    )
    assert task.gates == {GateName.NIGHTLY, GateName.RELEASE_CANDIDATE}
    assert task.reference is not None
    assert [example.name for example in task.reference.counterexamples] == ["does-nothing", "only-talks"]
    assert (task.file, task.line) == ("open_ended/everything.yml", 2)


@pytest.mark.parametrize("suite", list(Suite))
def test_what_a_task_does_not_say_is_what_its_suite_says(read, suite: Suite) -> None:
    task = read(suite=str(suite))
    policy = SHIPPED.suites[suite]
    assert (task.k, task.metric) == (policy.k, policy.metric)
    assert task.budgets == Budgets(max_steps=policy.max_steps, max_seconds=policy.budgets.max_seconds)
    assert task.gates == set(GateName)
    assert (task.sandbox, task.reset, task.reference) == (None, (), None)


def test_budgets_of_the_task_go_before_the_suites_up_to_its_limit(read) -> None:
    task = read(environment={"budgets": {"max_steps": 0, "max_seconds": 1.5}})
    assert task.budgets == Budgets(max_steps=0, max_seconds=1.5)
    assert isinstance(read(environment={"budgets": {"max_steps": 20}}), EvalTask)
    (problem,) = read(environment={"budgets": {"max_steps": 21}})
    assert problem.message == "21 steps are more than the limit of 20 of the suite golden"


def test_a_suite_that_the_policy_does_not_know_or_the_wrong_place_is_a_problem(read) -> None:
    only_golden = SHIPPED.model_copy(
        update={"suites": {Suite.GOLDEN: SuitePolicy(k=1, metric=Metric.PASS_HAT_K, max_steps=1)}}
    )
    (problem,) = read(only_golden, suite="adversarial")
    assert problem.path == "suite"
    assert "says nothing of the suite adversarial" in problem.message
    assert isinstance(read(name="golden/deep/down/task.yaml"), EvalTask)
    (problem,) = read(name="golden/adversarial/task.yaml")
    assert problem.path == "suite"
    problems = read(suite="no", environment={"sandbox": "gone"})
    assert [problem.path for problem in problems] == ["suite"]


def test_metrics_are_named_once(read) -> None:
    assert read(tracked_metrics=["cost", "tokens", "tokens_in", {"type": "cost"}]).tracked_metrics == (
        "cost",
        "tokens_in",
        "tokens_cached",
        "tokens_out",
        "total_tokens",
    )


def test_a_broken_sandbox_is_a_problem_of_every_task_that_uses_it(read, tmp_path: Path) -> None:
    (tmp_path / "_shared/sandboxes/broken").mkdir(parents=True)
    (tmp_path / "_shared/sandboxes/broken/sandbox.yaml").write_text("setup: 3\n")
    first = read(name="a.yaml", environment={"sandbox": "broken"})
    second = read(name="b.yaml", environment={"sandbox": "broken"})
    assert [str(problem) for problem in first] == [
        "_shared/sandboxes/broken/sandbox.yaml:1:8: setup: expected a list, not 3"
    ]
    assert first == second
    (tmp_path / "_shared/sandboxes/bare/files").mkdir(parents=True)
    assert read(environment={"sandbox": "bare"}).sandbox == "bare"


@pytest.mark.parametrize("name", ["../sandboxes/bare", "/etc", "bare/files", ".", "x" * 5000, "a\0b"])
def test_a_sandbox_is_a_name(read, tmp_path: Path, name: str) -> None:
    (tmp_path / "_shared/sandboxes/bare/files").mkdir(parents=True)
    (problem,) = read(environment={"sandbox": name})
    assert problem.path == "environment.sandbox"


def test_a_link_that_leaves_the_suites_folder_is_a_problem(read, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.py"
    outside.write_text("")
    (tmp_path / "inside.py").write_text("")
    (tmp_path / "leaves.py").symlink_to(outside)
    (tmp_path / "stays.py").symlink_to(tmp_path / "inside.py")
    (tmp_path / "circle.py").symlink_to(tmp_path / "circle.py")
    grader = {"type": "deterministic_tests", "tests": ["inside.py", "stays.py", "leaves.py", "circle.py"]}
    problems = read(graders=[grader])
    assert [problem.path for problem in problems] == ["graders[0].tests[2]", "graders[0].tests[3]"]
    assert problems[0].message == "'leaves.py' leaves the suites folder"


def test_the_digests_are_of_what_the_agent_and_the_graders_are_given(read, tmp_path: Path) -> None:
    plain = read()
    same = read(description="Other words.", tags=["new"], gates={"nightly": False}, tracked_metrics=["tokens"])
    assert same.task_digest == plain.task_digest
    assert read(graders=[{**SAYS_YES, "name": "other"}]).task_digest == plain.task_digest
    for change in (
        {"inputs": {"prompt": "Say no."}},
        {"environment": {"budgets": {"max_tokens": 5}}},
        {"environment": {"reset": {"commands": ["true"]}}},
        {"trials": {"k": 3}},
        {"task_id": "other"},
        {"suite": "adversarial"},
    ):
        assert read(**change).task_digest != plain.task_digest, change
    plain = read()
    assert read(inputs={}).grader_digest == plain.grader_digest
    assert read(graders=[{**SAYS_YES, "ignore_case": True}]).grader_digest != plain.grader_digest
    (tmp_path / "rubric.md").write_text("Is it kind?")
    rubric = [{"type": "llm_rubric", "rubric": "rubric.md"}]
    before = read(graders=rubric).grader_digest
    (tmp_path / "rubric.md").write_text("Is it very kind?")
    assert read(graders=rubric).grader_digest != before


@pytest.mark.parametrize(
    ("trials", "tested"),
    [
        ({}, True),
        ({"k": 10}, True),
        ({"k": 9}, False),
        ({"metric": "pass@k"}, True),
        ({"metric": "mean"}, False),
        ({"metric": "confidence_interval"}, False),
    ],
)
def test_a_suites_sequential_test_decides_its_tasks_of_ten_trials_and_more(
    read, trials: dict[str, Any], tested: bool
) -> None:
    test = SequentialTest(accept=0.95, reject=0.7)
    suite = SuitePolicy(k=12, metric=Metric.PASS_HAT_K, max_steps=8, sequential=test)
    policy = SHIPPED.model_copy(update={"suites": {**SHIPPED.suites, Suite.GOLDEN: suite}})
    assert read(policy, trials=trials, scoring=WEIGHTED).sequential == (test if tested else None)
    assert read(trials=trials, scoring=WEIGHTED).sequential is None


def test_how_a_file_is_shown(tmp_path: Path) -> None:
    assert shown_path(tmp_path / "a" / "b.yaml", tmp_path) == "a/b.yaml"
    assert shown_path(tmp_path / "b.yaml", tmp_path / "a") == str(tmp_path / "b.yaml")


WEIGHTED = {"rule": "weighted_average", "threshold": 0.6}


def test_what_eval_files_say_can_be_said_in_a_task_file_too(read, tmp_path: Path) -> None:
    (tmp_path / "template").mkdir()
    (tmp_path / "code.py").write_text("x = 1")
    (tmp_path / "judge.md").write_text("Is it kind?")
    asked = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "value": "Review"}, {"type": "file", "value": "code.py"}]},
    ]
    task = read(
        inputs={"messages": asked},
        environment={"workspace": {"template": "template", "before_all": {"command": ["ls"]}}},
        scoring=WEIGHTED,
        trials={"k": 2, "metric": "mean"},
        graders=[{"type": "contains", "value": "x", "weight": 2}, {"type": "llm_grader", "prompt_file": "judge.md"}],
        criteria="Finds the bug.",
        expected_messages=[{"role": "assistant", "content": [{"type": "file", "value": "code.py"}]}],
        note="For judges.",
        conversation_id="c1",
        metadata={"a": [1]},
        target="gpt",
    )
    assert isinstance(task, EvalTask), task
    assert [message.text for message in task.messages] == [
        "Be short.",
        'Review\n\n<file path="code.py">\nx = 1\n</file>',
    ]
    assert task.inputs == {"messages": asked}
    assert (task.scoring.rule, task.scoring.threshold, task.metric) == ("weighted_average", 0.6, Metric.MEAN)
    assert task.workspace is not None
    assert (task.workspace.template, task.note, task.metadata, task.target) == (
        "template",
        "For judges.",
        {"a": [1]},
        "gpt",
    )
    assert task.reference_answer == '<file path="code.py">\nx = 1\n</file>'
    judge = task.graders[1]
    assert isinstance(judge, LlmGrader)
    assert judge.prompt == "Is it kind?"


def test_what_a_message_or_a_judge_has_from_a_file_is_in_the_digest(read, tmp_path: Path) -> None:
    asked = {"messages": [{"role": "user", "content": [{"type": "file", "value": "a.txt"}]}]}
    judges = [{"type": "llm_grader", "prompt_file": "judge.md"}]
    digests = []
    for text in ("1", "2"):
        (tmp_path / "a.txt").write_text(text)
        (tmp_path / "judge.md").write_text(text)
        task = read(inputs=asked, graders=judges)
        digests.append((task.task_digest, task.grader_digest))
    (task, grader), (other_task, other_grader) = digests
    assert task != other_task
    assert grader != other_grader


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "usr", "content": "x"}], ("inputs.messages[0].role", "Input should be 'system'")),
        ([{"role": "user", "content": [{"type": "file", "value": "gone.md"}]}], ("value", "no file 'gone.md'")),
        ([{"role": "user", "content": [{"type": "file", "value": "../x"}]}], ("value", "leaves the suites folder")),
        ([{"role": "user", "content": [{"type": "image", "value": 3}]}], ("value", "expected a path")),
    ],
)
def test_messages_that_cannot_be_read_are_problems(read, messages: Any, problem: tuple[str, str]) -> None:
    (found,) = read(inputs={"messages": messages})
    assert found.path.endswith(problem[0])
    assert problem[1] in found.message


def test_a_task_asks_in_one_way(read) -> None:
    (problem,) = read(inputs={"prompt": "Hi", "messages": [{"role": "user", "content": "Hi"}]})
    assert problem.message == "give either `prompt` or `messages`"


def test_a_grader_that_passgate_does_not_have_keeps_the_task_from_running(read) -> None:
    inner = {"type": "unavailable", "kind": "similar", "options": {"value": "x"}}
    task = read(graders=[{"type": "composite", "assertions": [inner]}])
    assert task.cannot_run == ("task.yaml:12:1: graders: passgate has no evaluator 'similar'",)
