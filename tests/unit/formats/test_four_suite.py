"""Task files as people write them, right and wrong."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import all_graders
from passgate.tasks.formats.four_suite import TaskReader, shown_path
from passgate.tasks.formats.loading import load_paths
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.policy import Policy, SuitePolicy
from passgate.tasks.model.task import Budgets, EvalTask, GateName, Metric, Suite
from tests.builders import REPOSITORY, SAYS_YES, SHIPPED, write_task

EXAMPLES = REPOSITORY / "tests" / "examples"
VALID, INVALID = EXAMPLES / "valid" / "four_suite", EXAMPLES / "invalid" / "four_suite"


def with_golden(*, alone: bool = False, **rules: Any) -> Policy:
    """The shipped policy with these rules for golden tasks, or nothing else."""
    golden = {Suite.GOLDEN: SuitePolicy(metric=Metric.PASS_HAT_K, **rules)}
    return SHIPPED.model_copy(update={"suites": golden if alone else SHIPPED.suites | golden})


def asked_by(**message: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hi"} | message]}


def task_files(folder: Path) -> list[str]:
    files = (file for suffix in ("yaml", "yml") for file in folder.rglob(f"*.{suffix}"))
    return sorted(str(file.relative_to(folder)) for file in files if "_shared" not in file.parts)


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
    assert (len(task_files(VALID)) >= 5, len(task_files(INVALID)) >= 30) == (True, True)


@pytest.mark.parametrize("example", task_files(VALID))
def test_every_valid_example_loads(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(VALID)
    loaded = load_paths([Path(example)], SHIPPED)
    assert loaded.problems == ()
    assert [task.file for task in loaded.tasks] == [example]


@pytest.mark.parametrize("example", task_files(INVALID))
def test_every_invalid_example_has_the_expected_problems(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of an `.expected` file name no file, unless the problem is in another one; `…` stands for any rest."""
    monkeypatch.chdir(INVALID)
    loaded = load_paths([Path(example)], SHIPPED)
    assert loaded.tasks == () or loaded.tasks[0].cannot_run or loaded.warnings
    wrong = sorted([*loaded.problems, *loaded.cannot_run], key=lambda one: (one.file, one.line, one.column))
    found = [str(problem).removeprefix(f"{example}:") for problem in wrong]
    found += ["warning: " + str(problem).removeprefix(f"{example}:") for problem in loaded.warnings]
    expected = Path(example).with_suffix(".expected").read_text(encoding="utf-8").splitlines()
    assert len(found) == len(expected)
    for line, wanted in zip(found, expected, strict=True):
        assert line.startswith(wanted[:-1]) if wanted.endswith("…") else line == wanted


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
        *("deterministic_tests", "static_analysis", "state_check", "tool_calls", "trajectory_metrics"),
        *("policy_check", "output_check", "llm_rubric", "llm_rubric"),
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
    """The example `too_many_steps` is over it."""
    task = read(environment={"budgets": {"max_steps": 0, "max_seconds": 1.5}})
    assert task.budgets == Budgets(max_steps=0, max_seconds=1.5)
    assert isinstance(read(environment={"budgets": {"max_steps": 20}}), EvalTask)


def test_metrics_are_named_once(read) -> None:
    metrics = read(tracked_metrics=["cost", "tokens", "tokens_in", {"type": "cost"}]).tracked_metrics
    assert metrics == ("cost", "tokens_in", "tokens_cached", "tokens_out", "total_tokens")


def test_a_suite_that_the_policy_does_not_know_or_the_wrong_place_is_a_problem(read) -> None:
    (problem,) = read(with_golden(k=1, max_steps=1, alone=True), suite="adversarial")
    assert problem.path == "suite"
    assert "says nothing of the suite adversarial" in problem.message
    assert isinstance(read(name="golden/deep/down/task.yaml"), EvalTask)
    for wrong in ({"name": "golden/adversarial/task.yaml"}, {"suite": "no", "environment": {"sandbox": "gone"}}):
        assert [problem.path for problem in read(**wrong)] == ["suite"]


def test_a_broken_sandbox_is_a_problem_of_every_task_that_uses_it(read, tmp_path: Path) -> None:
    (tmp_path / "_shared/sandboxes/broken").mkdir(parents=True)
    (tmp_path / "_shared/sandboxes/broken/sandbox.yaml").write_text("setup: 3\n")
    for name in ("a.yaml", "b.yaml"):
        (problem,) = read(name=name, environment={"sandbox": "broken"})
        assert str(problem) == "_shared/sandboxes/broken/sandbox.yaml:1:8: setup: expected a list, not 3"


@pytest.mark.parametrize("name", ["../sandboxes/bare", "/etc", "bare/files", ".", "x" * 5000, "a\0b"])
def test_a_sandbox_is_a_name(read, tmp_path: Path, name: str) -> None:
    (tmp_path / "_shared/sandboxes/bare/files").mkdir(parents=True)
    assert read(environment={"sandbox": "bare"}).sandbox == "bare"
    (problem,) = read(environment={"sandbox": name})
    assert problem.path == "environment.sandbox"


def test_a_link_that_leaves_the_suites_folder_is_a_problem(read, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.py"
    for file in (outside, tmp_path / "inside.py"):
        file.write_text("def test_it(): ...")
    for name, target in (("leaves", outside), ("stays", tmp_path / "inside.py"), ("circle", tmp_path / "circle.py")):
        (tmp_path / f"{name}.py").symlink_to(target)
    grader = {"type": "deterministic_tests", "tests": ["inside.py", "stays.py", "leaves.py", "circle.py"]}
    problems = read(graders=[grader])
    assert [problem.path for problem in problems] == ["graders[0].tests[2]", "graders[0].tests[3]"]
    assert problems[0].message == "'leaves.py' leaves the suites folder"


RUBRIC = {"type": "llm_rubric", "rubric": "a.md"}
ASKED = {"messages": [{"role": "user", "content": [{"type": "file", "value": "a.md"}]}]}


@pytest.mark.parametrize(
    ("change", "same_task", "same_graders"),
    [
        ({"description": "Other words.", "tags": ["a"], "gates": {"nightly": False}}, True, True),
        ({"tracked_metrics": ["tokens"]}, True, True),
        ({"graders": [{**SAYS_YES, "name": "other"}]}, True, False),
        ({"graders": [{**SAYS_YES, "ignore_case": True}]}, True, False),
        ({"inputs": {}}, False, True),
        ({"inputs": {"prompt": "Say no."}}, False, True),
        ({"environment": {"budgets": {"max_tokens": 5}}}, False, True),
        ({"environment": {"reset": {"commands": ["true"]}}}, False, True),
        ({"trials": {"k": 3}}, False, True),
        ({"task_id": "other"}, True, True),
        ({"suite": "adversarial"}, True, True),
    ],
)
def test_the_digests_are_of_what_the_agent_and_the_graders_are_given(
    read, change: dict[str, Any], same_task: bool, same_graders: bool
) -> None:
    plain, task = read(), read(**change)
    assert (task.task_digest == plain.task_digest) is same_task
    assert (task.grader_digest == plain.grader_digest) is same_graders


@pytest.mark.parametrize("grader", [RUBRIC, {"type": "llm_grader", "prompt_file": "a.md"}])
def test_what_a_message_or_a_judge_has_from_a_file_is_in_the_digest(
    read, tmp_path: Path, grader: dict[str, Any]
) -> None:
    tasks = []
    for text in ("1", "2"):
        (tmp_path / "a.md").write_text(text)
        tasks.append(read(inputs=ASKED, graders=[grader]))
    assert tasks[0].task_digest != tasks[1].task_digest
    assert tasks[0].grader_digest != tasks[1].grader_digest


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
    code = '<file path="code.py">\nx = 1\n</file>'
    assert [message.text for message in task.messages] == ["Be short.", f"Review\n\n{code}"]
    assert (task.inputs, task.reference_answer) == ({"messages": asked}, code)
    assert (task.scoring.rule, task.scoring.threshold, task.metric) == ("weighted_average", 0.6, Metric.MEAN)
    assert task.workspace is not None
    assert (task.workspace.template, task.note, task.target) == ("template", "For judges.", "gpt")
    assert task.metadata == {"a": [1]}
    assert [getattr(grader, "prompt", None) for grader in task.graders] == [None, "Is it kind?"]


def test_judges_in_other_graders_get_the_prompts_of_their_files_too(read, tmp_path: Path) -> None:
    (tmp_path / "judge.md").write_text("Is it kind?")
    judge = {"type": "llm_grader", "prompt_file": "judge.md"}
    turns = {"type": "turns", "turns": [{"assertions": [judge]}], "conversation": [judge]}
    task = read(graders=[turns, {"type": "composite", "assertions": [judge]}])
    assert isinstance(task, EvalTask), task
    judges = [one for one in all_graders(task.graders) if isinstance(one, LlmGrader)]
    assert [one.prompt for one in judges] == ["Is it kind?"] * 3


@pytest.mark.parametrize(
    ("inputs", "path", "message"),
    [
        (asked_by(role="usr"), "messages[0].role", "Input should be 'system'"),
        (asked_by(content=[{"type": "file", "value": "gone.md"}]), "value", "no file 'gone.md'"),
        (asked_by(content=[{"type": "file", "value": "../x"}]), "value", "leaves the suites folder"),
        (asked_by(content=[{"type": "image", "value": 3}]), "value", "expected a path"),
        (asked_by() | {"prompt": "Hi"}, "inputs.messages", "give either `prompt` or `messages`"),
    ],
)
def test_messages_that_cannot_be_read_are_problems(read, inputs: dict[str, Any], path: str, message: str) -> None:
    (found,) = read(inputs=inputs)
    assert found.path.endswith(path)
    assert message in found.message


def test_a_grader_that_passgate_does_not_have_keeps_the_task_from_running(read) -> None:
    inner = {"type": "unavailable", "kind": "similar", "options": {"value": "x"}}
    task = read(graders=[{"type": "composite", "assertions": [inner]}])
    assert task.cannot_run == ("task.yaml:12:1: graders: passgate has no evaluator 'similar'",)
