"""Requests and replies of Anthropic's messages, made from as little as a test wants to say."""

from typing import Any

import anthropic
from tests.provider_streams import Canned, Json, canned

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.apis.messages import Messages
from passgate.tasks.providers.exchange import AskedCall

API: Api = Messages()
MODEL = "claude-test-1"
"""No real one: the client library warns of those that end."""
CACHE = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 1000}
USED = Usage(tokens_in=1572, tokens_cached=1000, tokens_cache_write=100, tokens_out=89)
READ = AskedCall("toolu_a", "read", {"path": "a"})
DELETE = AskedCall("toolu_b", "delete", {"path": "b"})
SEARCH = AskedCall("srvtoolu_c", "web_search", {"query": "weather NYC today"})


def request(*messages: Json, **fields: Any) -> Json:
    said = list(messages) or [{"role": "user", "content": "Hello"}]
    return {"model": MODEL, "max_tokens": 1024, "messages": said, **fields}


def tool_use(call_id: str, name: str, **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def server_tool_use(**given: Any) -> Json:
    return {"type": "server_tool_use", "id": "srvtoolu_c", "name": "web_search", "input": given}


def message(*blocks: Json, reason: str | None = "end_turn", **fields: Any) -> Json:
    return {
        "id": "msg_014p7gG3wDgGV9EUtLvnow3U",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks),
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 472, **CACHE, "output_tokens": 89, "service_tier": "standard"},
        **fields,
    }


SEARCH_RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_c",
    "content": [{"type": "web_search_result", "title": "Weather", "url": "https://example.com", "page_age": None}],
}
BEGUN = message(reason=None, usage={"input_tokens": 472, **CACHE, "output_tokens": 2})
START = {"type": "message_start", "message": BEGUN}
PING = {"type": "ping"}
STOP = {"type": "message_stop"}


def block(index: int, content: Json, *deltas: Json) -> list[Json]:
    """The events of one content block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *pieces: str) -> list[Json]:
    return block(index, {"type": "text", "text": ""}, *[{"type": "text_delta", "text": piece} for piece in pieces])


def call(index: int, content: Json, *pieces: str) -> list[Json]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block(index, {**content, "input": {}}, *deltas)


def end(reason: str, **usage: int | None) -> list[Json]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 89, **usage}}, STOP]


TEXT = [START, PING, *text(0, "Hello", " there"), *end("end_turn")]
CALLS = [
    START,
    *text(0, "Okay."),
    *call(1, tool_use("toolu_a", "read"), "", '{"path":', ' "a"}'),
    *call(2, tool_use("toolu_b", "delete"), '{"path": "b"}'),
    *text(3, "Then?"),
    *end("tool_use"),
]
SEARCHED = [
    START,
    *text(0, "I search."),
    *call(1, server_tool_use(), '{"query": "weather', ' NYC today"}'),
    *block(2, SEARCH_RESULT),
    *text(3, "Sunny."),
    *end("end_turn"),
]


def client(server: Canned) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="any")


def ask(sdk: anthropic.Anthropic, *, stream: bool = False) -> Any:
    messages: Any = [{"role": "user", "content": "Hello"}]
    return sdk.messages.create(model=MODEL, max_tokens=9, messages=messages, stream=stream)


def accumulated(stream: bytes) -> Any:
    """The message that Anthropic's own client makes of a stream."""
    messages: Any = [{"role": "user", "content": "Hello"}]
    with (
        canned(stream) as server,
        client(server) as sdk,
        sdk.messages.stream(model=MODEL, max_tokens=9, messages=messages) as events,
    ):
        return events.get_final_message()
