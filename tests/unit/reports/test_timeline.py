"""The timeline of a trial."""

import pytest

from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.reports.trial import timeline


def test_each_step_says_what_is_used_of_the_budget_so_far() -> None:
    used = Usage(tokens_in=400, tokens_out=100, cost_usd=0.02)
    step = Message(role="assistant", tool_calls=(ToolCall(tool="look"),), usage=used, latency_ms=2000.0)
    budgets = Budgets(max_steps=4, max_tool_calls=1, max_tokens=2000, max_cost_usd=0.1, max_seconds=10)
    entries = timeline(Transcript(messages=(step, step)), budgets, 10)
    assert [use.text for use in entries[0].uses] == [
        "step 1 of 4",
        "1 tool call of 1",
        "500 tokens of 2,000",
        "$0.0200 of $0.1000",
        "2.0 s of 10.0 s",
    ]
    assert [entry.fullest for entry in entries] == [1.0, 2.0]


LOOK = Message(role="assistant", tool_calls=(ToolCall(tool="look"),))
SAID = Message(role="assistant", content="yes")


@pytest.mark.parametrize(
    ("message", "complete", "budgets", "uses", "fullest"),
    [
        (SAID, True, Budgets(), ["step 1"], 0),
        (LOOK, True, Budgets(max_tool_calls=0), ["step 1", "1 tool call of 0"], 1.0),
        (SAID, False, Budgets(max_steps=4), [], 0),
    ],
    ids=["no budgets", "budget of nothing", "agent that reports no steps"],
)
def test_only_what_is_known_to_be_used_is_said(
    message: Message, complete: bool, budgets: Budgets, uses: list[str], fullest: float
) -> None:
    (entry,) = timeline(Transcript(messages=(message,), complete=complete), budgets, 10)
    assert [use.text for use in entry.uses] == uses
    assert entry.fullest == fullest


def test_of_many_messages_the_middle_is_left_out_and_still_counts() -> None:
    transcript = Transcript(messages=tuple(Message(role="assistant", content=str(number)) for number in range(100)))
    entries = timeline(transcript, Budgets(), 10)
    assert [entry.message.content if entry.message else entry.gap for entry in entries] == [
        *"01234",
        90,
        *("95", "96", "97", "98", "99"),
    ]
    assert entries[-1].uses[0].text == "step 100"
