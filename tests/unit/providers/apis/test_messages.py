"""Requests, replies and streams of Anthropic's messages on their way to and from the agent."""

import copy
from typing import Any

import pytest
from tests.provider_apis.messages import (
    API,
    CALLS,
    DELETE,
    MODEL,
    READ,
    SEARCH,
    SEARCH_RESULT,
    SEARCHED,
    START,
    STOP,
    TEXT,
    USED,
    accumulated,
    block,
    call,
    end,
    message,
    request,
    server_tool_use,
    tool_use,
)
from tests.provider_streams import Json, documents, event, named, passed, refusing

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, ToolAnswer


def result_of(call_id: str, **given: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, **given}


class TestRequest:
    def test_the_whole_context_is_read(self) -> None:
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
        results = [
            result_of("toolu_a", content="nothing"),
            result_of("toolu_b", content=[{"type": "text", "text": "No."}, image], is_error=True),
            result_of("toolu_c"),
        ]
        read = API.read_request(
            request(
                {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
                {"role": "assistant", "content": [{"type": "text", "text": "I look."}, tool_use("toolu_a", "read")]},
                {"role": "user", "content": results},
                {"role": "system", "content": "Hurry."},
                {"role": "user", "content": [result_of("d"), {"type": "text", "text": "?"}]},
                system=[{"type": "text", "text": "Be"}, {"type": "text", "text": "short."}],
                stream=True,
            )
        )
        assert (read.model, read.stream, read.max_tokens_out, read.continues) == (MODEL, True, 1024, False)
        assert [(one.role, one.text) for one in read.said] == [
            *(("system", "Be\nshort."), ("user", "What is this?\n[image]"), ("system", "Hurry."), ("user", "?")),
        ]
        assert read.answers == (
            ToolAnswer("toolu_a", "nothing", False),
            ToolAnswer("toolu_b", "No.\n[image]", True),
            ToolAnswer("toolu_c", "", False),
            ToolAnswer("d", "", False),
        )

    def test_results_of_the_providers_own_tools_are_read(self) -> None:
        failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
        blocks = [SEARCH_RESULT, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_d", "content": failed}]
        read = API.read_request(request({"role": "assistant", "content": blocks}))
        assert read.answers == (
            ToolAnswer("srvtoolu_c", SEARCH_RESULT["content"], False),
            ToolAnswer("srvtoolu_d", failed, True),
        )
        assert read.said == ()

    def test_what_is_counted_is_text_and_neither_files_nor_signatures(self) -> None:
        thought = {"type": "thinking", "thinking": "Hm", "signature": "B" * 1000}
        source = {"type": "base64", "media_type": "application/pdf", "data": "A" * 1000}
        document = {"type": "document", "source": source}
        bare = API.read_request(request()).characters
        assert API.read_request(request({"role": "assistant", "content": [thought, document]})).characters < 100
        tools = [{"name": "read", "description": "Reads.", "input_schema": {"type": ["object", "null"]}}]
        with_tools = API.read_request(request(tools=tools, system="Be short.")).characters
        assert with_tools >= bare + len("readReads.Be short.")

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({}, "messages: is null, not a list"),
            (request({"role": "user", "content": {}}), r"messages\[0\].content: is an object, not a list"),
            (request({"role": "user", "content": ["Hello", 7]}), r"messages\[0\].content\[1\]: is a number"),
            (request({"role": "robot", "content": ""}), r"messages\[0\].role: 'robot' is none of the roles"),
            (request({"role": ["user"]}), r"messages\[0\].role: is a list, not a text"),
            (request({"role": "user", "content": [{"type": "tool_result"}]}), r"content\[0\].tool_use_id: is null"),
            (request({"role": "user", "content": [result_of("a", is_error="no")]}), r"\[0\].is_error: is a text"),
            (request(system=7), "system: is a number"),
            (request(max_tokens="9"), "max_tokens: is a text"),
            (request(model=None, stream=1), "stream: is a number"),
        ],
    )
    def test_what_is_not_of_the_shape_is_named_with_its_place(self, body: Json, expected: str) -> None:
        with pytest.raises(ApiFormatError, match=expected):
            API.read_request(body)


class TestPreparedRequest:
    @pytest.mark.parametrize(
        ("most", "thinking"),
        [
            (5000, {"type": "enabled", "budget_tokens": 4000, "display": "omitted"}),
            (4000, {"type": "enabled", "budget_tokens": 3999, "display": "omitted"}),
            (1025, {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}),
            (1024, {"type": "disabled"}),
        ],
    )
    def test_thinking_keeps_within_a_lowered_limit(self, most: int, thinking: Json) -> None:
        given = {"type": "enabled", "budget_tokens": 4000, "display": "omitted"}
        sent = API.prepare(request(max_tokens=8000, thinking=given), model=None, max_tokens_out=most)
        assert (sent["max_tokens"], sent["thinking"]) == (most, thinking)


class TestReply:
    def test_text_calls_usage_and_model_are_read(self) -> None:
        blocks = [
            {"type": "thinking", "thinking": "Hm.", "signature": "x"},
            {"type": "text", "text": "It is "},
            server_tool_use(query="weather NYC today"),
            SEARCH_RESULT,
            {"type": "text", "text": "sunny.", "citations": []},
            tool_use("toolu_a", "read", path="a"),
        ]
        reply = API.read_reply(message(*blocks, reason="tool_use"))
        assert reply.text == "It is sunny."
        assert reply.calls == (SEARCH, READ)
        assert reply.usage == USED
        assert reply.model == MODEL

    def test_usage_that_is_not_said_is_not_known(self) -> None:
        assert API.read_reply(message(usage=None)).usage == Usage()
        assert API.read_reply(message(usage={"input_tokens": 3})).usage == Usage(tokens_in=3)

    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({}, "content: is null, not a list"),
            (message("Hello"), r"content\[0\]: is a text, not an object"),  # type: ignore[arg-type]
            (message({"type": "text", "text": 7}), r"content\[0\].text: is a number"),
            (message({"type": "tool_use", "name": "a"}), r"content\[0\].id: is null"),
            (message({"type": "tool_use", "id": "a"}), r"content\[0\].name: is null"),
            (message(usage={"input_tokens": -3}), "usage.input_tokens: is a number"),
            (message(model=[]), "model: is a list"),
            ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "says: Overloaded"),
        ],
    )
    def test_what_is_not_of_the_shape_is_named_with_its_place(self, body: Json, expected: str) -> None:
        with pytest.raises(ApiFormatError, match=expected):
            API.read_reply(body)


class TestReplyWithoutCalls:
    body = message(
        {"type": "text", "text": "Well."},
        server_tool_use(query="weather NYC today"),
        SEARCH_RESULT,
        tool_use("toolu_a", "read", path="a"),
        tool_use("toolu_b", "delete", path="b"),
        reason="tool_use",
    )

    def test_the_others_stay_and_all_is_the_same_when_no_call_is_meant(self) -> None:
        original = copy.deepcopy(self.body)
        left = API.remove_calls(self.body, {"toolu_b"})
        assert self.body == original
        assert left == {**original, "content": original["content"][:4]}
        assert API.remove_calls(self.body, {"toolu_z", "msg"}) is self.body

    def test_a_call_that_was_run_goes_with_its_result(self) -> None:
        left = API.remove_calls(self.body, {"srvtoolu_c"})
        assert [block["type"] for block in left["content"]] == ["text", "tool_use", "tool_use"]
        assert left["stop_reason"] == "tool_use"

    def test_without_any_left_the_turn_is_over(self) -> None:
        left = API.remove_calls(self.body, {"toolu_a", "toolu_b"})
        assert [block["type"] for block in left["content"]] == ["text", "server_tool_use", "web_search_tool_result"]
        assert left["stop_reason"] == "end_turn"
        paused = message(server_tool_use(query="?"), reason="pause_turn")
        left = API.remove_calls(paused, {"srvtoolu_c"})
        assert (left["content"], left["stop_reason"]) == ([], "end_turn")


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "kind"),
        [(400, "invalid_request_error"), (403, "permission_error"), (418, "invalid_request_error"), (503, "api_error")],
    )
    def test_their_type_is_that_of_the_status(self, status: int, kind: str) -> None:
        error = API.error_body(status, "a_code", "why")["error"]
        assert error == {"type": kind, "message": "why", "code": "a_code"}


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

    def test_after_the_reason_to_stop_only_the_last_event_is_missing(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(named(TEXT[:-1]))
        assert documents(stream.cut()) == [STOP]
        stream.feed(named(TEXT[-1:]))
        assert stream.cut() == b""
