"""A streamed message of Anthropic's."""

from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.errors import provider_error
from passgate.tasks.providers.apis.message_blocks import asked_call, call_id_of, is_call, reason_with, usage_of
from passgate.tasks.providers.apis.stream import Assembly, Document, Owners
from passgate.tasks.providers.exchange import Withheld
from passgate.tasks.providers.sse import event_bytes

_DELTAS = ("text", "thinking", "partial_json")


class MessageAssembly(Assembly):
    """A message from its events. A call is whole when its block stops."""

    def __init__(self, withheld: Withheld, *, model: str) -> None:
        super().__init__(withheld)
        self._asked_model = model
        self._used: dict[str, Any] = {}
        self._has_begun = False
        self._has_reason = False
        self._open: set[int] = set()
        """The blocks under way that are no calls."""
        self._open_calls: dict[int, tuple[Document, list[str]]] = {}
        self._gaps: set[int] = set()
        self._refused: set[str] = set()
        self._left: list[Document] = []
        """The calls that the agent gets."""

    @property
    def undecided(self) -> bool:
        return bool(self._open_calls)

    def take(self, event: Document) -> Owners:
        """See `Assembly.take`."""
        match values.text_or_empty(event.get("type"), "type"):
            case "message_start":
                self._begin(values.mapping(event.get("message"), "message"))
            case "content_block_start":
                self._begin_block(_index(event), values.mapping(event.get("content_block"), "content_block"))
            case "content_block_delta":
                self._extend(_index(event), values.mapping(event.get("delta"), "delta"))
            case "content_block_stop":
                self._end_block(_index(event))
            case "message_delta":
                self._finish(event)
            case "message_stop":
                self.finish()
            case "error":
                raise provider_error(event.get("error"))
        return ()

    def _begin(self, message: Document) -> None:
        self._has_begun = True
        self._model = values.text_or_empty(message.get("model"), "message.model")
        self._used = dict(values.mapping_or_empty(message.get("usage"), "message.usage"))
        # What was written so far is no account of what will have been written.
        self._usage = usage_of(self._used).model_copy(update={"tokens_out": None})

    def _begin_block(self, index: int, block: Document) -> None:
        self.started = True
        if is_call(block):
            self._open_calls[index] = (block, [])
            return
        if call_id_of(block) in self._refused:
            self._gaps.add(index)
            return
        self._open.add(index)
        if block.get("type") == "text":
            self._say(values.text_or_empty(block.get("text"), "content_block.text"))

    def _extend(self, index: int, delta: Document) -> None:
        key = next((key for key in _DELTAS if delta.get(key) is not None), None)
        if key is None:
            return
        piece = values.text(delta[key], f"delta.{key}")
        if key == "text":
            self._say(piece)
            return
        self._write(piece)
        if key == "partial_json" and index in self._open_calls:
            self._open_calls[index][1].append(piece)

    def _end_block(self, index: int) -> None:
        self._open.discard(index)
        if index not in self._open_calls:
            return
        block, given = self._open_calls.pop(index)
        call = asked_call(block, f"content[{index}]", "".join(given))
        if self._decide(call):
            self._gaps.add(index)
            self._refused.add(call.call_id)
        else:
            self._left.append(block)

    def _finish(self, event: Document) -> None:
        usage = values.mapping_or_empty(event.get("usage"), "usage")
        # Counts are of the whole message; those that did not change may be left out.
        self._used.update({key: value for key, value in usage.items() if value is not None})
        if usage:
            self._usage = usage_of(self._used)
        if values.mapping_or_empty(event.get("delta"), "delta").get("stop_reason") is not None:
            self._has_reason = True

    def finish(self) -> None:
        """See `Assembly.finish`. A call whose block never stopped is whole too."""
        for index in sorted(self._open_calls):
            self._end_block(index)
        self.ended = True

    def remaining(self, event: Document, owners: Owners) -> Document | None:
        """See `Assembly.remaining`."""
        if not self._gaps:
            return event
        kind = event.get("type")
        if kind == "message_delta":
            return self._with_reason(event)
        if kind not in {"content_block_start", "content_block_delta", "content_block_stop"}:
            return event
        index = event["index"]
        if index in self._gaps:
            return None
        counted = self._counted(index)
        return event if counted == index else {**event, "index": counted}

    def _with_reason(self, event: Document) -> Document:
        delta = event.get("delta") or {}
        reason = delta.get("stop_reason")
        changed = reason_with(reason, self._left)
        return event if changed == reason else {**event, "delta": {**delta, "stop_reason": changed}}

    def _counted(self, index: int) -> int:
        """The index among the blocks that are left."""
        return index - sum(gap < index for gap in self._gaps)

    def give_up(self) -> None:
        """See `Assembly.give_up`."""
        self._gaps.update(self._open_calls)
        self._open_calls.clear()

    def ending(self) -> list[bytes]:
        """See `Assembly.ending`."""
        events: list[Document] = [] if self._has_begun else [_beginning(self._asked_model)]
        events += [{"type": "content_block_stop", "index": self._counted(index)} for index in sorted(self._open)]
        if not self._has_reason:
            delta = {"stop_reason": "max_tokens", "stop_sequence": None}
            written = self._used.get("output_tokens", 0)
            events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": written}})
        if not self.ended:
            events.append({"type": "message_stop"})
        return [event_bytes(event, event["type"]) for event in events]


def _index(event: Document) -> int:
    return values.count(event.get("index"), "index")


def _beginning(model: str) -> Document:
    usage = {"input_tokens": 0, "output_tokens": 0}
    message = {"id": "msg_cut_off", "type": "message", "role": "assistant", "content": [], "model": model}
    return {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
