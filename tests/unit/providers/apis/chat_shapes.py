"""Requests and replies of chat completions, made from as little as a test wants to say."""

from typing import Any

import openai
from tests.provider_streams import Canned, Json, canned

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.exchange import AskedCall

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


def client(server: Canned) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="any")


def ask(sdk: openai.OpenAI, *, stream: bool = False) -> Any:
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
