import copy
from typing import Any

import pytest
from tests.provider_apis.chat import API, READ, USED, completion, request, tool_call
from tests.provider_streams import Json

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
        left = API.without_calls(self.body, {"call_b"})
        assert self.body == original
        original["choices"][0]["message"]["tool_calls"].pop()
        assert left == original
        assert API.without_calls(self.body, {"call_z"}) is self.body

    def test_without_any_left_it_is_a_reply_of_text_as_without_a_legacy_one(self) -> None:
        (choice,) = API.without_calls(self.body, ["call_a", "call_b"])["choices"]
        assert choice["finish_reason"] == "stop"
        assert choice["message"] == {"role": "assistant", "content": "", "refusal": None, "annotations": []}
        body = completion({"content": "Hm", "function_call": {"name": "read", "arguments": "{}"}}, "function_call")
        (choice,) = API.without_calls(body, {"read"})["choices"]
        assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", "Hm")
        assert "function_call" not in choice["message"]


class TestErrors:
    @pytest.mark.parametrize(("status", "kind"), [(403, "invalid_request_error"), (503, "server_error")])
    def test_their_type_says_whose_fault_it_is(self, status: int, kind: str) -> None:
        error = {"message": "why", "type": kind, "param": None, "code": "a_code"}
        assert API.error_body(status, "a_code", "why") == {"error": error}
