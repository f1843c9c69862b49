"""Which confirming trials are missing next."""

from typing import Any

import pytest

from passgate.tasks.gates.evidence import MOST_ERRORS, Wanted, wanted_trials
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import GatePolicy
from passgate.tasks.model.task import EvalTask
from tests.builders import a_task, measured, trials_of
from tests.unit.gates.rulings import ALL_RULES, GOLDEN, green_before, violating
from tests.unit.gates.test_decide_failures import SETTLED

NAME = "golden/say-yes"


def policy(**changes: Any) -> GatePolicy:
    return GatePolicy.model_validate({"suites": ["golden"], "blocks_on": ALL_RULES} | changes)


def wanted(
    statuses: str,
    task: EvalTask = GOLDEN,
    settled: tuple[str, ...] = (),
    gate: GatePolicy | None = None,
    **baseline: Any,
) -> tuple[Wanted, ...]:
    entries = green_before(task, **(SETTLED | baseline))
    return wanted_trials(gate or policy(), measured((task, trials_of(task, statuses))), entries, settled)


def test_so_many_at_once_as_would_clear_it() -> None:
    (asked,) = wanted("ppf")
    assert (asked.task, asked.trials > 0) == (NAME, True)
    assert wanted("ppf" + "p" * asked.trials) == ()
    assert wanted("ppf" + "p" * (asked.trials - 1)) == (Wanted(NAME, 1),)


def test_a_task_that_goes_on_failing_now_and_then_comes_to_an_end() -> None:
    statuses, rounds = "ppf", 0
    while asked := wanted(statuses):
        statuses += "p" * (asked[0].trials - 1) + "f"
        rounds += 1
    assert 0 < rounds < 20
    assert len(statuses) <= 60


@pytest.mark.parametrize("statuses", ["ppp", "fff", "ppf" + "p" * 20, "ppe"])
def test_nothing_is_wanted_of_what_is_decided_or_not_red(statuses: str) -> None:
    assert wanted(statuses) == ()


@pytest.mark.parametrize("state", [BaselineState.RED, BaselineState.UNRELIABLE, BaselineState.NONE, BaselineState.NEW])
def test_nothing_is_wanted_without_a_green_baseline_or_one_of_many_trials(state: BaselineState) -> None:
    assert wanted("ppf", state=state, passed=18, n=18, young="block") == ()


def test_a_flaky_task_gets_some_when_it_fails_more_than_before() -> None:
    before: dict[str, Any] = {"state": BaselineState.RED, "passed": 42}
    assert wanted("fff", **before) != ()
    assert wanted("fpp" + "p" * 9, **before) == ()
    assert wanted("fff", state=BaselineState.RED, passed=0) == ()


def test_errors_do_not_count_as_trials_and_come_to_an_end() -> None:
    assert wanted("ppf" + "e" * (MOST_ERRORS - 1)) == wanted("ppf") != ()
    assert wanted("ppf" + "e" * MOST_ERRORS) == ()
    assert wanted("fee") == (Wanted(NAME, 2),)


def test_nothing_is_wanted_of_a_task_that_does_not_block_anyway_or_where_a_veto_has_decided() -> None:
    assert wanted("ppf", settled=(NAME,)) == ()
    assert wanted("ppf", gate=policy(blocks_on=["task_failed"])) == ()
    assert wanted("ppf", gate=policy(regression={"mode": "strict"})) == ()
    assert wanted("ppf", gate=policy(regression={"suites": ["failure_replays"]})) == ()
    group = violating(ViolationRule.SAFETY_VIOLATION, 2, statuses="ppf")
    assert wanted_trials(policy(), measured(group), green_before(**SETTLED)) == ()
    lenient = policy(blocks_on=["golden_regression"])
    assert wanted_trials(lenient, measured(group), green_before(**SETTLED)) != ()


def test_the_policys_most_trials_are_the_end() -> None:
    gate = policy(regression={"max_trials": 4})
    assert wanted("ppf", gate=gate) == (Wanted(NAME, 1),)
    assert wanted("ppff", gate=gate) == ()
    task = a_task(k=5)
    assert wanted("ppppf", task, gate=policy(regression={"max_trials": 4})) == ()
