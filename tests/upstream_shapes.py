"""What a provider says, in the shapes of the four model APIs, whole or as events: the one description of them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
CREATED = 1_769_860_800


@dataclass(frozen=True)
class Text:
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    tool: str
    pieces: tuple[str, ...]
    """Of the JSON text of its arguments."""

    @property
    def arguments(self) -> Any:
        return json.loads("".join(self.pieces))


Plan = Sequence[Text | Call]
"""What a model says, in order."""


@dataclass(frozen=True)
class Says:
    """One reply of the model, for every API. `calls` are tools with their arguments."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    plan: Plan | None = None
    """In place of `text` and `calls`."""
    turns: Sequence[int] = ()
    """Whose piece comes next where an API mixes the pieces of several calls."""
    tokens_in: int = 100
    """All of them, those from and to the cache included."""
    tokens_out: int = 20
    cached: int = 0
    """Of `tokens_in`, read from the cache."""
    cache_write: int = 0
    """Of `tokens_in`, written to the cache: said by the messages API only."""
    hour_writes: int = 0
    """Of `cache_write`, kept for an hour."""
    says_usage: bool = True


@dataclass(frozen=True)
class Answer:
    """What is said in answer to one request."""

    says: Says
    number: int
    """Of the request, from 0: every id is made from it."""
    request: Json

    path: str = ""

    @property
    def model(self) -> str:
        named = re.search(r"/models/(.+):", self.path)
        return named[1] if named else str(self.request.get("model", "scripted-model"))

    @property
    def streams(self) -> bool:
        return bool(self.request.get("stream")) or ":stream" in self.path

    @property
    def wants_usage(self) -> bool:
        """Whether a streamed chat completion is to end with what it used."""
        return bool((self.request.get("stream_options") or {}).get("include_usage"))

    @property
    def plan(self) -> Plan:
        says = self.says
        if says.plan is not None:
            return says.plan
        calls = [Call(tool, tuple(pieces_of(json.dumps(given)))) for tool, given in says.calls]
        return [Text(tuple(pieces_of(says.text))), *calls] if says.text or not calls else calls

    @property
    def parts(self) -> list[tuple[str, Text | Call]]:
        """The plan, each call with its id."""
        count = iter(range(len(self.plan)))
        return [(f"call_{self.number}_{next(count)}" if isinstance(one, Call) else "", one) for one in self.plan]

    @property
    def calls(self) -> list[tuple[str, Call]]:
        return [(call_id, part) for call_id, part in self.parts if isinstance(part, Call)]

    @property
    def text(self) -> str:
        return "".join(piece for part in self.plan if isinstance(part, Text) for piece in part.pieces)


def pieces_of(text: str) -> list[str]:
    """A text as a model streams it, about a word at a time."""
    return re.findall(r"\s*\S+|\s+$", text)


def event(data: Json | str, name: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def named_event(data: Json) -> bytes:
    return event(data, data["type"])


# Chat completions


def chat_usage(says: Says) -> Json:
    return {
        "prompt_tokens": says.tokens_in,
        "completion_tokens": says.tokens_out,
        "total_tokens": says.tokens_in + says.tokens_out,
        "prompt_tokens_details": {"cached_tokens": says.cached},
    }


def chat_calls(answer: Answer) -> list[Json]:
    return [
        {"id": call_id, "type": "function", "function": {"name": call.tool, "arguments": "".join(call.pieces)}}
        for call_id, call in answer.calls
    ]


def embedding_body(answer: Answer) -> Json:
    """POST /v1/embeddings."""
    tokens = answer.says.tokens_in
    data = [{"object": "embedding", "index": 0, "embedding": [0.0, 1.0]}]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": answer.model, "usage": usage}


def chat_body(answer: Answer) -> Json:
    calls = chat_calls(answer)
    message = {"role": "assistant", "content": answer.text or None, "refusal": None}
    ended = {"finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    choice = {"index": 0, "message": message | ({"tool_calls": calls} if calls else {}), **ended}
    body = {**_chat_head(answer, "chat.completion"), "choices": [choice]}
    return body | ({"usage": chat_usage(answer.says)} if answer.says.says_usage else {})


def chat_events(answer: Answer) -> Iterator[bytes]:
    yield _chat_chunk(answer, {"role": "assistant", "content": ""})
    for piece in [piece for part in answer.plan if isinstance(part, Text) for piece in part.pieces]:
        yield _chat_chunk(answer, {"content": piece})
    waiting: list[list[Json]] = []
    for position, (whole, (_, call)) in enumerate(zip(chat_calls(answer), answer.calls, strict=True)):
        begin = {"index": position, **whole, "function": {**whole["function"], "arguments": ""}}
        waiting.append([begin, *({"index": position, "function": {"arguments": piece}} for piece in call.pieces)])
    for turn in [*answer.says.turns, *[0] * sum(map(len, waiting))]:
        left = [queue for queue in waiting if queue]
        if left:
            yield _chat_chunk(answer, {"tool_calls": [left[turn % len(left)].pop(0)]})
    yield _chat_chunk(answer, {}, "tool_calls" if answer.calls else "stop")
    if answer.wants_usage and answer.says.says_usage:
        head = _chat_head(answer, "chat.completion.chunk")
        yield event({**head, "choices": [], "usage": chat_usage(answer.says)})
    yield event("[DONE]")


def _chat_head(answer: Answer, kind: str) -> Json:
    return {"id": f"chatcmpl-{answer.number}", "object": kind, "created": CREATED, "model": answer.model}


def _chat_chunk(answer: Answer, delta: Json, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    usage = {"usage": None} if answer.wants_usage else {}
    return event({**_chat_head(answer, "chat.completion.chunk"), "choices": [choice], **usage})


# Responses


def response_items(answer: Answer) -> list[Json]:
    # Codex has the tools of an MCP server in a namespace.
    spaces = [tool["name"] for tool in answer.request.get("tools") or () if tool.get("type") == "namespace"]
    items: list[Json] = []
    for number, (call_id, part) in enumerate(answer.parts):
        given = "".join(part.pieces)
        if isinstance(part, Call):
            space = next((one for one in spaces if part.tool.startswith(f"{one}__")), "")
            name = {"namespace": space, "name": part.tool.removeprefix(f"{space}__")} if space else {"name": part.tool}
            call = {"id": f"fc_{call_id}", "call_id": call_id, **name, "arguments": given}
            items.append({"type": "function_call", **call, "status": "completed"})
        else:
            text = {"type": "output_text", "text": given, "annotations": []}
            message = {"id": f"msg_{answer.number}_{number}", "role": "assistant", "content": [text]}
            items.append({"type": "message", **message, "status": "completed"})
    return items


def response_body(answer: Answer, status: str = "completed") -> Json:
    says = answer.says
    usage = {
        "input_tokens": says.tokens_in,
        "input_tokens_details": {"cached_tokens": says.cached},
        "output_tokens": says.tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": says.tokens_in + says.tokens_out,
    }
    done = status == "completed"
    return {
        "id": f"resp_{answer.number}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": answer.request.get("instructions"),
        "metadata": {},
        "model": answer.model,
        "output": response_items(answer) if done else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": answer.request.get("tools") or [],
        "top_p": 1.0,
        "usage": usage if done and says.says_usage else None,
    }


def response_events(answer: Answer) -> Iterator[bytes]:
    begun = response_body(answer, "in_progress")
    data: list[Json] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, (item, part) in enumerate(zip(response_items(answer), answer.plan, strict=True)):
        data += (_call_events if isinstance(part, Call) else _message_events)(index, item, part.pieces)
    data.append({"type": "response.completed", "response": response_body(answer)})
    for number, one in enumerate(data):
        yield named_event({**one, "sequence_number": number})


def _message_events(index: int, item: Json, pieces: Sequence[str]) -> list[Json]:
    where = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part = item["content"][0]
    begun = {**item, "status": "in_progress", "content": []}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []} for piece in pieces),
        {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **where, "part": part},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _call_events(index: int, item: Json, pieces: Sequence[str]) -> list[Json]:
    where = {"item_id": item["id"], "output_index": index}
    begun = {**item, "status": "in_progress", "arguments": ""}
    kind = "response.function_call_arguments"
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *({"type": f"{kind}.delta", **where, "delta": piece} for piece in pieces),
        {"type": f"{kind}.done", **where, "name": item["name"], "arguments": item["arguments"]},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


# Anthropic's messages


def message_usage(says: Says, tokens_out: int) -> Json:
    return {
        "input_tokens": says.tokens_in - says.cached - says.cache_write,
        "cache_creation_input_tokens": says.cache_write,
        "cache_creation": {"ephemeral_1h_input_tokens": says.hour_writes},
        "cache_read_input_tokens": says.cached,
        "output_tokens": tokens_out,
    }


def message_blocks(answer: Answer) -> list[Json]:
    return [
        {"type": "tool_use", "id": call_id, "name": part.tool, "input": part.arguments}
        if isinstance(part, Call)
        else {"type": "text", "text": "".join(part.pieces)}
        for call_id, part in answer.parts
        if isinstance(part, Call) or part.pieces
    ]


def message_body(answer: Answer) -> Json:
    body = {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": message_blocks(answer),
        "stop_reason": "tool_use" if answer.calls else "end_turn",
        "stop_sequence": None,
    }
    return body | ({"usage": message_usage(answer.says, answer.says.tokens_out)} if answer.says.says_usage else {})


def message_events(answer: Answer) -> Iterator[bytes]:
    says, whole = answer.says, message_body(answer)
    begun = {**whole, "content": [], "stop_reason": None}
    begun |= {"usage": message_usage(says, 1)} if says.says_usage else {}
    yield named_event({"type": "message_start", "message": begun})
    yield named_event({"type": "ping"})
    for index, (block, part) in enumerate(
        zip(whole["content"], filter(lambda one: one.pieces, answer.plan), strict=True)
    ):
        yield from _block_events(index, block, part.pieces)
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    usage = {"usage": {"output_tokens": says.tokens_out}} if says.says_usage else {}
    yield named_event({"type": "message_delta", "delta": end, **usage})
    yield named_event({"type": "message_stop"})


def _block_events(index: int, block: Json, pieces: Sequence[str]) -> Iterator[bytes]:
    is_text = block["type"] == "text"
    begun = {**block, "text": ""} if is_text else {**block, "input": {}}
    kind, key = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
    yield named_event({"type": "content_block_start", "index": index, "content_block": begun})
    for piece in pieces:
        yield named_event({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
    yield named_event({"type": "content_block_stop", "index": index})


# Gemini


def gemini_body(answer: Answer, parts: Sequence[Json] | None = None, *, ended: bool = True) -> Json:
    says = answer.says
    whole = [
        {"functionCall": {"id": call_id, "name": part.tool, "args": part.arguments}}
        if isinstance(part, Call)
        else {"text": "".join(part.pieces)}
        for call_id, part in answer.parts
    ]
    content = {"role": "model", "parts": list(parts or whole or [{"text": ""}])}
    usage = {"promptTokenCount": says.tokens_in, "cachedContentTokenCount": says.cached}
    usage |= {"candidatesTokenCount": says.tokens_out, "totalTokenCount": says.tokens_in + says.tokens_out}
    return {
        "candidates": [{"content": content, "index": 0, **({"finishReason": "STOP"} if ended else {})}],
        "modelVersion": answer.model,
        "responseId": f"gemini-{answer.number}",
        **({"usageMetadata": usage} if says.says_usage else {}),
    }


def gemini_events(answer: Answer) -> Iterator[bytes]:
    """A chunk for each piece of a text and each call, with two calls in one chunk where `turns` has it."""
    chunks: list[list[Json]] = []
    for number, (call_id, part) in enumerate(answer.parts):
        if isinstance(part, Text):
            chunks += [[{"text": piece}] for piece in part.pieces]
            continue
        call = {"functionCall": {"id": call_id, "name": part.tool, "args": part.arguments}}
        if number in answer.says.turns and chunks and "functionCall" in chunks[-1][-1]:
            chunks[-1].append(call)
        else:
            chunks.append([call])
    for parts in chunks:
        yield event(gemini_body(answer, parts, ended=False)).replace(b"\n", b"\r\n")
    yield event(gemini_body(answer, [{"text": ""}])).replace(b"\n", b"\r\n")


_MODEL = {"id": "scripted-model", "display_name": "Scripted", "owned_by": "tests", "object": "model", "type": "model"}
MODELS: Json = {
    "object": "list",
    "data": [{**_MODEL, "created": CREATED, "created_at": "2026-01-31T12:00:00Z"}],
    "has_more": False,
    "first_id": "scripted-model",
    "last_id": "scripted-model",
}
