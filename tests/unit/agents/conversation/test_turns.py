"""The one transcript that the turns of a conversation make."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.agents.conversation import Turn, merged, messages_of
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage


def system(text: str) -> Message:
    return Message(role="system", content=text)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def agent(text: str, **more: Any) -> Message:
    return Message(role="assistant", content=text, **more)


def turn(said: str, *messages: Message, **more: Any) -> Turn:
    return Turn(user(said), Transcript(messages=messages, output=messages[-1].content if messages else "", **more))


def words(*turns: Turn) -> list[str]:
    return [f"{message.role[0]}:{message.content}" for message in messages_of(turns)]


def test_what_the_user_said_stands_before_the_answers() -> None:
    assert words(turn("a", agent("b")), turn("c", agent("d"), agent("e"))) == ["u:a", "a:b", "u:c", "a:d", "a:e"]


def test_what_the_agent_reports_is_not_doubled() -> None:
    assert words(turn("a", user("a"), agent("b")), turn("c", user("c!"), agent("d"))) == ["u:a", "a:b", "u:c!", "a:d"]


def test_system_messages_come_first() -> None:
    assert words(turn("a", system("s"), agent("b"))) == ["s:s", "u:a", "a:b"]
    assert words(turn("a", system("s"), user("a"), agent("b"))) == ["s:s", "u:a", "a:b"]
    assert words(turn("a", system("s"))) == ["s:s", "u:a"]


def test_a_user_message_after_an_answer_is_not_the_one_that_was_said() -> None:
    assert words(turn("a", agent("b"), user("tool: 3"), agent("c"))) == ["u:a", "a:b", "u:tool: 3", "a:c"]


def test_an_agent_may_report_the_whole_conversation_in_every_turn() -> None:
    first, second = [user("a"), agent("b")], [user("c"), agent("d")]
    turns = [turn("a", *first), turn("c", *first, *second), turn("e", *first, *second, user("e"), agent("f"))]
    assert words(*turns) == ["u:a", "a:b", "u:c", "a:d", "u:e", "a:f"]


def test_a_user_who_repeats_themself_is_not_taken_for_a_report_of_the_whole() -> None:
    again = [user("again"), agent("yes")]
    assert words(turn("again", *again), turn("again", *again)) == ["u:again", "a:yes"] * 2


def test_an_agent_that_says_nothing_was_told_something() -> None:
    assert words(turn("a"), turn("b")) == ["u:a", "u:b"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from("xy"), max_size=2)), min_size=1, max_size=4))
def test_both_ways_of_reporting_a_turn_give_the_same(said: list[tuple[str, list[str]]]) -> None:
    plain = [turn(text, *map(agent, answers)) for text, answers in said]
    reported = [turn(text, user(text), *map(agent, answers)) for text, answers in said]
    assert messages_of(plain) == messages_of(reported)


def test_output_and_end_are_those_of_the_last_turn() -> None:
    last = turn("c", agent("d"), end=EndReason.CRASHED, detail="why", complete=False, printed="2")
    whole = merged([turn("a", agent("b"), printed="1"), last])
    assert (whole.output, whole.end, whole.detail, whole.complete) == ("d", EndReason.CRASHED, "why", False)
    assert whole.printed == "12"


def test_a_conversation_is_complete_when_every_turn_is() -> None:
    complete, incomplete = turn("a", agent("b")), turn("a", agent("b"), complete=False)
    assert merged([complete, complete]).complete is True
    assert merged([incomplete, complete]).complete is False


def test_of_what_was_printed_the_end_is_kept() -> None:
    assert (
        merged([turn("a", printed="x" * 65_000), turn("b", printed="y" * 65_000)]).printed == "x" * 536 + "y" * 65_000
    )


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
    usage = merged(turns).usage
    assert (usage.tokens_in, usage.cost_usd) == (tokens_in, cost)


def test_a_transcript_of_one_turn_stays_as_it_is() -> None:
    transcript = Transcript(
        messages=(user("a"), agent("b", tool_calls=(ToolCall(tool="look"),)), STEP),
        output="c",
        usage=Usage(tokens_in=5),
        end=EndReason.TIMED_OUT,
        detail="slow",
    )
    assert merged([Turn(user("a"), transcript)]) == transcript
