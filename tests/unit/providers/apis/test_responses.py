import copy
import json

import openai
import pytest
from tests.provider_streams import Json, canned, documents, named
from tests.unit.providers.apis.response_shapes import (
    API,
    DELETE,
    HELLO,
    OUTPUT,
    READ,
    TEXT,
    USED,
    client,
    function_call,
    request,
    response,
    says,
)

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, InputMessage, ToolAnswer


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

    def test_a_text_is_what_the_user_says(self) -> None:
        assert API.read_request(request()).said == (InputMessage("user", "Hello"),)

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
        with pytest.raises(ApiFormatError, match=message):
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
        with pytest.raises(ApiFormatError, match=message):
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
