"""The metrics of transcripts made by hand, and budgets at their edges."""

from collections.abc import Sequence
from typing import Any

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.usage import overruns, trial_metrics
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics
from tests.builders import calls

SPOKE = Transcript(messages=(Message(role="assistant", content="hello"),))
BUDGETS = Budgets(max_steps=3, max_tool_calls=4, max_tokens=100, max_cost_usd=0.5, max_seconds=60)


def step(**changes: object) -> Message:
    return Message.model_validate({"role": "assistant", **changes})


def spoken(*usages: Usage, whole: Usage | None = None) -> Transcript:
    return Transcript(messages=tuple(step(usage=usage) for usage in usages), usage=whole or Usage())


def test_every_count_of_a_conversation() -> None:
    transcript = Transcript(
        messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content="Where is it?"),
            step(tool_calls=(ToolCall(tool="find"), ToolCall(tool="find", is_error=True))),
            step(content="Here."),
            Message(role="user", content="Thanks."),
            step(content="Welcome."),
        ),
        wall_time_seconds=2.5,
    )
    metrics = trial_metrics(transcript)
    assert (metrics.steps, metrics.n_turns, metrics.tool_call_count) == (3, 2, 2)
    assert metrics.tool_error_rate == 0.5
    assert metrics.wall_time_seconds == 2.5


@pytest.mark.parametrize(
    ("tools", "failing", "loop_rate", "retry_rate"),
    [
        ("", [], 0, 0),
        ("a", [], 0, 0),
        ("abc", [], 0, 0),
        ("aa", [], 1 / 2, 0),
        ("aa", [0], 1 / 2, 1 / 2),
        ("ab", [0], 0, 0),
        ("aba", [0], 1 / 3, 1 / 3),
        ("aaa", [0], 2 / 3, 1 / 3),
        ("aaa", [1], 2 / 3, 1 / 3),
        ("aaa", [0, 1], 2 / 3, 2 / 3),
        ("abab", [], 2 / 4, 0),
        ("aaaa", [], 3 / 4, 0),
    ],
)
def test_calls_that_repeat_an_earlier_one_are_loops_and_of_one_that_had_just_failed_retries(
    tools: str, failing: list[int], loop_rate: float, retry_rate: float
) -> None:
    metrics = trial_metrics(calls(*tools, failing=failing))
    assert (metrics.loop_rate, metrics.retry_rate) == (pytest.approx(loop_rate), pytest.approx(retry_rate))


@pytest.mark.parametrize(
    ("one", "other", "rate"),
    [({"page": 1}, {"page": 2}, 0.0), ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, 0.5)],
    ids=["other arguments", "another order"],
)
def test_other_arguments_are_another_call_and_another_order_of_them_is_not(
    one: dict[str, Any], other: dict[str, Any], rate: float
) -> None:
    made = tuple(ToolCall(tool="get", arguments=arguments, is_error=True) for arguments in (one, other))
    metrics = trial_metrics(Transcript(messages=(step(tool_calls=made),)))
    assert (metrics.loop_rate, metrics.retry_rate) == (rate, rate)


def used(tokens_in: int | None = None, tokens_out: int | None = None, cost_usd: float | None = None) -> Usage:
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost_usd)


@pytest.mark.parametrize(
    ("usages", "whole", "expected"),
    [
        pytest.param([used(10, 1, 0.5), used(20, 2, 0.25)], used(), (30, 3, 33, 0.75), id="steps add up"),
        pytest.param([used(0, 0, 0.0)], used(), (0, 0, 0, 0.0), id="a known nothing is zero"),
        pytest.param([], used(), (None, None, None, None), id="no step"),
        pytest.param([used()], used(), (None, None, None, None), id="a step says nothing"),
        pytest.param([used(5, 5, 1.0), used()], used(), (None, None, None, None), id="one of two says nothing"),
        pytest.param([used(5)], used(), (5, None, None, None), id="half is no total"),
        pytest.param([used(1, 1, 0.1), used()], used(100, 50, 2.0), (100, 50, 150, 2.0), id="the agent says the whole"),
    ],
)
def test_what_was_used(usages: list[Usage], whole: Usage, expected: tuple[float | None, ...]) -> None:
    metrics = trial_metrics(spoken(*usages, whole=whole))
    assert (metrics.tokens_in, metrics.tokens_out, metrics.total_tokens, metrics.cost) == expected


def test_an_incomplete_transcript_shows_no_counts_and_a_complete_one_without_messages_took_no_steps() -> None:
    metrics = trial_metrics(calls("a", "a").model_copy(update={"complete": False, "wall_time_seconds": 1.0}))
    assert (metrics.steps, metrics.n_turns, metrics.tool_call_count) == (None, None, None)
    assert (metrics.tool_error_rate, metrics.loop_rate, metrics.retry_rate) == (None, None, None)
    assert metrics.wall_time_seconds == 1.0
    metrics = trial_metrics(Transcript())
    assert (metrics.steps, metrics.tool_call_count, metrics.loop_rate) == (0, 0, 0.0)


@pytest.mark.parametrize(("latencies", "p95"), [(range(1, 21), 19.0), ([7, None], 7.0), ([None], None)])
def test_the_latency_is_that_of_the_slow_steps(latencies: Sequence[int | None], p95: float | None) -> None:
    transcript = Transcript(messages=tuple(step(latency_ms=latency) for latency in latencies))
    assert trial_metrics(transcript).p95_step_latency_ms == p95


def test_the_first_token_is_that_of_the_first_step() -> None:
    steps = [step(time_to_first_token=seconds) for seconds in (0.2, 0.1)]
    assert trial_metrics(Transcript(messages=(Message(role="user"), *steps))).time_to_first_token == 0.2
    assert trial_metrics(Transcript()).time_to_first_token is None


@pytest.mark.parametrize(
    ("budgets", "metrics", "overrun"),
    [
        (BUDGETS, {"steps": 3, "tool_call_count": 4, "total_tokens": 100, "cost": 0.5}, None),
        (BUDGETS, {"steps": 4}, "max_steps is 3 and the trial used 4"),
        (BUDGETS, {"tool_call_count": 5}, "max_tool_calls is 4 and the trial used 5"),
        (BUDGETS, {"total_tokens": 101}, "max_tokens is 100 and the trial used 101"),
        (BUDGETS, {"cost": 0.51}, "max_cost_usd is 0.5 and the trial used 0.51"),
        (Budgets(max_tool_calls=0), {"tool_call_count": 0}, None),
        (Budgets(max_tool_calls=0), {"tool_call_count": 1}, "max_tool_calls is 0 and the trial used 1"),
        (Budgets(), {"steps": 10**6, "total_tokens": 10**9}, None),
        (Budgets(max_steps=1, max_tokens=1), {}, None),
    ],
)
def test_more_than_a_budget_that_there_is_is_an_overrun_and_an_unknown_cost_hides_none(
    budgets: Budgets, metrics: dict[str, float], overrun: str | None
) -> None:
    lines = () if overrun is None else (f"over budget: {overrun}",)
    assert overruns(budgets, TrialMetrics(**metrics), SPOKE) == lines


def test_every_overrun_is_named() -> None:
    assert len(overruns(BUDGETS, TrialMetrics(steps=9, tool_call_count=9, total_tokens=999, cost=9.0), SPOKE)) == 4


def test_time_that_is_up_is_an_overrun_with_or_without_a_budget_of_the_task() -> None:
    timed_out = SPOKE.model_copy(update={"end": EndReason.TIMED_OUT})
    of_task = overruns(Budgets(max_seconds=90), TrialMetrics(), timed_out)
    assert of_task == ("over budget: max_seconds is 90 and the agent was still running",)
    assert overruns(Budgets(), TrialMetrics(), timed_out) == ("over budget: the agent was still running",)


def test_an_unknown_cost_is_not_free_but_of_an_agent_that_never_said_a_word() -> None:
    with pytest.raises(MeasurementError, match="does not report its cost"):
        overruns(Budgets(max_cost_usd=1.0), TrialMetrics(), SPOKE)
    assert overruns(Budgets(max_cost_usd=1.0), TrialMetrics(), Transcript()) == ()
