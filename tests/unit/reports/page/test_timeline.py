"""The timeline of a trial."""

from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage
from passgate.tasks.reports.page.timeline import timeline


def test_each_step_says_what_is_used_of_the_budget_so_far() -> None:
    used = Usage(tokens_in=400, tokens_out=100, cost_usd=0.02)
    step = Message(role="assistant", tool_calls=(ToolCall(tool="look"),), usage=used, latency_ms=2000.0)
    budgets = Budgets(max_steps=4, max_tool_calls=1, max_tokens=2000, max_cost_usd=0.1, max_seconds=10)
    entries = timeline(Transcript(messages=(step, step)), budgets, text=100, most=10)
    assert [use.text for use in entries[0].uses] == [
        "step 1 of 4",
        "1 tool call of 1",
        "500 tokens of 2,000",
        "$0.0200 of $0.1000",
        "2.0 s of 10.0 s",
    ]
    assert [entry.fullest for entry in entries] == [1.0, 2.0]


def test_without_budgets_only_what_was_used_is_said() -> None:
    (entry,) = timeline(Transcript(messages=(Message(role="assistant"),)), Budgets(), text=100, most=10)
    assert [use.text for use in entry.uses] == ["step 1"]
    assert entry.fullest == 0


def test_a_budget_of_nothing_is_full_at_once() -> None:
    step = Message(role="assistant", tool_calls=(ToolCall(tool="look"),))
    (entry,) = timeline(Transcript(messages=(step,)), Budgets(max_tool_calls=0), text=100, most=10)
    assert entry.fullest == 1.0


def test_of_many_messages_the_middle_is_left_out_and_still_counts() -> None:
    transcript = Transcript(messages=tuple(Message(role="assistant", content=str(number)) for number in range(100)))
    entries = timeline(transcript, Budgets(), text=100, most=10)
    assert [entry.gap or (entry.text.text if entry.text else "") for entry in entries] == [
        *"01234",
        90,
        *("95", "96", "97", "98", "99"),
    ]
    assert entries[-1].uses[0].text == "step 100"


def test_no_step_is_counted_of_an_agent_that_reports_none() -> None:
    said = Transcript(messages=(Message(role="assistant", content="yes"),), complete=False)
    (entry,) = timeline(said, Budgets(max_steps=4), text=100, most=10)
    assert entry.uses == ()
