"""Anthropic's messages: requests, replies and streams from as little as a test wants to say, and their reader."""

import json
from collections.abc import Iterator
from typing import Any

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.apis.messages import Messages
from passgate.tasks.providers.exchange import AskedCall
from tests.provider_streams import Canned, Json, canned, documents
from tests.upstream_shapes import Answer, Call, named_event

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


def tool_use(call_id: str, name: str, /, **given: Any) -> Json:
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


def _usage(answer: Answer, tokens_out: int) -> Json:
    says = answer.says
    return {
        "input_tokens": says.tokens_in - says.cached - says.cache_write,
        "cache_creation_input_tokens": says.cache_write,
        "cache_creation": {"ephemeral_1h_input_tokens": says.hour_writes},
        "cache_read_input_tokens": says.cached,
        "output_tokens": tokens_out,
    }


def _without_usage(answer: Answer, document: Json) -> Json:
    return {key: value for key, value in document.items() if key != "usage" or answer.says.says_usage}


def body(answer: Answer) -> Json:
    blocks = [
        tool_use(call_id, part.tool, **part.arguments)
        if isinstance(part, Call)
        else {"type": "text", "text": "".join(part.pieces)}
        for call_id, part in answer.parts
        if isinstance(part, Call) or part.pieces
    ]
    usage, reason = _usage(answer, answer.says.tokens_out), "tool_use" if answer.calls else "end_turn"
    whole = message(*blocks, reason=reason, id=f"msg_{answer.number}", model=answer.model, usage=usage)
    return _without_usage(answer, whole)


def events(answer: Answer) -> Iterator[bytes]:
    begun = {**body(answer), "content": [], "stop_reason": None, "usage": _usage(answer, 1)}
    told: list[Json] = [{"type": "message_start", "message": _without_usage(answer, begun)}, PING]
    for index, (call_id, part) in enumerate((call_id, part) for call_id, part in answer.parts if part.pieces):
        is_call = isinstance(part, Call)
        told += call(index, tool_use(call_id, part.tool), *part.pieces) if is_call else text(index, *part.pieces)
    last = end("tool_use" if answer.calls else "end_turn", output_tokens=answer.says.tokens_out)
    return map(named_event, [*told, *(_without_usage(answer, one) for one in last)])


def read(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
    blocks: list[Json] = []
    indices, reason = [], None
    for one in documents(output):
        match one["type"]:
            case "content_block_start":
                indices.append(one["index"])
                blocks.append({**one["content_block"], "given": ""})
            case "content_block_delta":
                delta = one["delta"]
                blocks[one["index"]]["given"] += delta.get("text", "") + delta.get("partial_json", "")
            case "content_block_stop":
                assert one["index"] == len(blocks) - 1
            case "message_delta":
                reason = one["delta"]["stop_reason"]
    text = "".join(block["given"] for block in blocks if block["type"] == "text")
    tools = [block for block in blocks if block["type"] == "tool_use"]
    return text, [AskedCall(one["id"], one["name"], json.loads(one["given"])) for one in tools], indices, reason


def client(server: Canned) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=server.url, api_key="any")


def ask(sdk: Any, *, stream: bool = False) -> Any:
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
