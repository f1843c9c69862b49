"""What a model says, for every API; the shapes of each API are in `provider_apis`."""

import json
import re
from collections.abc import Mapping, Sequence
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


_MODEL = {"id": "scripted-model", "display_name": "Scripted", "owned_by": "tests", "object": "model", "type": "model"}
MODELS: Json = {
    "object": "list",
    "data": [{**_MODEL, "created": CREATED, "created_at": "2026-01-31T12:00:00Z"}],
    "has_more": False,
    "first_id": "scripted-model",
    "last_id": "scripted-model",
}
