"""The one transcript that the turns of a conversation make."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.conversation import Turn, all_messages, whole_transcript
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage


def system(text: str) -> Message:
    return Message(role="system", content=text)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def agent(text: str, **more: Any) -> Message:
    return Message(role="assistant", content=text, **more)


def turn(said: str, *messages: Message, **more: Any) -> Turn:
    return Turn(user(said), Transcript(messages=messages, output=messages[-1].content if messages else "", **more))


FIRST, SECOND, AGAIN = [user("a"), agent("b")], [user("c"), agent("d")], [user("again"), agent("yes")]


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ([turn("a", agent("b")), turn("c", agent("d"), agent("e"))], ["u:a", "a:b", "u:c", "a:d", "a:e"]),
        ([turn("a", *FIRST), turn("c", user("c!"), agent("d"))], ["u:a", "a:b", "u:c!", "a:d"]),
        ([turn("a", system("s"), agent("b"))], ["s:s", "u:a", "a:b"]),
        ([turn("a", system("s"), *FIRST)], ["s:s", "u:a", "a:b"]),
        ([turn("a", system("s"))], ["s:s", "u:a"]),
        ([turn("a", agent("b"), user("tool: 3"), agent("c"))], ["u:a", "a:b", "u:tool: 3", "a:c"]),
        (
            [turn("a", *FIRST), turn("c", *FIRST, *SECOND), turn("e", *FIRST, *SECOND, user("e"), agent("f"))],
            ["u:a", "a:b", "u:c", "a:d", "u:e", "a:f"],
        ),
        ([turn("again", *AGAIN), turn("again", *AGAIN)], ["u:again", "a:yes"] * 2),
        ([turn("a"), turn("b")], ["u:a", "u:b"]),
    ],
    ids=["said", "reported", "system", "system reported", "system alone", "user later", "whole", "twice", "silent"],
)
def test_the_messages_of_several_turns(turns: list[Turn], said: list[str]) -> None:
    assert [f"{message.role[0]}:{message.content}" for message in all_messages(turns)] == said


@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from("xy"), max_size=2)), min_size=1, max_size=4))
def test_both_ways_of_reporting_a_turn_give_the_same(said: list[tuple[str, list[str]]]) -> None:
    plain = [turn(text, *map(agent, answers)) for text, answers in said]
    reported = [turn(text, user(text), *map(agent, answers)) for text, answers in said]
    assert all_messages(plain) == all_messages(reported)


@pytest.mark.parametrize("complete", [True, False])
def test_output_and_end_are_those_of_the_last_turn_and_completeness_is_that_of_all(complete: bool) -> None:
    last = turn("c", agent("d"), end=EndReason.CRASHED, detail="why", printed="2")
    whole = whole_transcript([turn("a", agent("b"), printed="1", complete=complete), last])
    assert (whole.output, whole.end, whole.detail, whole.printed) == ("d", EndReason.CRASHED, "why", "12")
    assert whole.complete is complete
    assert whole_transcript([last, turn("a", complete=complete)]).complete is complete


def test_of_what_was_printed_the_end_is_kept() -> None:
    whole = whole_transcript([turn("a", printed="x" * 65_000), turn("b", printed="y" * 65_000)])
    assert whole.printed == "…" + "x" * 535 + "y" * 65_000


STEP = agent("b", usage=Usage(tokens_in=3, cost_usd=0.5))


@pytest.mark.parametrize(
    ("turns", "tokens_in", "cost"),
    [
        ([turn("a", STEP), turn("c", STEP)], None, None),
        ([turn("a", agent("b"), usage=Usage(tokens_in=5))], 5, None),
        ([turn("a", agent("b"), usage=Usage(tokens_in=5, cost_usd=1))] * 2, 10, 2.0),
        ([turn("a", STEP), turn("c", agent("d"), usage=Usage(tokens_in=5))], 8, None),
        ([turn("a", agent("b")), turn("c", agent("d"), usage=Usage(tokens_in=5))], None, None),
        ([turn("a"), turn("c", agent("d"), usage=Usage(tokens_in=5))], None, None),
    ],
)
def test_usage_is_summed_where_it_is_known(turns: list[Turn], tokens_in: int | None, cost: float | None) -> None:
    usage = whole_transcript(turns).usage
    assert (usage.tokens_in, usage.cost_usd) == (tokens_in, cost)


def test_a_transcript_of_one_turn_stays_as_it_is() -> None:
    transcript = Transcript(
        messages=(user("a"), agent("b", tool_calls=(ToolCall(tool="look"),)), STEP),
        output="c",
        usage=Usage(tokens_in=5),
        end=EndReason.TIMED_OUT,
        detail="slow",
    )
    assert whole_transcript([Turn(user("a"), transcript)]) == transcript
