"""The APIs of providers from both sides: what a model says as a provider streams it, and as a client reads it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import strategies as st
from tests.provider_apis import chat, gemini, messages, responses
from tests.upstream_shapes import Answer, Call, Plan, Says, Text

from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.exchange import AskedCall

CHAT, RESPONSES, MESSAGES, GEMINI = chat.API, responses.API, messages.API, gemini.API

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
    Side(CHAT, chat.events, chat.read, ("tool_calls", "stop")),
    Side(MESSAGES, messages.events, messages.read, ("tool_use", "end_turn")),
    Side(RESPONSES, responses.events, responses.read, (None, None)),
    Side(GEMINI, gemini.events, gemini.read, ("STOP", "STOP")),
]
each_side = pytest.mark.parametrize("side", SIDES, ids=lambda side: side.api.name)
turns = st.lists(st.integers(0, 5), max_size=12)
