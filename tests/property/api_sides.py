"""The APIs of providers from both sides: what a model says as a provider streams it, and as a client reads it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import strategies as st
from tests import upstream_shapes as shapes
from tests.provider_streams import Json, documents
from tests.upstream_shapes import Answer, Call, Plan, Says, Text

from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.apis.gemini import Gemini
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.apis.messages import Messages
from passgate.tasks.providers.apis.responses import Responses
from passgate.tasks.providers.exchange import AskedCall

CHAT, RESPONSES, MESSAGES = ChatCompletions(), Responses(), Messages()
GEMINI = Gemini("v1beta/models/x:streamGenerateContent", "alt=sse", (14, 15))

scalars = st.none() | st.booleans() | st.integers(-5, 10**14) | st.floats(allow_nan=False) | st.text(max_size=5)
arguments = st.dictionaries(st.text(max_size=5), scalars, max_size=3)


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
    return [AskedCall(call_id, call.tool, call.arguments) for call_id, call in Answer(Says(plan=plan), 0, {}).calls]


def text_of(plan: Plan) -> str:
    return "".join(piece for part in plan if isinstance(part, Text) for piece in part.pieces)


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


def gemini_reply(output: bytes) -> tuple[str, list[AskedCall], list[int], str | None]:
    text, asked, reason = "", list[AskedCall](), None
    for chunk in documents(output):
        (candidate,) = chunk["candidates"]
        reason = candidate.get("finishReason") or reason
        assert candidate["content"]["parts"]
        for part in candidate["content"]["parts"]:
            text += part.get("text", "")
            if call := part.get("functionCall"):
                asked.append(AskedCall(call["id"], call["name"], call["args"]))
    return text, asked, [], reason


@dataclass(frozen=True)
class Side:
    """One API as the provider sends it and as a client reads it."""

    api: Api
    events: Callable[[Answer], Iterable[bytes]]
    reply: Callable[[bytes], tuple[str, list[AskedCall], list[int], str | None]]
    reasons: tuple[str | None, str | None]
    """To finish with calls and without."""

    def stream(self, plan: Plan, turns: list[int], *, shows_usage: bool = True) -> bytes:
        says = Says(plan=plan, turns=turns, tokens_in=3, tokens_out=9)
        events = self.events(Answer(says, 0, {"model": "x", "stream_options": {"include_usage": True}}))
        return b"".join(one for one in events if shows_usage or b'"choices": []' not in one)


SIDES = [
    Side(CHAT, shapes.chat_events, chat_reply, ("tool_calls", "stop")),
    Side(MESSAGES, shapes.message_events, message_reply, ("tool_use", "end_turn")),
    Side(RESPONSES, shapes.response_events, response_reply, (None, None)),
    Side(GEMINI, shapes.gemini_events, gemini_reply, ("STOP", "STOP")),
]
each_side = pytest.mark.parametrize("side", SIDES, ids=lambda side: side.api.name)
turns = st.lists(st.integers(0, 5), max_size=12)
