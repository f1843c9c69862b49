"""The APIs of providers from both sides: what a model says as a provider streams it, and as a client reads it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.provider_streams import DONE, Json, documents, event, named

from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.apis.messages import Messages
from passgate.tasks.providers.apis.responses import Responses
from passgate.tasks.providers.exchange import AskedCall

CHAT, RESPONSES, MESSAGES = ChatCompletions(), Responses(), Messages()
USAGE = {"prompt_tokens": 3, "completion_tokens": 4}

scalars = st.none() | st.booleans() | st.integers(-5, 10**14) | st.floats(allow_nan=False) | st.text(max_size=5)
arguments = st.dictionaries(st.text(max_size=5), scalars, max_size=3)


@dataclass(frozen=True)
class Text:
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    tool: str
    pieces: tuple[str, ...]
    """Of the JSON text of its arguments."""


Plan = tuple[Text | Call, ...]
"""What a model says, in order."""


def _cut(text: str, places: Iterable[int]) -> tuple[str, ...]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return tuple(text[begin:end] for begin, end in pairwise(edges))


texts = st.builds(Text, st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3).map(tuple))
calls = st.builds(
    lambda tool, given, places: Call(tool, _cut(json.dumps(given), places)),
    st.sampled_from(["read", "write", "delete"]),
    arguments,
    st.lists(st.integers(0, 100), max_size=3),
)
plans: st.SearchStrategy[Plan] = st.lists(texts | calls, max_size=6).map(tuple)


def asked_of(plan: Plan) -> list[AskedCall]:
    whole = [part for part in plan if isinstance(part, Call)]
    return [AskedCall(f"call_{n}", call.tool, json.loads("".join(call.pieces))) for n, call in enumerate(whole)]


def text_of(plan: Plan) -> str:
    return "".join(piece for part in plan if isinstance(part, Text) for piece in part.pieces)


def chat_stream(plan: Plan, turns: list[int]) -> bytes:
    """Text first and then the calls with their pieces mixed, each in its order, as `turns` has it."""
    chunks: list[Json] = [{"role": "assistant", "content": None}]
    chunks += [{"content": piece} for part in plan if isinstance(part, Text) for piece in part.pieces]
    whole = [part for part in plan if isinstance(part, Call)]
    waiting = [
        [_chat_piece(index, call, n, piece) for n, piece in enumerate(call.pieces)] for index, call in enumerate(whole)
    ]
    for turn in [*turns, *[0] * 100]:
        left = [queue for queue in waiting if queue]
        if left:
            chunks.append({"tool_calls": [left[turn % len(left)].pop(0)]})
    documents = [_chat_chunk(delta) for delta in chunks]
    documents.append(_chat_chunk({}, "tool_calls" if whole else "stop"))
    documents.append({"id": "c", "choices": [], "usage": USAGE})
    return b"".join(map(event, documents)) + DONE


def _chat_chunk(delta: Json, reason: str | None = None) -> Json:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": None}


def _chat_piece(index: int, call: Call, number: int, piece: str) -> Json:
    if number:
        return {"index": index, "function": {"arguments": piece}}
    function = {"name": call.tool, "arguments": piece}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def chat_reply(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
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


def message_stream(plan: Plan, turns: list[int]) -> bytes:
    usage = {"input_tokens": 3, "output_tokens": 1}
    events: list[Json] = [
        {"type": "message_start", "message": {"id": "m", "model": "x", "content": [], "usage": usage}}
    ]
    number = 0
    for index, part in enumerate(plan):
        block: Json = {"type": "text", "text": ""}
        deltas: list[Json] = [{"type": "text_delta", "text": piece} for piece in part.pieces]
        if isinstance(part, Call):
            block = {"type": "tool_use", "id": f"call_{number}", "name": part.tool, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in part.pieces]
            number += 1
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
        events += [{"type": "ping"}] * (index in turns)
    reason = "tool_use" if number else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}})
    return named([*events, {"type": "message_stop"}])


def message_reply(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
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


def response_stream(plan: Plan, turns: list[int]) -> bytes:
    events: list[Json] = [{"type": "response.created", "response": {"id": "r", "model": "x", "output": []}}]
    output: list[Json] = []
    for index, part in enumerate(plan):
        place = {"item_id": f"item_{index}", "output_index": index}
        item: Json = {"type": "message", "id": f"item_{index}", "role": "assistant"}
        kind, key = "response.output_text", "content"
        done: Any = [{"type": "output_text", "text": "".join(part.pieces)}]
        if isinstance(part, Call):
            number = sum(one["type"] == "function_call" for one in output)
            item = {"type": "function_call", "id": f"item_{index}", "call_id": f"call_{number}", "name": part.tool}
            kind, key, done = "response.function_call_arguments", "arguments", "".join(part.pieces)
        begun = {**item, key: type(done)()}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        events += [{"type": f"{kind}.delta", **place, "content_index": 0, "delta": piece} for piece in part.pieces]
        events.append({"type": f"{kind}.done", **place, "content_index": 0})
        output.append({**item, key: done})
        events.append({"type": "response.output_item.done", "output_index": index, "item": output[-1]})
    final = {"id": "r", "model": "x", "output": output, "usage": {"input_tokens": 3, "output_tokens": 9}}
    events.append({"type": "response.completed", "response": final})
    return named({**one, "sequence_number": number} for number, one in enumerate(events))


def response_reply(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
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


@dataclass(frozen=True)
class Side:
    """One API as the provider sends it and as a client reads it."""

    api: Api
    stream: Callable[[Plan, list[int]], bytes]
    reply: Callable[[bytes], tuple[str, list[AskedCall], list[int], str | None]]
    reasons: tuple[str | None, str | None]
    """To finish with calls and without."""


SIDES = [
    Side(CHAT, chat_stream, chat_reply, ("tool_calls", "stop")),
    Side(MESSAGES, message_stream, message_reply, ("tool_use", "end_turn")),
    Side(RESPONSES, response_stream, response_reply, (None, None)),
]
each_side = pytest.mark.parametrize("side", SIDES, ids=lambda side: side.api.name)
turns = st.lists(st.integers(0, 5), max_size=12)
