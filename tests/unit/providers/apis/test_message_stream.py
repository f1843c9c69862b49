"""Streamed replies of Anthropic's messages on their way to the agent."""

import pytest
from tests.provider_streams import Json, documents, event, named, passed, refusing
from tests.unit.providers.apis.message_shapes import (
    API,
    CALLS,
    DELETE,
    MODEL,
    READ,
    SEARCH,
    SEARCHED,
    START,
    STOP,
    TEXT,
    accumulated,
    block,
    call,
    end,
    tool_use,
)

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall


class TestStream:
    def test_usage_is_of_the_whole_message_and_what_was_written_not_known_before_the_end(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(named(TEXT[:4]))
        assert stream.reply.usage == Usage(tokens_in=1572, tokens_cached=1000, tokens_cache_write=100)
        ending = end("end_turn", input_tokens=500, cache_read_input_tokens=0, cache_creation_input_tokens=None)
        _, stream = passed(API, named([*TEXT[:-2], *ending]), refusing())
        assert stream.reply.usage == Usage(tokens_in=600, tokens_cached=0, tokens_cache_write=100, tokens_out=89)

    def test_reasoning_counts_as_written(self) -> None:
        thinking = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = {"type": "thinking_delta", "thinking": "Hm"}, {"type": "signature_delta", "signature": "EqQBCgIYAhIM"}
        stream = API.stream({}, refusing())
        assert stream.feed(named([START, *block(0, thinking, *deltas)]))
        assert (stream.started, stream.reply.text, stream.characters) == (True, "", 2)

    @pytest.mark.parametrize(("refused", "left"), [("delete", READ), ("read", DELETE)])
    def test_the_blocks_that_are_left_are_counted_from_0(self, refused: str, left: AskedCall) -> None:
        output, stream = passed(API, named(CALLS), refusing(refused))
        final = accumulated(output)
        assert [one.type for one in final.content] == ["text", "tool_use", "text"]
        assert (final.content[1].id, final.content[1].input) == (left.call_id, left.arguments)
        assert final.stop_reason == "tool_use"
        assert stream.reply.calls == (READ, DELETE)

    def test_without_any_call_left_the_turn_is_over(self) -> None:
        output, _ = passed(API, named(CALLS), refusing("read", "delete"))
        final = accumulated(output)
        assert [one.text for one in final.content] == ["Okay.", "Then?"]
        assert final.stop_reason == "end_turn"
        assert final.usage.output_tokens == 89

    def test_a_call_that_was_run_goes_with_its_result(self) -> None:
        withheld = refusing("web_search")
        output, _ = passed(API, named(SEARCHED), withheld)
        assert withheld.asked == [SEARCH]
        assert [one.text for one in accumulated(output).content] == ["I search.", "Sunny."]
        assert passed(API, named(SEARCHED), refusing())[0] == named(SEARCHED)

    def test_a_call_that_is_cut_short_by_the_limit_is_asked_about(self) -> None:
        events = [START, *call(0, tool_use("toolu_b", "delete"), '{"pa')[:-1], *end("max_tokens")]
        withheld = refusing("delete")
        output, _ = passed(API, named(events), withheld)
        assert withheld.asked == [AskedCall("toolu_b", "delete", {"unparsed": '{"pa'})]
        assert documents(output) == [START, *end("max_tokens")]

    def test_input_may_come_with_the_start_of_the_block(self) -> None:
        withheld = refusing()
        passed(API, named([START, *block(0, tool_use("toolu_a", "read", path="a")), *end("tool_use")]), withheld)
        assert withheld.asked == [READ]

    def test_a_name_that_is_only_that_of_the_event_is_understood(self) -> None:
        bare = [{key: value for key, value in one.items() if key != "type"} for one in CALLS]
        stream = b"".join(event(one, full["type"]) for one, full in zip(bare, CALLS, strict=True))
        withheld = refusing("delete")
        output, _ = passed(API, stream, withheld)
        assert withheld.asked == [READ, DELETE]
        assert b"delete" not in output

    @pytest.mark.parametrize(
        ("sent", "expected"),
        [
            ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "says: Overloaded"),
            ({"type": "error"}, "says: an error without a message"),
            ({"type": "message_start"}, "message: is null"),
            ({"type": "message_start", "message": {"usage": {"input_tokens": "3"}}}, "usage.input_tokens: is a text"),
            ({"type": "content_block_start", "index": "0"}, "index: is a text"),
            ({"type": "content_block_start", "index": 0}, "content_block: is null"),
            ({"type": "content_block_delta", "index": 0, "delta": []}, "delta: is a list"),
            ({"type": "content_block_delta", "index": 0, "delta": {"text": 7}}, "delta.text: is a number"),
            ({"type": "message_delta", "delta": 7}, "delta: is a number"),
            ({"type": "message_delta", "usage": {"output_tokens": 1.5}}, "usage.output_tokens: is a number"),
        ],
    )
    def test_what_is_no_stream_of_this_api_is_unreadable(self, sent: Json, expected: str) -> None:
        with pytest.raises(ApiFormatError, match=expected):
            API.stream({}, refusing()).feed(event(sent, sent["type"]))

    def test_a_call_without_a_name_is_unreadable(self) -> None:
        with pytest.raises(ApiFormatError, match=r"content\[0\].name: is null"):
            passed(API, named(block(0, {"type": "tool_use", "id": "a"})), refusing())


class TestCut:
    def test_a_text_ends_as_one_that_reached_its_limit(self) -> None:
        stream = API.stream({}, refusing())
        final = accumulated(stream.feed(named(TEXT[:4])) + stream.cut())
        assert (final.content[0].text, final.stop_reason, final.usage.output_tokens) == ("Hello", "max_tokens", 2)

    def test_a_call_that_is_not_whole_is_left_out(self) -> None:
        withheld = refusing("read")
        stream = API.stream({}, withheld)
        output = stream.feed(named(CALLS[:10])) + stream.cut()
        assert withheld.asked == [READ]
        final = accumulated(output)
        assert [one.type for one in final.content] == ["text"]
        assert final.stop_reason == "max_tokens"
        assert stream.reply.calls == (READ,)

    def test_the_block_that_is_stopped_has_the_index_that_the_agent_knows(self) -> None:
        stream = API.stream({}, refusing("read", "delete"))
        output = stream.feed(named(CALLS[:-3])) + stream.cut()
        assert [one["index"] for one in documents(output) if one["type"] == "content_block_stop"] == [0, 1]

    def test_before_anything_has_come_it_is_an_empty_message(self) -> None:
        final = accumulated(API.stream({"model": MODEL}, refusing()).cut())
        assert (final.model, final.content, final.stop_reason) == (MODEL, [], "max_tokens")

    def test_after_the_reason_to_stop_only_the_last_event_is_missing(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(named(TEXT[:-1]))
        assert documents(stream.cut()) == [STOP]
        stream.feed(named(TEXT[-1:]))
        assert stream.cut() == b""
