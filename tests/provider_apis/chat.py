"""OpenAI's chat completions: requests, replies and streams from as little as a test wants to say, and their reader."""

import json
from collections.abc import Iterator
from typing import Any

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.exchange import AskedCall
from tests.provider_streams import Canned, Json, canned, documents
from tests.upstream_shapes import CREATED, Answer, Text, event

API: Api = ChatCompletions()
USAGE = {
    "prompt_tokens": 82,
    "completion_tokens": 17,
    "total_tokens": 99,
    "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
USED = Usage(tokens_in=82, tokens_cached=64, tokens_out=17)
BOTH = {"stream_options": {"include_usage": True}}


def request(*messages: Json, **fields: Any) -> Json:
    return {"model": "gpt-4.1", "messages": list(messages) or [{"role": "user", "content": "Hello"}], **fields}


def tool_call(call_id: str, name: str, arguments: str = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(message: Json, reason: str = "stop", **fields: Any) -> Json:
    said = {"role": "assistant", "content": None, "refusal": None, "annotations": [], **message}
    return {
        "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
        "object": "chat.completion",
        "created": 1741570283,
        "model": "gpt-4.1-2025-04-14",
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reason}],
        "usage": USAGE,
        "service_tier": "default",
        **fields,
    }


def chunk(delta: Json, reason: str | None = None, **fields: Any) -> Json:
    return {
        "id": "chatcmpl-123",
        "object": "chat.completion.chunk",
        "created": 1694268190,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
        **fields,
    }


def piece(index: int | None, arguments: str = "", call_id: str | None = None, name: str | None = None) -> Json:
    """A piece of a tool call, the first one with an id and a name."""
    given: Json = {} if index is None else {"index": index}
    if call_id is not None:
        given |= {"id": call_id, "type": "function"}
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {**given, "function": function}


def called(
    index: int | None, arguments: str = "", call_id: str | None = None, name: str | None = None, **delta: Any
) -> Json:
    """A chunk with a piece of a tool call."""
    return chunk({**delta, "tool_calls": [piece(index, arguments, call_id, name)]})


CALLED = chunk({}, "tool_calls")
USAGE_CHUNK = {**chunk({}), "choices": [], "usage": USAGE}
TEXT = [
    chunk({"role": "assistant", "content": "", "refusal": None}),
    chunk({"content": "Hello"}),
    chunk({"content": " there"}),
    chunk({}, "stop"),
]
TWO_CALLS = [
    called(0, "", "call_a", "read", role="assistant", content=None),
    called(0, '{"path"'),
    called(1, "", "call_b", "delete"),
    chunk({"tool_calls": [piece(1, '{"path":'), piece(0, ': "a"}')]}),
    called(1, ' "b"}'),
    CALLED,
]
READ = AskedCall("call_a", "read", {"path": "a"})
DELETE = AskedCall("call_b", "delete", {"path": "b"})


def embedding(answer: Answer) -> Json:
    """POST /v1/embeddings."""
    tokens = answer.says.tokens_in
    data = [{"object": "embedding", "index": 0, "embedding": [0.0, 1.0]}]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": answer.model, "usage": usage}


def _head(answer: Answer) -> Json:
    return {"id": f"chatcmpl-{answer.number}", "created": CREATED, "model": answer.model}


def _usage(answer: Answer) -> Json | None:
    says = answer.says
    used = {"prompt_tokens": says.tokens_in, "completion_tokens": says.tokens_out}
    used["total_tokens"] = says.tokens_in + says.tokens_out
    return {**used, "prompt_tokens_details": {"cached_tokens": says.cached}} if says.says_usage else None


def _calls(answer: Answer) -> list[Json]:
    return [tool_call(call_id, call.tool, "".join(call.pieces)) for call_id, call in answer.calls]


def body(answer: Answer) -> Json:
    calls = _calls(answer)
    message = {"content": answer.text or None} | ({"tool_calls": calls} if calls else {})
    return completion(message, "tool_calls" if calls else "stop", **_head(answer), usage=_usage(answer))


def events(answer: Answer) -> Iterator[bytes]:
    shown = {**_head(answer), **({"usage": None} if answer.wants_usage else {})}
    yield event(chunk({"role": "assistant", "content": ""}, **shown))
    for one in [one for part in answer.plan if isinstance(part, Text) for one in part.pieces]:
        yield event(chunk({"content": one}, **shown))
    waiting: list[list[Json]] = []
    for position, (whole, (_, call)) in enumerate(zip(_calls(answer), answer.calls, strict=True)):
        begin = {"index": position, **whole, "function": {**whole["function"], "arguments": ""}}
        waiting.append([begin, *(piece(position, one) for one in call.pieces)])
    for turn in [*answer.says.turns, *[0] * sum(map(len, waiting))]:
        left = [queue for queue in waiting if queue]
        if left:
            yield event(chunk({"tool_calls": [left[turn % len(left)].pop(0)]}, **shown))
    yield event(chunk({}, "tool_calls" if answer.calls else "stop", **shown))
    if answer.wants_usage and answer.says.says_usage:
        yield event(chunk({}, **_head(answer)) | {"choices": [], "usage": _usage(answer)})
    yield event("[DONE]")


def read(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
    """Text, calls, their indices and the reason to finish, as a client puts them together."""
    text, reason, entries = "", None, dict[int, Json]()
    for chunk in documents(output):
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
            for piece in choice["delta"].get("tool_calls", []):
                entry = entries.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                entry["id"] += piece.get("id", "")
                entry["name"] += piece["function"].get("name", "")
                entry["arguments"] += piece["function"]["arguments"]
    asked = [AskedCall(one["id"], one["name"], json.loads(one["arguments"])) for _, one in sorted(entries.items())]
    return text, asked, sorted(entries), reason


def client(server: Canned) -> Any:
    import openai

    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any")


def ask(sdk: Any, *, stream: bool = False) -> Any:
    messages: Any = [{"role": "user", "content": "Hello"}]
    return sdk.chat.completions.create(model="m", messages=messages, stream=stream)


def accumulated(stream: bytes) -> Any:
    """The completion that OpenAI's own client makes of a stream."""
    with canned(stream) as server, client(server) as sdk:
        messages: Any = [{"role": "user", "content": "Hello"}]
        with sdk.chat.completions.stream(model="gpt-4.1", messages=messages) as events:
            for _ in events:
                pass
            return events.get_final_completion()
