"""The metrics of transcripts made by hand, and budgets at their edges."""

import pytest

from passgate.tasks.errors import MeasurementError
from passgate.tasks.metering.usage import overruns, trial_metrics
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialMetrics
from tests.builders import calls

SPOKE = Transcript(messages=(Message(role="assistant", content="hello"),))
BUDGETS = Budgets(max_steps=3, max_tool_calls=4, max_tokens=100, max_cost_usd=0.5, max_seconds=60)
AT_THE_LIMIT = {"steps": 3, "tool_call_count": 4, "total_tokens": 100, "cost": 0.5}


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
    ("tools", "rate"),
    [
        ([], 0.0),
        (["a"], 0.0),
        (["a", "b", "c"], 0.0),
        (["a", "a"], 1 / 2),
        (["a", "b", "a", "b"], 2 / 4),
        (["a", "a", "a", "a"], 3 / 4),
    ],
)
def test_the_loop_rate_is_the_share_of_calls_that_repeat_an_earlier_one(tools: list[str], rate: float) -> None:
    assert trial_metrics(calls(*tools)).loop_rate == pytest.approx(rate)


@pytest.mark.parametrize(
    ("tools", "failing", "rate"),
    [
        (["a", "a"], [], 0.0),
        (["a", "a"], [0], 1 / 2),
        (["a", "b", "a"], [0], 1 / 3),
        (["a", "a", "a"], [0], 1 / 3),
        (["a", "a", "a"], [0, 1], 2 / 3),
        (["a", "b"], [0], 0.0),
        (["a", "a", "a"], [1], 1 / 3),
    ],
)
def test_the_retry_rate_counts_repeats_of_a_call_that_had_just_failed(
    tools: list[str], failing: list[int], rate: float
) -> None:
    assert trial_metrics(calls(*tools, failing=failing)).retry_rate == pytest.approx(rate)


def test_other_arguments_are_another_call() -> None:
    transcript = Transcript(
        messages=(
            step(
                tool_calls=(
                    ToolCall(tool="get", arguments={"page": 1}, is_error=True),
                    ToolCall(tool="get", arguments={"page": 2}),
                )
            ),
        )
    )
    metrics = trial_metrics(transcript)
    assert (metrics.loop_rate, metrics.retry_rate) == (0.0, 0.0)


def test_the_order_of_arguments_makes_no_other_call() -> None:
    same = [{"a": 1, "b": [2]}, {"b": [2], "a": 1}]
    transcript = Transcript(
        messages=(step(tool_calls=tuple(ToolCall(tool="get", arguments=arguments) for arguments in same)),)
    )
    assert trial_metrics(transcript).loop_rate == 0.5


def test_the_same_arguments_for_another_tool_are_another_call() -> None:
    assert trial_metrics(calls("get", "put")).loop_rate == 0.0


def test_the_tokens_and_the_cost_of_the_steps_add_up() -> None:
    metrics = trial_metrics(
        spoken(Usage(tokens_in=10, tokens_out=1, cost_usd=0.5), Usage(tokens_in=20, tokens_out=2, cost_usd=0.25))
    )
    assert (metrics.tokens_in, metrics.tokens_out, metrics.total_tokens, metrics.cost) == (30, 3, 33, 0.75)


def test_a_known_nothing_is_zero() -> None:
    metrics = trial_metrics(spoken(Usage(tokens_in=0, tokens_out=0, cost_usd=0.0)))
    assert (metrics.tokens_in, metrics.tokens_out, metrics.total_tokens, metrics.cost) == (0, 0, 0, 0.0)


@pytest.mark.parametrize("usages", [[], [Usage()], [Usage(tokens_in=5, tokens_out=5, cost_usd=1.0), Usage()]])
def test_one_step_that_says_nothing_leaves_the_sum_unknown(usages: list[Usage]) -> None:
    metrics = trial_metrics(spoken(*usages))
    assert (metrics.tokens_in, metrics.tokens_out, metrics.total_tokens, metrics.cost) == (None, None, None, None)


def test_half_of_the_tokens_is_no_total() -> None:
    metrics = trial_metrics(spoken(Usage(tokens_in=5)))
    assert (metrics.tokens_in, metrics.tokens_out, metrics.total_tokens) == (5, None, None)


def test_what_the_agent_says_of_the_whole_trial_goes_before_the_sum() -> None:
    whole = Usage(tokens_in=100, tokens_out=50, cost_usd=2.0)
    metrics = trial_metrics(spoken(Usage(tokens_in=1, tokens_out=1, cost_usd=0.1), Usage(), whole=whole))
    assert (metrics.total_tokens, metrics.cost) == (150, 2.0)


def test_an_incomplete_transcript_shows_no_counts() -> None:
    metrics = trial_metrics(calls("a", "a").model_copy(update={"complete": False, "wall_time_seconds": 1.0}))
    assert (metrics.steps, metrics.n_turns, metrics.tool_call_count) == (None, None, None)
    assert (metrics.tool_error_rate, metrics.loop_rate, metrics.retry_rate) == (None, None, None)
    assert metrics.wall_time_seconds == 1.0


def test_a_complete_transcript_without_messages_took_no_steps() -> None:
    metrics = trial_metrics(Transcript())
    assert (metrics.steps, metrics.tool_call_count, metrics.loop_rate) == (0, 0, 0.0)


def test_the_latency_is_that_of_the_slow_steps() -> None:
    transcript = Transcript(messages=tuple(step(latency_ms=float(ms)) for ms in range(1, 21)))
    assert trial_metrics(transcript).p95_step_latency_ms == 19.0


def test_steps_without_a_latency_do_not_count_for_it() -> None:
    transcript = Transcript(messages=(step(latency_ms=7.0), step()))
    assert trial_metrics(transcript).p95_step_latency_ms == 7.0
    assert trial_metrics(spoken(Usage())).p95_step_latency_ms is None


def test_the_first_token_is_that_of_the_first_step() -> None:
    transcript = Transcript(
        messages=(Message(role="user"), step(time_to_first_token=0.2), step(time_to_first_token=0.1))
    )
    assert trial_metrics(transcript).time_to_first_token == 0.2
    assert trial_metrics(Transcript()).time_to_first_token is None


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
