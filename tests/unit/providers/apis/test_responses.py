"""Responses, whole and streamed."""

import copy
import itertools
import json
from typing import Any

import pytest
from tests.provider_apis.responses import (
    API,
    CALLS,
    DELETE,
    HELLO,
    OUTPUT,
    READ,
    TEXT,
    USED,
    accumulated,
    call_events,
    function_call,
    message_events,
    numbers,
    request,
    response,
    says,
    stream_of,
    types,
)
from tests.provider_streams import Json, documents, event, named, passed, refusing

from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, InputMessage, ToolAnswer


def output(kind: str, call_id: str, said: Any) -> Json:
    return {"type": f"{kind}_output", "call_id": call_id, "output": said}


class TestRequest:
    def test_the_whole_context_is_read(self) -> None:
        image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
        asked = [{"type": "input_text", "text": "What is this?"}, image, {"type": "input_file", "file_id": "file_1"}]
        done = [{"type": "input_text", "text": "done"}, {"type": "input_image", "file_id": "f"}]
        given = [
            {"role": "developer", "content": "In French."},
            {"type": "message", "role": "user", "content": asked},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"},
            says("I look."),
            {"role": "assistant", "content": "Yes."},
            function_call(READ),
            output("function_call", "call_a", "nothing"),
            output("custom_tool_call", "call_c", done),
            output("local_shell_call", "call_d", '{"stdout": ""}'),
            {**output("apply_patch_call", "call_e", "no such file"), "status": "failed"},
            output("computer_call", "call_f", {"type": "computer_screenshot"}),
            output("shell_call", "call_g", [{"stdout": "x", "stderr": ""}]),
            {"type": "item_reference", "id": "msg_7"},
        ]
        read = API.read_request(request(given, instructions="Be short.", max_output_tokens=100, stream=True))
        assert (read.model, read.stream, read.max_tokens_out, read.continues) == ("gpt-4.1", True, 100, False)
        assert API.read_request(request()).said == (InputMessage("user", "Hello"),)
        assert read.said == (
            InputMessage("system", "Be short."),
            InputMessage("system", "In French."),
            InputMessage("user", "What is this?\n[image]\n[file]"),
        )
        assert read.answers == (
            ToolAnswer("call_a", "nothing", None),
            ToolAnswer("call_c", "done\n[image]", None),
            ToolAnswer("call_d", '{"stdout": ""}', None),
            ToolAnswer("call_e", "no such file", True),
            ToolAnswer("call_f", "[image]", None),
            ToolAnswer("call_g", [{"stdout": "x", "stderr": ""}], None),
        )

    @pytest.mark.parametrize("field", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
    def test_a_context_that_the_provider_holds_goes_on(self, field: Json) -> None:
        assert API.read_request({"model": "gpt-4.1", **field}).continues

    def test_what_is_counted_is_text_and_neither_files_nor_what_is_encrypted(self) -> None:
        reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "A" * 1000}
        image = {"role": "user", "content": [{"type": "input_image", "image_url": "A" * 1000}]}
        assert API.read_request(request([reasoning, image])).characters < 100
        tools = [{"type": "function", "name": "read", "description": "Reads."}]
        counted = API.read_request(request(tools=tools, instructions="Be short.")).characters
        assert counted >= len("HelloreadReads.Be short.")

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (request(background=True), "background: a reply that is fetched later cannot be metered"),
            (request(background="yes"), "background: is a text"),
            (request(7), "input: is a number, not a list"),
            (request([7]), r"input\[0\]: is a number, not an object"),
            (request([{"role": 7}]), r"input\[0\].role: is a number"),
            (request([{"role": "robot"}]), r"input\[0\].role: 'robot' is none of the roles"),
            (request([{"role": "user", "content": [[]]}]), r"input\[0\].content\[0\]: is a list"),
            (request([{"type": "function_call_output", "output": 7}]), r"input\[0\].output: is a number"),
            (request(instructions=7), "instructions: is a number"),
            (request(max_output_tokens=[]), "max_output_tokens: is a list"),
            (request(stream="no"), "stream: is a text"),
            (request(model={}), "model: is an object"),
        ],
    )
    def test_what_is_not_of_the_shape_is_named_with_its_place(self, body: Json, message: str) -> None:
        with pytest.raises(ApiFormatError, match=message):
            API.read_request(body)


EXEC = {"type": "exec", "command": ["ls"]}
DELETES = {"type": "delete_file", "path": "a"}


class TestReply:
    def test_text_calls_usage_and_model_are_read(self) -> None:
        reply = API.read_reply(response({"type": "reasoning", "id": "rs_1", "summary": []}, *OUTPUT))
        assert (reply.text, reply.calls) == ("Okay.Then?", (READ, DELETE))
        assert (reply.usage, reply.model) == (USED, "gpt-4.1-2025-04-14")

    @pytest.mark.parametrize(
        ("kind", "item", "call"),
        [
            ("custom_tool_call", {"call_id": "c", "name": "sql", "input": "x"}, ("c", "sql", {"input": "x"})),
            ("local_shell_call", {"id": "l", "call_id": "c", "action": EXEC}, ("c", "local_shell", EXEC)),
            ("shell_call", {"call_id": "c", "action": {"commands": ["ls"]}}, ("c", "shell", {"commands": ["ls"]})),
            ("apply_patch_call", {"call_id": "c", "operation": DELETES}, ("c", "apply_patch", DELETES)),
            ("computer_call", {"call_id": "c", "actions": [EXEC]}, ("c", "computer", {"actions": [EXEC]})),
            ("web_search_call", {"id": "w", "action": {"query": "q"}}, ("w", "web_search", {"query": "q"})),
            ("file_search_call", {"id": "f", "queries": ["q"]}, ("f", "file_search", {"queries": ["q"]})),
            ("code_interpreter_call", {"id": "i", "code": "1"}, ("i", "code_interpreter", {"code": "1"})),
            ("image_generation_call", {"id": "i", "result": "AAAA"}, ("i", "image_generation", {})),
            ("mcp_call", {"id": "m", "name": "roll", "arguments": '{"n": 2}'}, ("m", "roll", {"n": 2})),
            ("mcp_approval_request", {"id": "m", "name": "roll", "arguments": "{}"}, ("m", "roll", {})),
            ("tool_search_call", {"call_id": "t", "arguments": {"q": 1}}, ("t", "tool_search", {"q": 1})),
            ("program", {"id": "p", "call_id": "c", "code": "f()"}, ("c", "program", {"code": "f()"})),
            ("function_call", {"name": "read", "arguments": "{}"}, ("output[0]", "read", {})),
        ],
    )
    def test_every_kind_of_call_is_one(self, kind: str, item: Json, call: tuple[str, str, Json]) -> None:
        assert API.read_reply(response({"type": kind, **item})).calls == (AskedCall(*call),)

    def test_a_call_that_was_approved_is_not_another_one(self) -> None:
        approved = {"type": "mcp_call", "id": "m", "approval_request_id": "a", "name": "roll", "arguments": "{}"}
        assert API.read_reply(response(approved)).calls == ()
        read = API.read_request(request([{**approved, "output": "4"}, {**approved, "error": {"message": "?"}}]))
        assert read.answers == (ToolAnswer("a", "4", False), ToolAnswer("a", {"message": "?"}, True))

    def test_a_refusal_is_text(self) -> None:
        refusal = {**says(""), "content": [{"type": "refusal", "refusal": "No."}]}
        assert API.read_reply(response(refusal)).text == "No."

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ({}, "output: is null, not a list"),
            (response(7), r"output\[0\]: is a number"),  # type: ignore[arg-type]
            (response({"type": "message", "content": 7}), r"output\[0\].content: is a number"),
            (response({"type": "function_call", "name": 7}), r"output\[0\].name: is a number"),
            (response(usage={"input_tokens_details": 7}), "usage.input_tokens_details: is a number"),
            (response(usage={"output_tokens": None, "input_tokens": "3"}), "usage.input_tokens: is a text"),
            (response(model=7), "model: is a number"),
            ({"error": {"message": "On fire."}}, r"the provider says: On fire\."),
        ],
    )
    def test_what_is_not_of_the_shape_is_named_with_its_place(self, body: Json, message: str) -> None:
        with pytest.raises(ApiFormatError, match=message):
            API.read_reply(body)


class TestReplyWithoutCalls:
    body = response(*OUTPUT)

    def test_the_others_stay_and_all_is_the_same_when_no_call_is_meant(self) -> None:
        original = copy.deepcopy(self.body)
        assert API.remove_calls(self.body, {"call_b"}) == {**original, "output": [*OUTPUT[:2], OUTPUT[3]]}
        assert API.remove_calls(self.body, {"call_a", "call_b"})["output"] == [OUTPUT[0], OUTPUT[3]]
        assert self.body == original
        assert API.remove_calls(self.body, {"call_z", "msg_0"}) is self.body

    def test_a_call_that_was_run_goes_with_its_result(self) -> None:
        shell = {"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}}
        result = {"type": "shell_call_output", "id": "o", "call_id": "c", "output": []}
        assert API.remove_calls(response(shell, result, HELLO), {"c"})["output"] == [HELLO]


def test_an_event_of_an_error_has_the_keys_that_are_documented() -> None:
    (error,) = documents(API.error_event("a_code", "why"))
    assert (error["type"], error["code"], error["message"], error["param"]) == ("error", "a_code", "why", None)


def whole(index: int, item: Json) -> list[Json]:
    """The events of an item that comes at once."""
    return [{"type": f"response.output_item.{what}", "output_index": index, "item": item} for what in ("added", "done")]


class TestStream:
    def test_reasoning_counts_as_written(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(named([{"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm"}]))
        assert (stream.started, stream.reply.text, stream.characters) == (True, "", 2)

    @pytest.mark.parametrize(("refused", "left"), [("delete", READ), ("read", DELETE)])
    def test_the_items_that_are_left_are_counted_from_0(self, refused: str, left: AskedCall) -> None:
        output, stream = passed(API, named(CALLS), refusing(refused))
        final = accumulated(output)
        assert [one.type for one in final.output] == ["message", "function_call", "message"]
        assert (final.output[1].call_id, json.loads(final.output[1].arguments)) == (left.call_id, left.arguments)
        indices = [one["output_index"] for one in documents(output) if "output_index" in one]
        assert [index for index, _ in itertools.groupby(indices)] == [0, 1, 2]
        assert numbers(output) == sorted(set(numbers(output)))
        assert stream.reply.calls == (READ, DELETE)

    def test_calls_side_by_side_are_each_whole_when_their_item_is_done(self) -> None:
        first, second = call_events(0, OUTPUT[1], '{"path": "a"}'), call_events(1, OUTPUT[2], '{"path": "b"}')
        mixed = [one for pair in zip(first, second, strict=True) for one in pair]
        events = stream_of(mixed, *OUTPUT[1:3])
        assert passed(API, named(events), refusing())[0] == named(events)
        output, _ = passed(API, named(events), refusing("read"))
        (call,) = accumulated(output).output
        assert call.call_id == "call_b"
        assert {one["output_index"] for one in documents(output) if "output_index" in one} == {0}

    def test_a_custom_tool_and_a_shell_are_asked_about(self) -> None:
        custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sql", "input": "DROP"}
        shell = {"type": "local_shell_call", "id": "l", "call_id": "d", "action": {"command": ["rm"]}}
        place = {"output_index": 0, "item_id": "ctc_1"}
        events = [
            {"type": "response.output_item.added", "output_index": 0, "item": {**custom, "input": ""}},
            {"type": "response.custom_tool_call_input.delta", **place, "delta": "DROP"},
            {"type": "response.custom_tool_call_input.done", **place, "input": "DROP"},
            {"type": "response.output_item.done", "output_index": 0, "item": custom},
            *whole(1, shell),
        ]
        withheld = refusing("sql", "local_shell")
        output, _ = passed(API, named(stream_of(events, custom, shell)), withheld)
        drop, remove = AskedCall("c", "sql", {"input": "DROP"}), AskedCall("d", "local_shell", {"command": ["rm"]})
        assert withheld.asked == [drop, remove]
        assert types(output) == ["created", "in_progress", "completed"]

    def test_what_came_of_a_call_that_is_taken_out_goes_with_it(self) -> None:
        shell = {"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}}
        result = {"type": "shell_call_output", "id": "o", "call_id": "c", "output": []}
        events = [*whole(0, shell), *whole(1, result), *message_events(2, HELLO)]
        output, _ = passed(API, named(stream_of(events, shell, result, HELLO)), refusing("shell"))
        assert b"shell" not in output
        (message,) = accumulated(output).output
        assert message.type == "message"

    def test_calls_that_only_the_last_event_has_are_asked_about(self) -> None:
        withheld = refusing("delete")
        output, stream = passed(API, named(stream_of([], *OUTPUT)), withheld)
        assert withheld.asked == [READ, DELETE]
        assert documents(output)[-1]["response"]["output"] == [*OUTPUT[:2], OUTPUT[3]]
        assert stream.reply.text == "Okay.Then?"

    def test_a_call_that_has_another_id_in_the_last_event_is_the_same_one(self) -> None:
        renamed = [{**item, "call_id": f"again_{n}"} if "call_id" in item else item for n, item in enumerate(OUTPUT)]
        withheld = refusing("delete")
        output, _ = passed(API, named([*CALLS[:-1], stream_of([], *renamed)[-1]]), withheld)
        assert withheld.asked == [READ, DELETE]
        left = documents(output)[-1]["response"]["output"]
        assert [item["type"] for item in left] == ["message", "function_call", "message"]

    @pytest.mark.parametrize("renamed", [False, True])
    def test_calls_that_are_alike_keep_what_was_decided_on_each(self, renamed: bool) -> None:
        alike = [function_call(READ), function_call(AskedCall("call_c", "read", {"path": "a"}))]
        last = [{**item, "call_id": f"again_{n}"} for n, item in enumerate(alike)] if renamed else alike[::-1]
        events = stream_of([*call_events(0, alike[0], "{}"), *call_events(1, alike[1], "{}")], *last)
        asked: list[str] = []

        def first_only(call: AskedCall) -> bool:
            asked.append(call.call_id)
            return len(asked) > 1

        output, _ = passed(API, named(events), first_only)
        assert asked == ["call_a", "call_c"]
        (left,) = documents(output)[-1]["response"]["output"]
        assert left["call_id"] == ("again_0" if renamed else "call_a")

    def test_a_call_that_never_becomes_whole_is_left_out(self) -> None:
        events = stream_of(call_events(0, OUTPUT[1], '{"pa')[:2], last="response.incomplete")
        withheld = refusing()
        output, stream = passed(API, named(events), withheld)
        assert withheld.asked == []
        assert (stream.ended, stream.reply.calls) == (True, ())
        assert documents(output) == [*events[:2], events[-1]]

    @pytest.mark.parametrize("refused", [(), ("read",)])
    def test_a_call_that_is_done_in_the_last_event_alone_is_decided_there(self, refused: tuple[str, ...]) -> None:
        events = stream_of(call_events(0, OUTPUT[1], '{"path": "a"}')[:-1], OUTPUT[1])
        withheld = refusing(*refused)
        output, _ = passed(API, named(events), withheld)
        assert withheld.asked == [READ]
        assert [one.type for one in accumulated(output).output] == ([] if refused else ["function_call"])
        if not refused:
            assert output == named(events)

    @pytest.mark.parametrize("last", ["response.completed", "response.incomplete"])
    def test_each_of_the_last_events_ends_it(self, last: str) -> None:
        assert passed(API, named(stream_of([], last=last)), refusing())[1].ended

    def test_the_last_event_may_lack_the_output_and_pieces_and_items_their_index(self) -> None:
        last = {**TEXT[-1], "response": {**response(), "output": None}}
        _, stream = passed(API, named([*TEXT[:-1], last]), refusing())
        assert (stream.ended, stream.reply.text) == (True, "Hello there")
        bare = [{key: value for key, value in one.items() if key != "output_index"} for one in TEXT]
        output, stream = passed(API, named(bare), refusing())
        assert (output, stream.reply.text) == (named(bare), "Hello there")
        assert API.stream({}, refusing()).feed(named(bare[:6]))

    @pytest.mark.parametrize(
        ("sent", "message"),
        [
            ({"type": "error", "code": "rate_limit", "message": "Slow down.", "param": None}, r"says: Slow down\."),
            ({"type": "error", "error": {"message": "Slow down."}}, r"says: Slow down\."),
            ({"type": []}, "type: is a list"),
            ({"type": "response.created", "response": 7}, "response: is a number"),
            ({"type": "response.completed"}, "response: is null"),
            ({"type": "response.completed", "response": {"output": {}}}, "output: is an object"),
            ({"type": "response.output_text.delta", "output_index": 0, "content_index": 0}, "delta: is null"),
            ({"type": "response.output_text.delta", "output_index": "0", "delta": "a"}, "output_index: is a text"),
            ({"type": "response.function_call_arguments.delta", "delta": 7}, "delta: is a number"),
            ({"type": "response.output_item.added", "item": []}, "item: is a list"),
            ({"type": "response.output_item.added", "item": function_call(READ)}, "output_index: is null"),
            (whole(0, {"type": "x_call", "name": 7})[1], "name: is"),
        ],
    )
    def test_what_is_no_stream_of_this_api_is_unreadable(self, sent: Json, message: str) -> None:
        with pytest.raises(ApiFormatError, match=message):
            API.stream({}, refusing()).feed(event(sent))


class TestCut:
    def test_a_text_ends_as_one_that_reached_its_limit(self) -> None:
        stream = API.stream({}, refusing())
        output = stream.feed(named(TEXT[:5])) + stream.cut()
        final = accumulated(output)
        assert (final.status, final.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert (final.output_text, final.output[0].status) == ("Hello", "incomplete")
        assert types(output)[5:] == ["output_text.done", "content_part.done", "output_item.done", "incomplete"]
        assert numbers(output) == list(range(9))

    def test_a_refusal_and_reasoning_are_ended_too(self) -> None:
        refusal = {"type": "response.refusal.delta", "output_index": 1, "content_index": 0, "delta": "I ca"}
        (reasoning, _), (message, _) = whole(0, {"type": "reasoning"}), whole(1, {**says(""), "content": []})
        stream = API.stream({}, refusing())
        final = accumulated(stream.feed(named(stream_of([reasoning, message, refusal])[:-1])) + stream.cut())
        assert [one.type for one in final.output] == ["reasoning", "message"]
        assert final.output[1].content[0].refusal == "I ca"

    def test_before_anything_it_is_an_empty_response_and_after_the_end_adds_nothing(self) -> None:
        final = accumulated(API.stream({"model": "gpt-4.1"}, refusing()).cut())
        assert (final.model, final.status, final.output) == ("gpt-4.1", "incomplete", [])
        assert passed(API, named(TEXT), refusing())[1].cut() == b""
