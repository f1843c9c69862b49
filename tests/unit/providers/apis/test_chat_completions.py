"""Chat completions, whole and streamed."""

import copy
from typing import Any

import openai
import pytest
from tests.provider_apis.chat import (
    API,
    BOTH,
    CALLED,
    DELETE,
    READ,
    TEXT,
    TWO_CALLS,
    USAGE_CHUNK,
    USED,
    accumulated,
    called,
    chunk,
    completion,
    piece,
    request,
    tool_call,
)
from tests.provider_streams import DONE, Json, documents, event, passed, refusing, unnamed

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, InputMessage, ToolAnswer


class TestRequest:
    def test_the_whole_context_is_read(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        said = [
            {"role": "system", "content": "Be short."},
            {"role": "developer", "content": [{"type": "text", "text": "In"}, {"type": "text", "text": "French."}]},
            {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
            {"role": "assistant", "content": None, "tool_calls": [tool_call("call_a", "read")]},
            {"role": "tool", "tool_call_id": "call_a", "content": "nothing"},
            {"role": "tool", "tool_call_id": "call_b", "content": [{"type": "text", "text": "more"}]},
            {"role": "function", "name": "look", "content": "seen"},
        ]
        read = API.read_request(request(*said, stream=True, max_completion_tokens=100, seed=7))
        assert (read.model, read.stream, read.max_tokens_out, read.continues) == ("gpt-4.1", True, 100, False)
        assert read.said == (
            InputMessage("system", "Be short."),
            InputMessage("system", "In\nFrench."),
            InputMessage("user", "What is this?\n[image]"),
        )
        assert read.answers == (
            ToolAnswer("call_a", "nothing", None),
            ToolAnswer("call_b", "more", None),
            ToolAnswer("look", "seen", None),
        )

    @pytest.mark.parametrize(
        ("fields", "limit"),
        [
            ({}, None),
            ({"max_tokens": 5}, 5),
            ({"max_tokens": None, "max_completion_tokens": 7}, 7),
            ({"max_tokens": 9, "max_completion_tokens": 7}, 9),
        ],
    )
    def test_the_limit_is_read_by_either_name(self, fields: Json, limit: int | None) -> None:
        assert API.read_request(request(**fields)).max_tokens_out == limit

    def test_what_is_counted_is_text_and_not_images(self) -> None:
        tool = {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {}}}
        image = {"type": "image_url", "image_url": {"url": "A" * 1000}}
        text = {"type": "text", "text": "Hello"}
        bare = API.read_request(request({"role": "user", "content": [text]}))
        with_image = API.read_request(request({"role": "user", "content": [text, image]}))
        with_tool = API.read_request(request({"role": "user", "content": [text]}, tools=[tool]))
        assert bare.characters == with_image.characters
        assert 20 < bare.characters < 60
        assert with_tool.characters >= bare.characters + len("functionreadReads.")

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ({}, "messages: is null, not a list"),
            (request("Hello"), r"messages\[0\]: is a text, not an object"),  # type: ignore[arg-type]
            (request({"content": "Hello"}), r"messages\[0\].role: is null, not a text"),
            (request({"role": "robot", "content": "Hello"}), r"messages\[0\].role: 'robot' is none of the roles"),
            (request({"role": "user", "content": 7}), r"messages\[0\].content: is a number, not a list"),
            (request({"role": "user", "content": [7]}), r"messages\[0\].content\[0\]: is a number, not an object"),
            (request({"role": "user", "content": [{"type": "text", "text": []}]}), r"content\[0\].text: is a list"),
            (request({"role": "tool", "tool_call_id": 7}), r"messages\[0\].tool_call_id: is a number, not a text"),
            (request(model=7), "model: is a number, not a text"),
            (request(stream="yes"), "stream: is a text, not true or false"),
            (request(max_tokens=-1), "max_tokens: is a number, not a whole number from 0"),
            (request(max_tokens=True), "max_tokens: is a truth value, not a whole number from 0"),
            (request(max_tokens=1.5), "max_tokens: is a number, not a whole number from 0"),
            (request(n=2), "n: more than one choice of a reply cannot be metered"),
        ],
    )
    def test_what_is_not_of_the_shape_is_named_with_its_place(self, body: Json, message: str) -> None:
        with pytest.raises(ApiFormatError, match=message):
            API.read_request(body)


class TestPreparedRequest:
    @pytest.mark.parametrize("options", [None, {}, {"include_usage": False, "include_obfuscation": False}])
    def test_a_stream_is_made_to_say_what_it_used(self, options: Json | None) -> None:
        body = request(stream=True) if options is None else request(stream=True, stream_options=options)
        sent = API.asking_for_usage(body)
        assert sent["stream_options"] == {**(options or {}), "include_usage": True}
        assert body.get("stream_options") == options


class TestReply:
    def test_text_calls_usage_and_model_are_read(self) -> None:
        custom = {"id": "call_c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
        message = {"content": "I look.", "tool_calls": [tool_call("call_a", "read", '{"path": "a"}'), custom]}
        reply = API.read_reply(completion(message, "tool_calls"))
        assert reply.text == "I look."
        assert reply.calls == (READ, AskedCall("call_c", "patch", {"input": "*** Begin"}))
        assert reply.usage == USED
        assert reply.model == "gpt-4.1-2025-04-14"

    def test_a_refusal_and_parts_are_text(self) -> None:
        parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Well"}, {"type": "text", "text": "."}]
        assert API.read_reply(completion({"content": parts})).text == "Well."
        assert API.read_reply(completion({"refusal": "No."})).text == "No."

    def test_calls_without_an_id_are_told_apart_and_legacy_ones_go_by_the_name_of_their_function(self) -> None:
        message = {"function_call": {"name": "read", "arguments": '{"path": "a"}'}}
        assert API.read_reply(completion(message, "function_call")).calls == (AskedCall("read", "read", {"path": "a"}),)
        calls = [{"function": {"name": "read", "arguments": "{}"}}] * 2
        reply = API.read_reply(completion({"tool_calls": calls}))
        assert len({call.call_id for call in reply.calls}) == 2

    @pytest.mark.parametrize(
        ("given", "arguments"),
        [
            ("", {}),
            ("{}", {}),
            ("[1]", {"unparsed": "[1]"}),
            ('{"a": ', {"unparsed": '{"a": '}),
            ("[" * 100_000, {"unparsed": "[" * 100_000}),
            ('{"a": "\\ud83d\\ude00 \\ud83d"}', {"a": "\U0001f600 \ufffd"}),
            ({"a": 1}, {"a": 1}),
        ],
    )
    def test_arguments_are_an_object_or_kept_as_text(self, given: Any, arguments: Json) -> None:
        reply = API.read_reply(completion({"tool_calls": [tool_call("call_a", "read", given)]}))
        assert reply.calls[0].arguments == arguments

    def test_usage_that_is_not_said_is_not_known(self) -> None:
        assert API.read_reply(completion({"content": "Hi"}, usage=None)).usage == Usage()
        assert API.read_reply(completion({"content": "Hi"}, usage={"prompt_tokens": 3})).usage == Usage(tokens_in=3)

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ({}, "choices: is null, not a list"),
            ({"choices": []}, "choices: there are 0 where one is asked for"),
            ({"choices": completion({})["choices"] * 2}, "choices: there are 2 where one is asked for"),
            ({"choices": [7]}, r"choices\[0\]: is a number"),
            ({"choices": [{}]}, r"choices\[0\].message: is null, not an object"),
            (completion({"content": 7}), r"choices\[0\].message.content: is a number"),
            (completion({"tool_calls": {}}), "tool_calls: is an object, not a list"),
            (completion({"tool_calls": [{}]}), r"tool_calls\[0\].function: is null, not an object"),
            (completion({"tool_calls": [{"function": {"name": None}}]}), r"tool_calls\[0\].function.name: is null"),
            (completion({"tool_calls": [{"id": 7, "function": {"name": "a"}}]}), r"tool_calls\[0\].id: is a number"),
            (completion({"function_call": {}}), "function_call.name: is null"),
            (completion({}, usage=[]), "usage: is a list, not an object"),
            (completion({}, usage={"prompt_tokens": "3"}), "usage.prompt_tokens: is a text, not a whole number"),
            (completion({}, model=7), "model: is a number"),
            ({"error": {"message": "The server is on fire.", "code": 500}}, "the provider says: The server is on fire"),
            ({"error": "Nope"}, "the provider says: Nope"),
        ],
    )
    def test_what_is_not_of_the_shape_is_named_with_its_place(self, body: Json, message: str) -> None:
        with pytest.raises(ApiFormatError, match=message):
            API.read_reply(body)


class TestReplyWithoutCalls:
    body = completion(
        {"tool_calls": [tool_call("call_a", "read"), tool_call("call_b", "delete")]}, "tool_calls", extra=[1]
    )

    def test_the_others_stay_and_all_is_the_same_when_no_call_is_meant(self) -> None:
        original = copy.deepcopy(self.body)
        left = API.remove_calls(self.body, {"call_b"})
        assert self.body == original
        original["choices"][0]["message"]["tool_calls"].pop()
        assert left == original
        assert API.remove_calls(self.body, {"call_z"}) is self.body

    def test_without_any_left_it_is_a_reply_of_text_as_without_a_legacy_one(self) -> None:
        (choice,) = API.remove_calls(self.body, ["call_a", "call_b"])["choices"]
        assert choice["finish_reason"] == "stop"
        assert choice["message"] == {"role": "assistant", "content": "", "refusal": None, "annotations": []}
        body = completion({"content": "Hm", "function_call": {"name": "read", "arguments": "{}"}}, "function_call")
        (choice,) = API.remove_calls(body, {"read"})["choices"]
        assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", "Hm")
        assert "function_call" not in choice["message"]


class TestErrors:
    @pytest.mark.parametrize(("status", "kind"), [(403, "invalid_request_error"), (503, "server_error")])
    def test_their_type_says_whose_fault_it_is(self, status: int, kind: str) -> None:
        error = {"message": "why", "type": kind, "param": None, "code": "a_code"}
        assert API.error_body(status, "a_code", "why") == {"error": error}


def calls_in(output: bytes) -> list[Json]:
    """The pieces of calls that the agent gets."""
    return [entry for one in documents(output) for entry in one["choices"][0]["delta"].get("tool_calls", [])]


CUSTOM = [
    chunk({"tool_calls": [{"index": 0, "id": "call_c", "type": "custom"}]}),
    *(chunk({"tool_calls": [{"index": 0, "custom": one}]}) for one in ({"name": "patch"}, {"input": "*** Begin"})),
    chunk({"tool_calls": [{"index": 0, "custom": {"input": " Patch"}}]}),
]
OTHER_IDS = [called(0, '{"path": ', "random-1", "read"), called(0, '"a"}', "random-2")]
EMPTY = AskedCall("b", "delete", {})


class TestStream:
    def test_text_goes_on_at_once_byte_for_byte(self) -> None:
        stream = API.stream(BOTH, refusing())
        assert not stream.started
        for document in TEXT:
            assert not stream.ended
            sent = event(document)
            assert stream.feed(sent) == sent
        assert (stream.started, stream.ended, stream.characters) == (True, True, len("Hello there"))
        assert stream.feed(event(USAGE_CHUNK) + DONE) == event(USAGE_CHUNK) + DONE
        assert stream.reply.text == "Hello there"
        assert (stream.reply.usage, stream.reply.model) == (USED, "gpt-4o-mini")

    def test_it_has_not_started_before_the_model_says_something(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(b": OPENROUTER PROCESSING\n\n" + event(TEXT[0]))
        assert not stream.started
        stream.feed(event(chunk({"reasoning_content": "Hm"})))
        assert stream.started
        assert (stream.reply.text, stream.characters) == ("", 2)

    def test_a_chunk_without_choices_or_usage_goes_on(self) -> None:
        filtered = {**chunk({}), "choices": [], "prompt_filter_results": []}
        assert passed(API, unnamed([filtered, *TEXT]), refusing())[0] == unnamed([filtered, *TEXT])

    def test_calls_are_held_back_until_they_are_whole_and_asked_about_once(self) -> None:
        withheld = refusing()
        stream = API.stream({}, withheld)
        assert [stream.feed(event(document)) for document in TWO_CALLS[:-1]] == [b""] * 5
        assert stream.started
        assert withheld.asked == []
        assert stream.reply.calls == ()
        assert stream.feed(event(TWO_CALLS[-1])) == b"".join(map(event, TWO_CALLS))
        assert stream.feed(DONE) == DONE
        assert withheld.asked == [READ, DELETE]
        assert stream.reply.calls == (READ, DELETE)
        assert stream.characters == len('{"path": "a"}{"path": "b"}')

    @pytest.mark.parametrize(("refused", "left"), [("delete", READ), ("read", DELETE)])
    def test_the_calls_that_are_left_are_counted_from_0(self, refused: str, left: AskedCall) -> None:
        output, stream = passed(API, unnamed(TWO_CALLS), refusing(refused))
        assert output.endswith(DONE)
        final = accumulated(output).choices[0]
        assert final.finish_reason == "tool_calls"
        (call,) = final.message.tool_calls
        assert (call.id, call.function.name, call.index) == (left.call_id, left.tool, 0)
        assert call.function.arguments == f'{{"path": "{left.arguments["path"]}"}}'
        assert stream.reply.calls == (READ, DELETE)

    def test_text_beside_a_call_that_is_taken_out_or_after_it_stays(self) -> None:
        begun, end = chunk({"role": "assistant", "content": "One "}), chunk({"content": "three"})
        mixed = [begun, called(0, "{}", "call_b", "delete", content="two "), end, CALLED]
        output, _ = passed(API, unnamed(mixed), refusing("delete"))
        final = accumulated(output).choices[0]
        assert (final.finish_reason, final.message.content, final.message.tool_calls) == ("stop", "One two three", None)
        assert passed(API, unnamed(mixed), refusing())[0] == unnamed(mixed)
        calls = [called(0, "{}", "call_b", "delete"), chunk({"content": "Done."}, "tool_calls")]
        output, _ = passed(API, unnamed(calls), refusing("delete"))
        assert [one["choices"][0]["delta"] for one in documents(output)] == [{"content": "Done."}]

    def test_a_legacy_call_is_taken_out(self) -> None:
        legacy = [
            chunk({"role": "assistant", "content": None, "function_call": {"name": "delete", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"path":'}}),
            chunk({"function_call": {"arguments": '"b"}'}}),
            chunk({}, "function_call"),
        ]
        withheld = refusing("delete")
        output, _ = passed(API, unnamed(legacy), withheld)
        assert withheld.asked == [AskedCall("delete", "delete", {"path": "b"})]
        assert b"function_call" not in output
        assert passed(API, unnamed(legacy), refusing())[0] == unnamed(legacy)

    @pytest.mark.parametrize("index", [0, None])
    def test_calls_of_servers_that_do_not_count_are_told_apart_by_id(self, index: int | None) -> None:
        first = [called(index, '{"path": ', "call_a", "read"), called(index, '"a"}')]
        second = [called(index, '{"path": ', "call_b", "delete"), called(index, '"b"}')]
        withheld = refusing("read")
        output, _ = passed(API, unnamed([*first, *second, CALLED]), withheld)
        assert withheld.asked == [READ, DELETE]
        left = calls_in(output)
        assert [entry.get("id") for entry in left] == ["call_b", None]
        assert "".join(entry["function"]["arguments"] for entry in left) == '{"path": "b"}'
        assert all(entry.get("index") == index for entry in left)

    def test_an_index_of_which_a_call_is_left_is_still_counted(self) -> None:
        two = [called(0, '{"path": "a"}', "call_a", "read"), called(0, '{"path": "b"}', "call_b", "delete")]
        output, _ = passed(API, unnamed([*two, called(1, "{}", "call_c", "write"), CALLED]), refusing("read"))
        assert [(entry["index"], entry["id"]) for entry in calls_in(output)] == [(0, "call_b"), (1, "call_c")]

    @pytest.mark.parametrize(
        ("pieces", "asked"),
        [
            pytest.param(CUSTOM, [AskedCall("call_c", "patch", {"input": "*** Begin Patch"})], id="custom tool"),
            pytest.param(OTHER_IDS, [AskedCall("random-1", "read", {"path": "a"})], id="each piece has another id"),
            pytest.param([called(0, "", "b", "dele"), called(0, "", None, "te")], [EMPTY], id="name in pieces"),
            pytest.param([called(1, "", "b", "delete"), called(1, "{}", "b", "delete")], [EMPTY], id="name again"),
        ],
    )
    def test_however_a_call_is_put_into_pieces_it_is_asked_about(
        self, pieces: list[Json], asked: list[AskedCall]
    ) -> None:
        withheld = refusing()
        passed(API, unnamed([*pieces, CALLED]), withheld)
        assert withheld.asked == asked

    def test_calls_of_servers_that_do_not_count_are_told_apart_by_name(self) -> None:
        withheld = refusing("delete")
        calls = [called(0, "{}", None, name) for name in ("read", "delete")]
        output, _ = passed(API, unnamed([*calls, CALLED]), withheld)
        assert [call.tool for call in withheld.asked] == ["read", "delete"]
        assert b"delete" not in output

    def test_calls_that_nothing_finishes_are_whole_at_the_end(self) -> None:
        withheld = refusing("delete")
        output, stream = passed(API, unnamed(TWO_CALLS[:-1]), withheld)
        assert withheld.asked == [READ, DELETE]
        assert stream.ended
        assert b"delete" not in output

    def test_a_call_after_the_reason_to_finish_is_held_back_too(self) -> None:
        withheld = refusing("delete")
        stream = API.stream({}, withheld)
        stream.feed(b"".join(map(event, TWO_CALLS)))
        assert stream.feed(event(called(1, "{}", "call_c", "delete"))) == b""
        assert stream.feed(DONE) == DONE
        assert [call.call_id for call in withheld.asked] == ["call_a", "call_b", "call_c"]

    @pytest.mark.parametrize("added", [{"tool_calls": [piece(1, "more")]}, {"function_call": {"arguments": "more"}}])
    def test_what_is_added_to_a_call_that_was_decided_on_is_unreadable(self, added: Json) -> None:
        stream = API.stream({}, refusing())
        legacy = chunk({"function_call": {"name": "read", "arguments": "{}"}})
        stream.feed(b"".join(map(event, [legacy, *TWO_CALLS])))
        assert stream.feed(event(chunk(added))) == b""
        with pytest.raises(ApiFormatError, match="name: is missing"):
            stream.feed(DONE)

    def test_a_call_that_never_ends_is_not_collected_for_ever(self) -> None:
        stream = API.stream({}, refusing())
        endless = event(called(0, "a" * 2**20, "call_a", "read"))
        with pytest.raises(ApiFormatError, match="the tool calls of the reply are larger than"):
            stream.feed(endless * 40)

    @pytest.mark.parametrize(
        ("sent", "message"),
        [
            (b"data: {\n\n", "not JSON"),
            (b"data: \xff\n\n", "not JSON"),
            (b"data: " + b"[" * 100_000 + b"\n\n", "not JSON"),
            (b"data: []\n\n", "not a JSON object"),
            (event({"error": {"message": "Overloaded", "code": 529}}), "the provider says: Overloaded"),
            (event({"choices": {}}), "choices: is an object, not a list"),
            (event({"choices": [7]}), r"choices\[0\]: is a number"),
            (event({"choices": [{"index": 1, "delta": {}}]}), "choices: there is more than the one"),
            (event({"choices": [{"index": []}]}), r"choices\[0\].index: is a list"),
            (event({"choices": [{"delta": 7}]}), r"choices\[0\].delta: is a number"),
            (event(chunk({"content": {}})), r"choices\[0\].delta.content: is an object"),
            (event(chunk({"tool_calls": [7]})), r"tool_calls\[\]: is a number"),
            (event(chunk({"tool_calls": [{"index": "0"}]})), r"tool_calls\[\].index: is a text"),
            (event(chunk({"tool_calls": [piece(0, 7)]})), "tool_calls.*: is a number, not a text"),  # type: ignore[arg-type]
            (event(chunk({"tool_calls": [piece(0, "{}")]}, "tool_calls")), "function.name: is missing"),
            (event(chunk({}, usage=7)), "usage: is a number"),
        ],
    )
    def test_what_is_no_stream_of_this_api_is_unreadable(self, sent: bytes, message: str) -> None:
        with pytest.raises(ApiFormatError, match=message):
            API.stream({}, refusing()).feed(sent)

    def test_halves_of_a_character_in_two_pieces_are_joined(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(event(chunk({"content": "\ud83d"})) + event(chunk({"content": "\ude00"})))
        assert stream.reply.text == "\U0001f600"


class TestCut:
    def test_a_text_ends_as_one_that_reached_its_limit(self) -> None:
        stream = API.stream({}, refusing())
        output = stream.feed(b"".join(map(event, TEXT[:-1]))) + stream.cut()
        assert output.endswith(DONE)
        with pytest.raises(openai.LengthFinishReasonError) as raised:
            accumulated(output)
        final = raised.value.completion
        assert final.choices[0].message.content == "Hello there"
        assert documents(output)[-1] == chunk({}, "length")

    def test_before_anything_it_names_the_model_that_was_asked_for_and_after_the_end_adds_nothing(
        self,
    ) -> None:
        (only,) = documents(API.stream({"model": "gpt-4.1"}, refusing()).cut())
        assert (only["model"], only["choices"][0]["finish_reason"]) == ("gpt-4.1", "length")
        _, stream = passed(API, unnamed(TEXT), refusing())
        assert stream.cut() == b""
