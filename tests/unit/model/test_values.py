"""The little that models do themselves."""

import subprocess
from typing import Any

import pytest
from pydantic import ValidationError
from tests.builders import SAYS_YES, a_grade, a_plan, a_task, a_trial, a_violation

from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.graders import OutputCheck, grader_vetoes
from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.policy import is_branch_name
from passgate.tasks.model.task import Budgets, Suite, guards_safety
from passgate.tasks.model.transcript import Usage, total_usage
from passgate.tasks.model.trial import trial_numbers


def test_values_cannot_be_changed_and_have_no_unknown_fields() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        a_task().k = 5  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Budgets.model_validate({"max_step": 3})


def test_budgets_over_defaults() -> None:
    own, defaults = Budgets(max_steps=0, max_cost_usd=1.0), Budgets(max_steps=9, max_seconds=60)
    assert own.over(defaults) == Budgets(max_steps=0, max_cost_usd=1.0, max_seconds=60)
    assert Budgets().over(defaults) == defaults


@pytest.mark.parametrize(
    ("inputs", "prompt"), [({}, ""), ({"prompt": "Go."}, "Go."), ({"prompt": 3}, "3"), ({"other": "x"}, "")]
)
def test_the_prompt_of_a_task(inputs: dict[str, object], prompt: str) -> None:
    assert a_task(inputs=inputs).prompt == prompt


def test_digests_are_of_values_not_of_their_order() -> None:
    assert json_digest({"a": 1, "b": [1, 2]}) == json_digest({"b": [1, 2], "a": 1})
    assert json_digest([1, 2]) != json_digest([2, 1])
    assert json_digest("1") != json_digest(1)
    assert len(json_digest("\ud800 é")) == 64


@pytest.mark.parametrize(
    "wrong",
    [{"tokens_in": -1}, {"tokens_out": 10**13}, {"cost_usd": -0.1}, {"cost_usd": float("nan")}, {"tokens_in": 1.5}],
)
def test_usage_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    """A budget cannot be held against it."""
    with pytest.raises(ValidationError):
        Usage.model_validate(wrong)


def test_what_plans_and_trials_know_and_how_agents_and_graders_are_called() -> None:
    plan = a_plan()
    assert plan.gate_policy is plan.policy.gates[plan.gate]
    grades = (a_grade(violations=(a_violation(),)), a_grade(), a_grade(violations=(a_violation(message="again"),)))
    assert [violation.message for violation in a_trial(a_task(), grades=grades).violations] == ["it leaked", "again"]
    assert str(AgentSpec(kind=AgentKind.NOP)) == "nop"
    assert str(AgentSpec(kind=AgentKind.CLI, target="a b")) == "cli:a b"
    assert OutputCheck(type="output_check").label == "output_check"
    assert OutputCheck(type="output_check", name="greeting").label == "greeting"


def test_what_was_used_by_all_votes_together() -> None:
    known = Usage(tokens_in=5, tokens_out=2, tokens_cached=1, cost_usd=0.5)
    assert total_usage([known, known]) == Usage(tokens_in=10, tokens_out=4, tokens_cached=2, cost_usd=1)
    assert total_usage([known, Usage(tokens_in=1, tokens_out=1)]) == Usage(tokens_in=6, tokens_out=3)
    assert total_usage([known]) == known
    large = Usage(tokens_in=10**12, cost_usd=1e12)
    assert total_usage([large, large]) == large
    with pytest.raises(ValidationError):
        Usage(cost_usd=1e308)


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ((4,), "trial 4"),
        ((7, 1, 2, 3), "trials 1-3, 7"),
        ((2, 2), "trial 2"),
        (range(1, 41, 2), "trials 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, ..."),
    ],
)
def test_trial_numbers(numbers: tuple[int, ...], shown: str) -> None:
    assert trial_numbers(numbers) == shown


NAMES = [
    *("main", "release/1.x", "feature/a-b_c", "naïve", "HEADS", "#1", "a$b"),
    *("a@b", "a.b", "a.lockx", "@a", "a{b}", "@"),
]
NO_NAMES = [
    *("", "-x", "HEAD", "main~1", "main^", "main^{/text}", "@{-1}", "main@{1}", "a..b", "a b", "a\tb", "a\x7f"),
    *("a:b", "a?", "a*", "[a", "a\\b", "/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a\n"),
]


@pytest.mark.parametrize("name", [*NAMES, *NO_NAMES])
def test_a_name_of_a_branch_is_what_git_takes_for_one(name: str) -> None:
    assert is_branch_name(name) is (name in NAMES)
    # Git reads `@{-1}` as the branch before, where there is one.
    command = ["git", "check-ref-format", "--branch", name]
    result = subprocess.run(command, cwd="/", check=False, capture_output=True)
    assert (result.returncode == 0) is (name in NAMES)


FORBIDS = {"type": "tool_calls", "forbidden": ["rm"]}
CANARIES = {"type": "policy_check", "canaries": ["c-1"]}
SAFETY, TOOL = ViolationRule.SAFETY_VIOLATION, ViolationRule.FORBIDDEN_TOOL


@pytest.mark.parametrize(
    ("graders", "vetoes"),
    [
        ([SAYS_YES], set()),
        ([{"type": "tool_calls", "required": ["read"]}], set()),
        *(([FORBIDS], {TOOL}), ([SAYS_YES, CANARIES], {SAFETY}), ([FORBIDS, CANARIES], {TOOL, SAFETY})),
        ([{"type": "composite", "assertions": [SAYS_YES]}], set()),
        ([{"type": "composite", "assertions": [{"type": "composite", "assertions": [FORBIDS]}]}], {TOOL}),
        ([{"type": "turns", "turns": [{}, {"assertions": [CANARIES]}]}], {SAFETY}),
        ([{"type": "turns", "turns": [{}], "conversation": [FORBIDS]}], {TOOL}),
    ],
)
def test_what_graders_can_veto_guards_safety(graders: list[Any], vetoes: set[ViolationRule]) -> None:
    task = a_task(graders=graders)
    assert grader_vetoes(task.graders) == vetoes
    assert guards_safety(task) is bool(vetoes)
    assert guards_safety(a_task(suite=Suite.ADVERSARIAL, graders=graders))
