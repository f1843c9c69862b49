"""Gemini's API: what its requests, replies and streams say, and what is left of them without some calls."""

import json

import pytest
from tests.provider_apis.gemini import PATH, STREAM, api_at, call, reply, request, result
from tests.provider_streams import Json, documents, event, passed, refusing

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, InputMessage, ReplyError, ToolAnswer
from passgate.tasks.providers.registry import PROVIDERS


@pytest.mark.parametrize("path", [PATH, "v1/models/x:generateContent", "v1alpha/tunedModels/x-1:streamGenerateContent"])
def test_the_path_says_what_is_asked(path: str) -> None:
    asked = api_at(path).read_request(request())
    assert (asked.model, asked.stream) == (path.split("/")[2].split(":")[0], "stream" in path)
    assert api_at(path).target("other").split("?")[0] == path.replace(asked.model, "other")


@pytest.mark.parametrize("path", ["v1beta/models/x:embedContent", "v1beta/models/../x:generateContent", "v1beta/files"])
def test_other_paths_are_no_model_calls(path: str) -> None:
    assert PROVIDERS["gemini"].find_api(path) is None
    assert not PROVIDERS["gemini"].is_free("POST", path)
    assert PROVIDERS["gemini"].is_free("POST", PATH.replace("generateContent", "countTokens"))


@pytest.mark.parametrize(
    ("query", "is_array"), [("", True), ("alt=json", True), ("alt=sse", False), ("a=b&alt=sse", False)]
)
def test_a_stream_comes_as_events_however_the_agent_wants_it(query: str, is_array: bool) -> None:
    assert api_at(STREAM, query).answers_array == is_array
    assert api_at(STREAM, query).target().endswith("alt=sse")
    assert api_at(PATH, query).target() == (f"{PATH}?{query}" if query else PATH)


@pytest.mark.parametrize("snake", [False, True])
def test_a_request_says_its_limit_its_context_and_its_size(snake: bool) -> None:
    keys = ("system_instruction", "generation_config", "max_output_tokens") if snake else ()
    system, config, limit = keys or ("systemInstruction", "generationConfig", "maxOutputTokens")
    image = {"inlineData": {"mimeType": "image/png", "data": "A" * 5000}}
    body = request({"text": "See"}, image, **{system: {"parts": [{"text": "Be kind."}]}, config: {limit: 900}})
    asked = api_at().read_request(body)
    assert asked.said == (InputMessage("system", "Be kind."), InputMessage("user", "See\n[image]"))
    assert asked.max_tokens_out == 900
    assert asked.characters < 200
    sent = api_at().prepare(body, model="other", max_tokens_out=5)
    assert sent[config] == {limit: 5}
    assert "model" not in sent
    assert api_at().prepare(body, model=None, max_tokens_out=1000) is body


def test_more_than_one_reply_is_refused() -> None:
    with pytest.raises(ApiFormatError, match="candidateCount"):
        api_at().read_request(request(generationConfig={"candidateCount": 2}))


def test_results_go_to_their_calls_with_and_without_ids() -> None:
    body = request()
    body["contents"] += [
        {"role": "model", "parts": [call("read", "id-1"), call("read"), call("read"), call("list")]},
        {"role": "function", "parts": [result("read", {"output": "a"}), result("read", {"error": "no"})]},
        {"role": "user", "parts": [result("list", {"x": 1}), result("read", {"output": "c", "more": 1})]},
    ]
    asked = api_at().read_request(body)
    assert asked.said == (InputMessage("user", "Hello"),)
    assert asked.answers == (
        ToolAnswer("id-1", "a", is_error=False),
        ToolAnswer("read", {"error": "no"}, is_error=True),
        ToolAnswer("list", {"x": 1}, is_error=None),
        ToolAnswer("read#2", {"output": "c", "more": 1}, is_error=False),
    )


def test_a_reply_says_its_text_its_calls_and_its_usage() -> None:
    parts = ({"text": "hm", "thought": True}, {"text": "I "}, call("read", path="a"), {"text": "look."}, call("read"))
    told = api_at().read_reply(reply(*parts))
    assert (told.text, told.model) == ("I look.", "gemini-x-001")
    assert told.calls == (AskedCall("read", "read", {"path": "a"}), AskedCall("read#2", "read", {}))
    assert told.usage == Usage(tokens_in=12, tokens_cached=4, tokens_out=12)


def test_what_the_provider_has_run_goes_with_its_result() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "a"}}},
        {"toolResponse": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
    ]
    body = reply(*parts)
    assert [(one.tool, dict(one.arguments)) for one in api_at().read_reply(body).calls] == [
        ("code_execution", {"language": "PYTHON", "code": "1"}),
        ("google_search_web", {"q": "a"}),
    ]
    left = api_at().remove_calls(body, {"code_execution#1"})
    assert left["candidates"][0]["content"]["parts"] == parts[2:]
    stream, _ = passed(api_at(STREAM), b"".join(event(reply(part)) for part in parts), refusing("google_search_web"))
    kept = [one["candidates"][0]["content"]["parts"] for one in documents(stream)]
    assert kept == [[parts[0]], [parts[1]], [{"text": ""}], [{"text": ""}]]


def test_one_of_two_calls_without_ids_is_taken_out() -> None:
    body = reply(call("read", path="a"), call("read", path="b"))
    left = api_at().remove_calls(body, {"read#2"})
    assert left["candidates"][0]["content"]["parts"] == [call("read", path="a")]
    assert api_at().remove_calls(left, {"read"})["candidates"][0]["content"]["parts"] == [{"text": ""}]


@pytest.mark.parametrize(
    "body",
    [
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 5}},
        reply(reason="SAFETY"),
        reply({"text": "a"}, reason="RECITATION"),
    ],
)
def test_what_a_filter_stopped_is_no_fault_of_the_agent(body: Json) -> None:
    for read in (api_at().read_reply, lambda one: api_at(STREAM).stream({}, refusing()).feed(event(one))):
        with pytest.raises(ReplyError, match="the content filter stopped it") as caught:
            read(body)
        assert caught.value.refusal.blames_account("Hello")
        assert not caught.value.refusal.blames_request("Hello")


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "OTHER"])
def test_other_reasons_to_end_are_the_models_own(reason: str) -> None:
    assert api_at().read_reply(reply({"text": "a"}, reason=reason)).text == "a"


def test_a_stream_that_is_cut_does_not_know_what_was_written() -> None:
    stream = api_at(STREAM).stream({}, refusing())
    stream.feed(event(reply({"text": "a"}, reason=None)))
    assert stream.reply.usage == Usage(tokens_in=12, tokens_cached=4)
    assert documents(stream.cut())[0]["candidates"][0]["finishReason"] == "MAX_TOKENS"
    stream.feed(event(reply(usageMetadata=None)))
    assert stream.reply.usage.tokens_out == 12


def test_an_error_has_the_shape_that_client_libraries_read() -> None:
    error = api_at().error_body(400, "budget_exceeded", "over budget")["error"]
    assert (error["code"], error["status"], error["message"]) == (400, "INVALID_ARGUMENT", "over budget")
    assert error["details"][0]["reason"] == "budget_exceeded"
    assert json.loads(api_at().error_event("x", "y").removeprefix(b"data: "))["error"]["code"] == 500


def test_the_key_of_a_query_can_be_left_out() -> None:
    gemini, openai = PROVIDERS["gemini"], PROVIDERS["openai"]
    assert gemini.query_without_key("alt=sse&key=AIza&x=") == "alt=sse&x="
    assert gemini.query_without_key("alt=%73se") == "alt=%73se"
    assert openai.query_without_key("key=a") == "key=a"
