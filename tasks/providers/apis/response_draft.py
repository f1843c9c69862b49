"""What a streamed response holds so far, and its end where it is cut off."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.stream import Document
from passgate.tasks.providers.sse import event_bytes


@dataclass(slots=True)
class _Part:
    is_refusal: bool
    pieces: list[str] = field(default_factory=list)

    def finished(self) -> tuple[str, Document, Document]:
        """The event that ends it, with its text, and the part itself."""
        text = "".join(self.pieces)
        if self.is_refusal:
            return "response.refusal.done", {"refusal": text}, {"type": "refusal", "refusal": text}
        whole = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return "response.output_text.done", {"text": text, "logprobs": []}, whole


class Draft:
    """The output items of a response under way, at the index that the provider gives them."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._response: Document | None = None
        self._sequence_number = -1
        self._open: dict[int, Document] = {}
        self._done: dict[int, Document] = {}
        self._parts: dict[tuple[int, int], _Part] = {}

    def count(self, event: Document) -> None:
        """Remember the number of an event."""
        number = event.get("sequence_number")
        if isinstance(number, int):
            self._sequence_number = number

    def begin(self, response: Document) -> None:
        """Remember the response that has begun."""
        self._response = response

    def add(self, index: int, item: Document) -> None:
        """An item has begun that the agent gets."""
        self._open[index] = item

    def extend(self, event: Document, piece: str) -> None:
        """A piece of text of an item has come."""
        index = values.count_or_none(event.get("output_index"), "output_index")
        content_index = values.count_or_none(event.get("content_index"), "content_index")
        if index is not None:
            part = self._parts.setdefault((index, content_index or 0), _Part(event["type"] == "response.refusal.delta"))
            part.pieces.append(piece)

    def finish(self, index: int, item: Document) -> None:
        """An item is done that the agent gets."""
        self._open.pop(index, None)
        self._done[index] = item

    def ending(self, counted: Callable[[int], int]) -> list[bytes]:
        """The events that end the response here; `counted` is the index that the agent knows an item by."""
        events: list[Document] = []
        if self._response is None:
            self._response = _beginning(self._model)
            events.append({"type": "response.created", "response": self._response})
        for index in sorted(self._open):
            events += self._closing(index, counted(index))
        incomplete = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        output = [self._done[index] for index in sorted(self._done)]
        events.append({"type": "response.incomplete", "response": {**self._response, **incomplete, "output": output}})
        first = self._sequence_number + 1
        return [event_bytes({**event, "sequence_number": first + n}, event["type"]) for n, event in enumerate(events)]

    def _closing(self, index: int, counted: int) -> list[Document]:
        item = self._open[index]
        place: dict[str, Any] = {"item_id": item.get("id"), "output_index": counted}
        events, content = [], []
        for _, content_index in sorted(place for place in self._parts if place[0] == index):
            kind, text, part = self._parts[index, content_index].finished()
            inner = {**place, "content_index": content_index}
            events += [{"type": kind, **inner, **text}, {"type": "response.content_part.done", **inner, "part": part}]
            content.append(part)
        whole = {**item, "status": "incomplete"}
        if content:
            whole["content"] = content
        self._done[index] = whole
        return [*events, {"type": "response.output_item.done", "output_index": counted, "item": whole}]


def _beginning(model: str) -> Document:
    fields = {"id": "resp_cut_off", "object": "response", "created_at": 0, "status": "in_progress", "model": model}
    return {**fields, "output": [], "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "error": None}
