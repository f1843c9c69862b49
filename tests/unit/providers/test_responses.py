import copy
import itertools
import json
from collections.abc import Iterable
from typing import Any

import openai
import pytest
from tests.provider_streams import Canned, Json, canned, documents, event, named, passed, refusing

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis import OPENAI_APIS
from passgate.tasks.providers.exchange import Api, AskedCall, Said, ToolAnswer, UnreadableError

API: Api = OPENAI_APIS[1]
USAGE = {
    "input_tokens": 328,
    "input_tokens_details": {"cached_tokens": 256, "cache_write_tokens": 8},
    "output_tokens": 52,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 380,
}
USED = Usage(tokens_in=328, tokens_cached=256, tokens_cache_write=8, tokens_out=52)
READ = AskedCall("call_a", "read", {"path": "a"})
DELETE = AskedCall("call_b", "delete", {"path": "b"})


def request(given: Any = "Hello", **fields: Any) -> Json:
    return {"model": "gpt-4.1", "input": given, **fields}


def response(*output: Json, **fields: Any) -> Json:
    return {
        "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
        "object": "response",
        "created_at": 1741476542,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": "gpt-4.1-2025-04-14",
        "output": list(output),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
        **fields,
    }


def says(text: str, number: int = 0) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant", "content": [part]}


def function_call(call: AskedCall) -> Json:
    return {
        "type": "function_call",
        "id": f"fc_{call.call_id}",
        "call_id": call.call_id,
        "name": call.tool,
        "arguments": json.dumps(dict(call.arguments)),
        "status": "completed",
    }


def message_events(index: int, item: Json, *pieces: str) -> list[Json]:
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    (part,) = item["content"]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *[{"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in pieces],
        {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def call_events(index: int, item: Json, *pieces: str) -> list[Json]:
    place = {"item_id": item["id"], "output_index": index}
    begun = {**item, "arguments": "", "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *[{"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in pieces],
        {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


BEGUN = response(status="in_progress", usage=None)


def stream_of(items: Iterable[Json], *output: Json, last: str = "response.completed") -> list[Json]:
    """A whole stream, its events numbered."""
    events = [
        {"type": "response.created", "response": BEGUN},
        {"type": "response.in_progress", "response": BEGUN},
        *items,
        {"type": last, "response": response(*output, status=last.removeprefix("response."))},
    ]
    return [{**one, "sequence_number": number} for number, one in enumerate(events)]


HELLO = says("Hello there")
TEXT = stream_of(message_events(0, HELLO, "Hello", " there"), HELLO)
OUTPUT = [says("Okay."), function_call(READ), function_call(DELETE), says("Then?", 3)]
CALLS = stream_of(
    [
        *message_events(0, OUTPUT[0], "Okay."),
        *call_events(1, OUTPUT[1], '{"path": ', '"a"}'),
        *call_events(2, OUTPUT[2], '{"path": "b"}'),
        *message_events(3, OUTPUT[3], "Then?"),
    ],
    *OUTPUT,
)


def client(server: Canned) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any")


def accumulated(stream: bytes) -> Any:
    """The response that OpenAI's own client makes of a stream."""
    with (
        canned(stream) as server,
        client(server) as sdk,
        sdk.responses.stream(model="gpt-4.1", input="Hello") as events,
    ):
        return next(one.response for one in events if one.type in {"response.completed", "response.incomplete"})


def numbers(output: bytes) -> list[int]:
    return [one["sequence_number"] for one in documents(output)]


class TestRequest:
    def test_the_whole_context_is_read(self) -> None:
        read = API.read_request(
            request(
                [
                    {"role": "developer", "content": "In French."},
                    {
                        "type": "message",
                        "role": "user",
                        "content": [
                            {"type": "input_text", "text": "What is this?"},
                            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                            {"type": "input_file", "file_id": "file_1"},
                        ],
                    },
                    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"},
                    says("I look."),
                    {"role": "assistant", "content": "Yes."},
                    function_call(READ),
                    {"type": "function_call_output", "call_id": "call_a", "output": "nothing"},
                    {
                        "type": "custom_tool_call_output",
                        "call_id": "call_c",
                        "output": [{"type": "input_text", "text": "done"}, {"type": "input_image", "file_id": "f"}],
                    },
                    {"type": "local_shell_call_output", "id": "call_d", "output": '{"stdout": ""}'},
                    {
                        "type": "apply_patch_call_output",
                        "call_id": "call_e",
                        "status": "failed",
                        "output": "no such file",
                    },
                    {"type": "computer_call_output", "call_id": "call_f", "output": {"type": "computer_screenshot"}},
                    {"type": "shell_call_output", "call_id": "call_g", "output": [{"stdout": "x", "stderr": ""}]},
                    {"type": "item_reference", "id": "msg_7"},
                ],
                instructions="Be short.",
                max_output_tokens=100,
                stream=True,
            )
        )
        assert (read.model, read.stream, read.max_tokens_out, read.continues) == ("gpt-4.1", True, 100, False)
        assert read.said == (
            Said("system", "Be short."),
            Said("system", "In French."),
            Said("user", "What is this?\n[image]\n[file]"),
        )
        assert read.answers == (
            ToolAnswer("call_a", "nothing", None),
            ToolAnswer("call_c", "done\n[image]", None),
            ToolAnswer("call_d", '{"stdout": ""}', None),
            ToolAnswer("call_e", "no such file", True),
            ToolAnswer("call_f", "[image]", None),
            ToolAnswer("call_g", [{"stdout": "x", "stderr": ""}], None),
        )

    def test_a_text_is_what_the_user_says(self) -> None:
        assert API.read_request(request()).said == (Said("user", "Hello"),)

    @pytest.mark.parametrize("field", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
    def test_a_context_that_the_provider_holds_goes_on(self, field: Json) -> None:
        assert API.read_request({"model": "gpt-4.1", **field}).continues

    def test_what_is_counted_is_text_and_neither_files_nor_what_is_encrypted(self) -> None:
        reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "A" * 1000}
        image = {"role": "user", "content": [{"type": "input_image", "image_url": "A" * 1000}]}
        assert API.read_request(request([reasoning, image])).characters < 100
        tools = [{"type": "function", "name": "read", "description": "Reads."}]
        assert API.read_request(request(tools=tools, instructions="Be short.")).characters >= len(
            "HelloreadReads.Be short."
        )

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
        with pytest.raises(UnreadableError, match=message):
            API.read_request(body)


class TestPreparedRequest:
    def test_nothing_to_change_changes_nothing(self) -> None:
        body = request(stream=True, max_output_tokens=5)
        assert API.prepared(body, model=None, max_tokens_out=None) is body
        assert API.prepared(body, model="gpt-4.1", max_tokens_out=5) is body
        assert API.prepared(request(), model=None, max_tokens_out=5) == request()

    def test_model_and_limit_are_set_in_a_copy(self) -> None:
        body = request(max_output_tokens=50)
        sent = API.prepared(body, model="other", max_tokens_out=16)
        assert sent == {"model": "other", "input": "Hello", "max_output_tokens": 16}
        assert body == request(max_output_tokens=50)


class TestReply:
    def test_text_calls_usage_and_model_are_read(self) -> None:
        reply = API.read_reply(response({"type": "reasoning", "id": "rs_1", "summary": []}, *OUTPUT))
        assert (reply.text, reply.calls) == ("Okay.Then?", (READ, DELETE))
        assert (reply.usage, reply.model) == (USED, "gpt-4.1-2025-04-14")

    @pytest.mark.parametrize(
        ("item", "call"),
        [
            ({"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "x"}, ("c", "sql", {"input": "x"})),
            (
                {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
                ("c", "local_shell", {"type": "exec", "command": ["ls"]}),
            ),
            (
                {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
                ("c", "shell", {"commands": ["ls"]}),
            ),
            (
                {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
                ("c", "apply_patch", {"type": "delete_file", "path": "a"}),
            ),
            (
                {"type": "computer_call", "call_id": "c", "actions": [{"type": "screenshot"}]},
                ("c", "computer", {"actions": [{"type": "screenshot"}]}),
            ),
            (
                {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "q"}},
                ("w", "web_search", {"type": "search", "query": "q"}),
            ),
            ({"type": "file_search_call", "id": "f", "queries": ["q"]}, ("f", "file_search", {"queries": ["q"]})),
            ({"type": "code_interpreter_call", "id": "i", "code": "1"}, ("i", "code_interpreter", {"code": "1"})),
            ({"type": "image_generation_call", "id": "i", "result": "AAAA"}, ("i", "image_generation", {})),
            (
                {"type": "mcp_call", "id": "m", "name": "roll", "server_label": "dice", "arguments": '{"n": 2}'},
                ("m", "roll", {"n": 2}),
            ),
            ({"type": "mcp_approval_request", "id": "m", "name": "roll", "arguments": "{}"}, ("m", "roll", {})),
            ({"type": "tool_search_call", "call_id": "t", "arguments": {"q": 1}}, ("t", "tool_search", {"q": 1})),
            ({"type": "program", "id": "p", "call_id": "c", "code": "f()"}, ("c", "program", {"code": "f()"})),
            ({"type": "function_call", "name": "read", "arguments": "{}"}, ("output[0]", "read", {})),
        ],
    )
    def test_every_kind_of_call_is_one(self, item: Json, call: tuple[str, str, Json]) -> None:
        assert API.read_reply(response(item)).calls == (AskedCall(*call),)

    def test_a_call_that_was_approved_is_not_another_one(self) -> None:
        approved = {"type": "mcp_call", "id": "m", "approval_request_id": "a", "name": "roll", "arguments": "{}"}
        assert API.read_reply(response(approved)).calls == ()
        read = API.read_request(request([{**approved, "output": "4"}, {**approved, "error": {"message": "?"}}]))
        assert read.answers == (ToolAnswer("a", "4", False), ToolAnswer("a", {"message": "?"}, True))

    def test_a_refusal_is_text(self) -> None:
        refusal = {**says(""), "content": [{"type": "refusal", "refusal": "No."}]}
        assert API.read_reply(response(refusal)).text == "No."

    def test_a_reply_that_failed_is_still_one(self) -> None:
        failed = response(status="failed", error={"code": "server_error", "message": "?"}, usage=None)
        assert API.read_reply(failed).usage == Usage()

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
        with pytest.raises(UnreadableError, match=message):
            API.read_reply(body)


class TestReplyWithoutCalls:
    body = response(*OUTPUT)

    def test_the_others_stay(self) -> None:
        original = copy.deepcopy(self.body)
        assert API.without_calls(self.body, {"call_b"}) == {**original, "output": [*OUTPUT[:2], OUTPUT[3]]}
        assert API.without_calls(self.body, {"call_a", "call_b"})["output"] == [OUTPUT[0], OUTPUT[3]]
        assert self.body == original

    def test_a_call_that_was_run_goes_with_its_result(self) -> None:
        shell = {"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}}
        result = {"type": "shell_call_output", "id": "o", "call_id": "c", "output": []}
        assert API.without_calls(response(shell, result, HELLO), {"c"})["output"] == [HELLO]

    def test_it_is_the_same_object_when_no_call_is_meant(self) -> None:
        assert API.without_calls(self.body, {"call_z", "msg_0"}) is self.body


class TestStream:
    def test_text_goes_on_at_once_byte_for_byte(self) -> None:
        stream = API.stream({}, refusing())
        begun, ended = [], []
        for document in TEXT:
            sent = event(document, document["type"])
            assert stream.feed(sent) == sent
            begun.append(stream.started)
            ended.append(stream.ended)
        assert begun == [False] * 4 + [True] * 6
        assert ended == [False] * 9 + [True]
        assert (stream.reply.text, stream.reply.model) == ("Hello there", "gpt-4.1-2025-04-14")
        assert (stream.reply.usage, stream.characters) == (USED, len("Hello there"))

    def test_reasoning_counts_as_written(self) -> None:
        stream = API.stream({}, refusing())
        stream.feed(named([{"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm"}]))
        assert (stream.started, stream.reply.text, stream.characters) == (True, "", 2)

    def test_calls_are_held_back_until_their_item_is_done_and_asked_about_once(self) -> None:
        withheld = refusing()
        stream = API.stream({}, withheld)
        sent = [event(document, document["type"]) for document in CALLS]
        got = [stream.feed(one) for one in sent]
        assert b"".join(got) == b"".join(sent)
        assert got[:8] == sent[:8]
        assert got[8:12] == [b""] * 4
        assert got[12] == b"".join(sent[8:13])
        assert withheld.asked == [READ, DELETE]
        assert stream.reply.calls == (READ, DELETE)
        assert stream.reply.text == "Okay.Then?"

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

    def test_without_any_call_left_there_is_only_text(self) -> None:
        output, _ = passed(API, named(CALLS), refusing("read", "delete"))
        assert accumulated(output).output_text == "Okay.Then?"
        assert b"call_" not in output

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
        events = [
            {"type": "response.output_item.added", "output_index": 0, "item": {**custom, "input": ""}},
            {"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "ctc_1", "delta": "DROP"},
            {"type": "response.custom_tool_call_input.done", "output_index": 0, "item_id": "ctc_1", "input": "DROP"},
            {"type": "response.output_item.done", "output_index": 0, "item": custom},
            {"type": "response.output_item.added", "output_index": 1, "item": shell},
            {"type": "response.output_item.done", "output_index": 1, "item": shell},
        ]
        withheld = refusing("sql", "local_shell")
        output, _ = passed(API, named(stream_of(events, custom, shell)), withheld)
        assert withheld.asked == [
            AskedCall("c", "sql", {"input": "DROP"}),
            AskedCall("d", "local_shell", {"command": ["rm"]}),
        ]
        assert [one["type"] for one in documents(output)] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]

    def test_what_came_of_a_call_that_is_taken_out_goes_with_it(self) -> None:
        shell = {"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}}
        result = {"type": "shell_call_output", "id": "o", "call_id": "c", "output": []}
        events = [
            {"type": f"response.output_item.{what}", "output_index": index, "item": item}
            for index, item in enumerate([shell, result])
            for what in ("added", "done")
        ]
        output, _ = passed(
            API, named(stream_of([*events, *message_events(2, HELLO)], shell, result, HELLO)), refusing("shell")
        )
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
        assert [item["type"] for item in documents(output)[-1]["response"]["output"]] == [
            "message",
            "function_call",
            "message",
        ]

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

    @pytest.mark.parametrize("last", ["response.completed", "response.incomplete", "response.failed"])
    def test_each_of_the_last_events_ends_it(self, last: str) -> None:
        assert passed(API, named(stream_of([], last=last)), refusing())[1].ended

    def test_the_last_event_may_leave_the_output_out(self) -> None:
        last = {**TEXT[-1], "response": {**response(), "output": None}}
        _, stream = passed(API, named([*TEXT[:-1], last]), refusing())
        assert (stream.ended, stream.reply.text) == (True, "Hello there")

    def test_pieces_and_items_without_an_index_are_text(self) -> None:
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
            (
                {"type": "response.output_item.done", "output_index": 0, "item": {"type": "x_call", "name": 7}},
                "name: is",
            ),
        ],
    )
    def test_what_is_no_stream_of_this_api_is_unreadable(self, sent: Json, message: str) -> None:
        with pytest.raises(UnreadableError, match=message):
            API.stream({}, refusing()).feed(event(sent))


class TestCut:
    def test_a_text_ends_as_one_that_reached_its_limit(self) -> None:
        stream = API.stream({}, refusing())
        output = stream.feed(named(TEXT[:5])) + stream.cut()
        final = accumulated(output)
        assert (final.status, final.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert (final.output_text, final.output[0].status) == ("Hello", "incomplete")
        assert [one["type"] for one in documents(output)[5:]] == [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.incomplete",
        ]
        assert numbers(output) == list(range(9))

    def test_a_call_that_is_not_whole_is_left_out_and_one_that_is_stays(self) -> None:
        stream = API.stream({}, refusing())
        until = next(n for n, one in enumerate(CALLS) if one.get("output_index") == 2) + 2
        output = stream.feed(named(CALLS[:until])) + stream.cut()
        final = accumulated(output)
        assert [one.type for one in final.output] == ["message", "function_call"]
        assert final.output[1].call_id == "call_a"
        assert b"call_b" not in output
        assert stream.reply.calls == (READ,)

    def test_an_item_has_the_index_that_the_agent_knows(self) -> None:
        stream = API.stream({}, refusing("read", "delete"))
        output = stream.feed(named(CALLS[:-4])) + stream.cut()
        assert [one["output_index"] for one in documents(output) if "output_index" in one][-1] == 1
        assert accumulated(output).output_text == "Okay.Then?"

    def test_a_refusal_and_reasoning_are_ended_too(self) -> None:
        refusal = {"type": "response.refusal.delta", "output_index": 1, "content_index": 0, "delta": "I ca"}
        events = [
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}},
            {"type": "response.output_item.added", "output_index": 1, "item": {**says(""), "content": []}},
            refusal,
        ]
        stream = API.stream({}, refusing())
        final = accumulated(stream.feed(named(stream_of(events)[:-1])) + stream.cut())
        assert [one.type for one in final.output] == ["reasoning", "message"]
        assert final.output[1].content[0].refusal == "I ca"

    def test_before_anything_has_come_it_is_an_empty_response(self) -> None:
        final = accumulated(API.stream({"model": "gpt-4.1"}, refusing()).cut())
        assert (final.model, final.status, final.output) == ("gpt-4.1", "incomplete", [])

    def test_after_the_end_nothing_is_added(self) -> None:
        assert passed(API, named(TEXT), refusing())[1].cut() == b""


class TestErrors:
    def test_the_client_library_raises_them_at_once(self) -> None:
        body = json.dumps(API.error_body(403, "budget_exceeded", "max_steps is used up")).encode()
        with canned(body, status=403) as server, client(server) as sdk:
            with pytest.raises(openai.PermissionDeniedError, match="max_steps is used up") as raised:
                sdk.responses.create(model="m", input="Hello")
            assert raised.value.code == "budget_exceeded"
            assert server.count == 1

    def test_the_client_library_raises_them_in_a_stream(self) -> None:
        body = named(TEXT[:5]) + API.error_event("provider_unavailable", "It broke off.")
        with canned(body) as server, client(server) as sdk:
            stream = sdk.responses.create(model="m", input="Hello", stream=True)
            with pytest.raises(openai.APIError, match=r"It broke off\.") as raised:
                list(stream)
            assert raised.value.code == "provider_unavailable"

    def test_an_event_has_the_keys_that_are_documented(self) -> None:
        (error,) = documents(API.error_event("a_code", "why"))
        assert (error["type"], error["code"], error["message"], error["param"]) == ("error", "a_code", "why", None)
