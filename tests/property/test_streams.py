"""However a provider's stream is cut, the agent gets the same; what is taken out of it leaves nothing behind."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.property.api_sides import Plan, Side, asked_of, each_side, plans, text_of, turns
from tests.provider_streams import Refusing, passed

from passgate.tasks.providers.apis.interface import ReplyStream

refusals = st.frozensets(st.sampled_from(["read", "write", "delete"]))
line_ends = st.sampled_from([b"\n", b"\r\n"])


def fed(stream: ReplyStream, sent: bytes, places: list[int]) -> bytes:
    """What goes on of a stream that is cut at these places."""
    edges = [0, *sorted({place % (len(sent) + 1) for place in places}), len(sent)]
    return b"".join([stream.feed(sent[begin:end]) for begin, end in pairwise(edges)])


@each_side
@given(
    plan=plans,
    mixed=turns,
    refused=refusals,
    places=st.lists(st.integers(0, 10**6), max_size=8),
    end=line_ends,
    shows=st.booleans(),
)
def test_any_way_of_cutting_a_stream_is_the_same(
    side: Side, plan: Plan, mixed: list[int], refused: frozenset[str], places: list[int], end: bytes, shows: bool
) -> None:
    sent = b": hello" + end * 2 + side.stream(plan, mixed).replace(b"\n", end)
    body = {"stream_options": {"include_usage": True}} if shows else {}
    whole_refusing, cut_refusing = Refusing(refused), Refusing(refused)
    output, whole = passed(side.api, sent, whole_refusing, body)
    cut = side.api.stream(body, cut_refusing)
    assert fed(cut, sent, places) == output
    assert passed(side.api, sent, Refusing(refused), body, size=1)[0] == output
    assert (cut.reply, cut.ended, cut.characters) == (whole.reply, whole.ended, whole.characters)
    assert cut_refusing.asked == whole_refusing.asked == asked_of(plan)


@each_side
@given(plan=plans, mixed=turns, end=line_ends, shows=st.booleans())
def test_a_stream_that_nothing_is_taken_out_of_is_not_changed(
    side: Side, plan: Plan, mixed: list[int], end: bytes, shows: bool
) -> None:
    sent = side.stream(plan, mixed).replace(b"\n", end)
    body = {"stream_options": {"include_usage": True}} if shows else {}
    without = side.stream(plan, mixed, shows_usage=False).replace(b"\n", end)
    output, stream = passed(side.api, sent, Refusing(), body)
    assert output == (sent if shows else without)
    assert stream.reply.text == text_of(plan)
    assert list(stream.reply.calls) == asked_of(plan)
    assert stream.reply.usage.tokens_in == 3
    assert stream.ended


@each_side
@given(plan=plans, mixed=turns, refused=refusals)
def test_what_is_left_is_exactly_the_other_calls(
    side: Side, plan: Plan, mixed: list[int], refused: frozenset[str]
) -> None:
    output, stream = passed(side.api, side.stream(plan, mixed), Refusing(refused))
    text, asked, indices, reason = side.reply(output)
    assert text == text_of(plan)
    assert asked == [call for call in asked_of(plan) if call.tool not in refused]
    assert indices == list(range(len(indices)))
    assert reason == side.reasons[0 if asked else 1]
    assert list(stream.reply.calls) == asked_of(plan)


@each_side
@given(plan=plans, mixed=turns, refused=refusals, place=st.integers(0, 10**6))
def test_a_stream_that_is_cut_off_anywhere_is_a_whole_reply(
    side: Side, plan: Plan, mixed: list[int], refused: frozenset[str], place: int
) -> None:
    sent = side.stream(plan, mixed)
    stream = side.api.stream({}, Refusing(refused))
    output = stream.feed(sent[: place % len(sent)]) + stream.cut()
    text, asked, indices, reason = side.reply(output)
    assert text == stream.reply.text
    assert text_of(plan).startswith(text)
    assert asked == [call for call in stream.reply.calls if call.tool not in refused]
    assert indices == list(range(len(indices)))
    assert reason in {"length", "max_tokens", "MAX_TOKENS", *side.reasons}
