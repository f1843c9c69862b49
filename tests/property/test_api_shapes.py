"""Replies, requests and streams of any shape are read, or found unreadable: nothing else goes wrong."""

import copy
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.property.api_sides import CHAT, GEMINI, MESSAGES, RESPONSES, Plan, Side, each_side, plans, scalars
from tests.property.documents import changed, nested, paths_of
from tests.provider_apis import chat, gemini, messages, responses
from tests.provider_streams import Json, Refusing, documents, event

from passgate.tasks.providers.exchange import ApiFormatError

values = nested(scalars, st.text(max_size=5), most=6)

REPLIES: dict[str, Json] = {
    CHAT.name: chat.completion({"content": "a", "tool_calls": [chat.tool_call("call_0", "read")]}, "tool_calls"),
    MESSAGES.name: messages.message(
        {"type": "text", "text": "a"},
        messages.tool_use("call_0", "read"),
        messages.server_tool_use(),
        reason="tool_use",
    ),
    RESPONSES.name: responses.response(responses.says("a"), responses.function_call(responses.READ)),
    GEMINI.name: gemini.reply(
        *({"text": "a"}, {"text": "b", "thought": True}, gemini.call("read")),
        *({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
        *({"toolCall": {"id": "t", "toolType": "MAPS", "args": {}}}, {"toolResponse": {"id": "t", "response": {}}}),
        promptFeedback={},
    ),
}
PARTS = [{"type": "text", "text": "a"}, {"type": "image"}]
REQUESTS: dict[str, Json] = {
    CHAT.name: {
        "model": "x",
        "stream": True,
        "stream_options": {"include_usage": False},
        "max_tokens": 7,
        "messages": [{"role": "user", "content": PARTS}, {"role": "tool", "tool_call_id": "call_0", "content": "b"}],
        "tools": [{"type": "function", "function": {"name": "read"}}],
    },
    MESSAGES.name: {
        "model": "x",
        "max_tokens": 7000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "system": PARTS,
        "messages": [
            {"role": "user", "content": PARTS},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": PARTS}]},
        ],
    },
    RESPONSES.name: {
        "model": "x",
        "max_output_tokens": 7,
        "instructions": "a",
        "input": [
            {"role": "user", "content": PARTS},
            {"type": "function_call_output", "call_id": "call_0", "output": PARTS},
            {"type": "apply_patch_call_output", "call_id": "call_1", "output": "b", "status": "failed"},
        ],
    },
}
REQUESTS[GEMINI.name] = {
    "systemInstruction": {"parts": [{"text": "a"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "a"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
        {"parts": [{"functionResponse": {"name": "read", "response": {"output": "b"}}}, {"file_data": {}}]},
    ],
    "generation_config": {"max_output_tokens": 7, "candidateCount": 1},
}


def one_change(value: Json, data: st.DataObject) -> Any:
    place = data.draw(st.sampled_from(paths_of(value)[1:]))
    return changed(value, place, data.draw(values))


@each_side
@given(data=st.data())
def test_a_reply_of_any_shape_is_read_or_unreadable(side: Side, data: st.DataObject) -> None:
    body = one_change(REPLIES[side.api.name], data)
    original = copy.deepcopy(body)
    try:
        reply = side.api.read_reply(body)
    except ApiFormatError:
        return
    left = side.api.remove_calls(body, {call.call_id for call in reply.calls})
    assert body == original
    assert side.api.read_reply(left).calls == ()
    assert (left is body) == (not reply.calls)


@each_side
@given(data=st.data())
def test_a_request_of_any_shape_is_read_or_unreadable(side: Side, data: st.DataObject) -> None:
    body = one_change(REQUESTS[side.api.name], data)
    original = copy.deepcopy(body)
    try:
        request = side.api.read_request(body)
        sent = side.api.prepare(body, model="y", max_tokens_out=5)
    except ApiFormatError:
        return
    assert body == original
    again = side.api.read_request(sent)
    assert again.model == (side.api.path_model or "y")
    assert (again.said, again.answers) == (request.said, request.answers)
    assert again.max_tokens_out is None if request.max_tokens_out is None else again.max_tokens_out <= 5  # type: ignore[operator]


@each_side
@given(plan=plans.filter(bool), data=st.data())
def test_a_stream_of_any_shape_is_read_or_unreadable(side: Side, plan: Plan, data: st.DataObject) -> None:
    sent = documents(side.stream(plan, []))
    number = data.draw(st.integers(0, len(sent) - 1))
    sent[number] = one_change(sent[number], data)
    stream = side.api.stream({}, Refusing(frozenset({"delete"})))
    with suppress(ApiFormatError):
        stream.feed(b"".join(map(event, sent)))
        stream.cut()


@each_side
@given(pieces=st.lists(st.binary(max_size=20) | st.sampled_from([b"data: ", b"{}", b"[DONE]", b"\n\n", b"\r"])))
def test_any_bytes_are_passed_on_or_unreadable(side: Side, pieces: list[bytes]) -> None:
    stream = side.api.stream({}, Refusing())
    try:
        output = b"".join([stream.feed(piece) for piece in pieces])
    except ApiFormatError:
        return
    assert b"".join(pieces).startswith(output)
