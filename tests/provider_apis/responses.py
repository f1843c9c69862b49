"""OpenAI's responses: requests, replies and streams from as little as a test wants to say, and their reader."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.apis.responses import Responses
from passgate.tasks.providers.exchange import AskedCall
from tests.provider_streams import Canned, Json, canned, documents
from tests.upstream_shapes import CREATED, Answer, Call, named_event

API: Api = Responses()
MODEL = "gpt-4.1-2025-04-14"
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
        "model": MODEL,
        "output": list(output),
        "usage": USAGE,
        "previous_response_id": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **fields,
    }


def says(text: str, number: int = 0) -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant", "content": [part]}


def function_call(call: AskedCall) -> Json:
    asked = {"call_id": call.call_id, "name": call.tool, "arguments": json.dumps(dict(call.arguments))}
    return {"type": "function_call", "id": f"fc_{call.call_id}", **asked, "status": "completed"}


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
    return _numbered(BEGUN, items, {"type": last, "response": response(*output, status=last.removeprefix("response."))})


def _numbered(begun: Json, items: Iterable[Json], last: Json) -> list[Json]:
    first = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    return [{**one, "sequence_number": number} for number, one in enumerate([*first, *items, last])]


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


def _named(item: Json, answer: Answer) -> Json:
    """A call as Codex is asked for one: it has the tools of an MCP server in a namespace."""
    spaces = [tool["name"] for tool in answer.request.get("tools") or () if tool.get("type") == "namespace"]
    space = next((one for one in spaces if item["name"].startswith(f"{one}__")), None)
    return item if space is None else {**item, "namespace": space, "name": item["name"].removeprefix(f"{space}__")}


def _items(answer: Answer) -> list[Json]:
    return [
        _named(function_call(AskedCall(call_id, part.tool, part.arguments)), answer)
        if isinstance(part, Call)
        else {**says("".join(part.pieces)), "id": f"msg_{answer.number}_{number}"}
        for number, (call_id, part) in enumerate(answer.parts)
    ]


def body(answer: Answer, status: str = "completed") -> Json:
    told, done = answer.says, status == "completed"
    usage = {
        "input_tokens": told.tokens_in,
        "output_tokens": told.tokens_out,
        "input_tokens_details": {"cached_tokens": told.cached},
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": told.tokens_in + told.tokens_out,
    }
    return response(
        *(_items(answer) if done else ()),
        id=f"resp_{answer.number}",
        created_at=CREATED,
        status=status,
        model=answer.model,
        instructions=answer.request.get("instructions"),
        tools=answer.request.get("tools") or [],
        metadata={},
        temperature=1.0,
        top_p=1.0,
        usage=usage if done and told.says_usage else None,
    )


def events(answer: Answer) -> Iterator[bytes]:
    items: list[Json] = []
    for index, (item, part) in enumerate(zip(_items(answer), answer.plan, strict=True)):
        items += (call_events if isinstance(part, Call) else message_events)(index, item, *part.pieces)
    last = {"type": "response.completed", "response": body(answer)}
    return map(named_event, _numbered(body(answer, "in_progress"), items, last))


def read(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
    text, given, items, last = "", dict[int, str](), list[Json](), -1
    final: Json = {}
    for one in documents(output):
        assert one["sequence_number"] > last
        last = one["sequence_number"]
        match one["type"]:
            case "response.output_text.delta":
                text += one["delta"]
            case "response.function_call_arguments.delta":
                given[one["output_index"]] = given.get(one["output_index"], "") + one["delta"]
            case "response.output_item.done":
                assert one["output_index"] == len(items)
                items.append(one["item"])
            case "response.completed" | "response.incomplete":
                final = one["response"]
    assert final["output"] == items
    tools = {n: item for n, item in enumerate(items) if item["type"] == "function_call"}
    assert {n: tool["arguments"] for n, tool in tools.items()} == given
    asked = [AskedCall(one["call_id"], one["name"], json.loads(one["arguments"])) for one in tools.values()]
    return text, asked, list(range(len(items))), None


def client(server: Canned) -> Any:
    import openai

    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any")


def ask(sdk: Any, *, stream: bool = False) -> Any:
    return sdk.responses.create(model="m", input="Hello", stream=stream)


def accumulated(stream: bytes) -> Any:
    """The response that OpenAI's own client makes of a stream."""
    with (
        canned(stream) as server,
        client(server) as sdk,
        sdk.responses.stream(model="gpt-4.1", input="Hello") as events,
    ):
        return next(one.response for one in events if one.type in {"response.completed", "response.incomplete"})


def types(output: bytes) -> list[str]:
    return [one["type"].removeprefix("response.") for one in documents(output)]


def numbers(output: bytes) -> list[int]:
    return [one["sequence_number"] for one in documents(output)]
