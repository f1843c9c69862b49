"""Budgets at their edges."""

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.overruns import overruns
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Message, Transcript
from passgate.tasks.model.trial import TrialMetrics

SPOKE = Transcript(messages=(Message(role="assistant", content="hello"),))
BUDGETS = Budgets(max_steps=3, max_tool_calls=4, max_tokens=100, max_cost_usd=0.5, max_seconds=60)
AT_THE_LIMIT = {"steps": 3, "tool_call_count": 4, "total_tokens": 100, "cost": 0.5}


def test_a_budget_may_be_used_up() -> None:
    assert overruns(BUDGETS, TrialMetrics(**AT_THE_LIMIT), SPOKE) == ()


@pytest.mark.parametrize(
    ("metric", "value", "line"),
    [
        ("steps", 4, "over budget: max_steps is 3 and the trial used 4"),
        ("tool_call_count", 5, "over budget: max_tool_calls is 4 and the trial used 5"),
        ("total_tokens", 101, "over budget: max_tokens is 100 and the trial used 101"),
        ("cost", 0.51, "over budget: max_cost_usd is 0.5 and the trial used 0.51"),
    ],
)
def test_more_than_the_budget_is_an_overrun(metric: str, value: float, line: str) -> None:
    assert overruns(BUDGETS, TrialMetrics(**{**AT_THE_LIMIT, metric: value}), SPOKE) == (line,)


def test_a_budget_of_zero_is_a_budget() -> None:
    budgets = Budgets(max_tool_calls=0)
    assert overruns(budgets, TrialMetrics(tool_call_count=0), SPOKE) == ()
    assert len(overruns(budgets, TrialMetrics(tool_call_count=1), SPOKE)) == 1


def test_every_overrun_is_named() -> None:
    assert len(overruns(BUDGETS, TrialMetrics(steps=9, tool_call_count=9, total_tokens=999, cost=9.0), SPOKE)) == 4


def test_without_budgets_nothing_is_over() -> None:
    assert overruns(Budgets(), TrialMetrics(steps=10**6, total_tokens=10**9), SPOKE) == ()


def test_unknown_counts_are_not_held_against_anybody() -> None:
    assert overruns(Budgets(max_steps=1, max_tokens=1), TrialMetrics(), SPOKE) == ()


def test_time_that_is_up_is_an_overrun() -> None:
    timed_out = SPOKE.model_copy(update={"end": EndReason.TIMED_OUT})
    assert overruns(Budgets(max_seconds=90), TrialMetrics(), timed_out) == (
        "over budget: max_seconds is 90 and the agent was still running",
    )


def test_time_can_be_up_without_a_budget_of_the_task() -> None:
    timed_out = SPOKE.model_copy(update={"end": EndReason.TIMED_OUT})
    assert overruns(Budgets(), TrialMetrics(), timed_out) == ("over budget: the agent was still running",)


def test_an_unknown_cost_is_not_free() -> None:
    with pytest.raises(MeasurementError, match="does not report its cost"):
        overruns(Budgets(max_cost_usd=1.0), TrialMetrics(), SPOKE)


def test_an_unknown_cost_hides_no_other_overrun() -> None:
    assert overruns(Budgets(max_cost_usd=1.0, max_steps=1), TrialMetrics(steps=2), SPOKE) == (
        "over budget: max_steps is 1 and the trial used 2",
    )


def test_an_agent_that_never_said_a_word_has_cost_nothing() -> None:
    assert overruns(Budgets(max_cost_usd=1.0), TrialMetrics(), Transcript()) == ()
