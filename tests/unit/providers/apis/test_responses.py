import copy
from typing import Any

import pytest
from tests.provider_apis.responses import (
    API,
    DELETE,
    HELLO,
    OUTPUT,
    READ,
    USED,
    function_call,
    request,
    response,
    says,
)
from tests.provider_streams import Json, documents

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
        assert API.without_calls(self.body, {"call_b"}) == {**original, "output": [*OUTPUT[:2], OUTPUT[3]]}
        assert API.without_calls(self.body, {"call_a", "call_b"})["output"] == [OUTPUT[0], OUTPUT[3]]
        assert self.body == original
        assert API.without_calls(self.body, {"call_z", "msg_0"}) is self.body

    def test_a_call_that_was_run_goes_with_its_result(self) -> None:
        shell = {"type": "shell_call", "id": "s", "call_id": "c", "action": {"commands": ["ls"]}}
        result = {"type": "shell_call_output", "id": "o", "call_id": "c", "output": []}
        assert API.without_calls(response(shell, result, HELLO), {"c"})["output"] == [HELLO]


def test_an_event_of_an_error_has_the_keys_that_are_documented() -> None:
    (error,) = documents(API.error_event("a_code", "why"))
    assert (error["type"], error["code"], error["message"], error["param"]) == ("error", "a_code", "why", None)
