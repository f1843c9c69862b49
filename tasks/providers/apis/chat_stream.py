"""A streamed chat completion."""

from dataclasses import dataclass, field
from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.chat_calls import asked_call, given_of, kind_of, reason_without_calls
from passgate.tasks.providers.apis.openai_shared import raise_error, usage_of
from passgate.tasks.providers.apis.stream import Assembly, Document, Owners
from passgate.tasks.providers.apis.texts import reply_text
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, Withheld
from passgate.tasks.providers.sse import event_bytes

_ENVELOPE = ("id", "object", "created", "model", "service_tier", "system_fingerprint")
_REASONING = ("reasoning_content", "reasoning")
_DELTA = "choices[0].delta"


@dataclass(slots=True)
class _PartialCall:
    index: int | None
    position: int
    kind: str
    has_id: bool
    identity: str = ""
    name: str = ""
    given: list[str] = field(default_factory=list)
    decided: bool = False
    taken_out: bool = False

    def asked(self) -> AskedCall:
        if not self.name:
            raise ApiFormatError(f"tool_calls[{self.position}].{self.kind}.name: is missing")
        # A `function_call` has no id: its answer names the function.
        identity = self.identity if self.has_id else self.name
        return asked_call(identity, self.position, self.kind, self.name, "".join(self.given))


class ChatAssembly(Assembly):
    """A chat completion from its chunks. Its calls are whole when it says why it finished."""

    def __init__(self, withheld: Withheld, *, model: str, shows_usage: bool) -> None:
        super().__init__(withheld)
        self._shows_usage = shows_usage
        self._envelope: Document = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._begun: list[_PartialCall] = []
        self._undecided = False
        self._gaps: frozenset[int] = frozenset()
        self._is_done = False

    @property
    def undecided(self) -> bool:
        return self._undecided

    def take(self, event: Document) -> Owners:
        """See `Assembly.take`."""
        raise_error(event)
        if not self._model:
            self._model = values.text_or_empty(event.get("model"), "model")
            self._envelope.update({key: event[key] for key in _ENVELOPE if key in event})
        if event.get("usage") is not None:
            self._usage = usage_of(event["usage"], tokens_in="prompt_tokens", tokens_out="completion_tokens")
        choices = values.sequence_or_empty(event.get("choices"), "choices")
        if not choices:
            return ()
        choice = _only(choices)
        owners = self._take_delta(values.mapping_or_empty(choice.get("delta"), _DELTA))
        if choice.get("finish_reason") is not None:
            self._decide_all()
            self.ended = True
        return owners

    def _take_delta(self, delta: Document) -> Owners:
        self._say(reply_text(delta.get("content"), f"{_DELTA}.content"))
        self._say(values.text_or_empty(delta.get("refusal"), f"{_DELTA}.refusal"))
        for key in _REASONING:
            if isinstance(delta.get(key), str):
                self._write(delta[key])
        entries = values.sequence_or_empty(delta.get("tool_calls"), f"{_DELTA}.tool_calls")
        owners = tuple([self._take_entry(entry) for entry in entries])
        if delta.get("function_call") is not None:
            owners += (self._take_function_call(delta["function_call"]),)
        return owners

    def _take_entry(self, entry: Any) -> int:
        place = f"{_DELTA}.tool_calls"
        fields = values.mapping(entry, f"{place}[]")
        index = values.count_or_none(fields.get("index"), f"{place}[].index")
        identity = values.text_or_empty(fields.get("id"), f"{place}[].id")
        kind = kind_of(fields)
        called = values.mapping_or_empty(fields.get(kind), f"{place}[].{kind}")
        call = self._same(index, identity, called)
        if call is None:
            call = self._begin(_PartialCall(index, len(self._begun), kind, has_id=True, identity=identity))
        elif called:
            call.kind = kind
        return self._extend(call, called)

    def _take_function_call(self, function_call: Any) -> int:
        called = values.mapping(function_call, f"{_DELTA}.function_call")
        call = next((call for call in self._begun if not (call.has_id or call.decided)), None)
        if call is None:
            call = self._begin(_PartialCall(None, len(self._begun), "function", has_id=False))
        return self._extend(call, called)

    def _same(self, index: int | None, identity: str, called: Document) -> _PartialCall | None:
        """The call that a piece goes on with, `None` when it begins one.

        Not every server counts: some give each call the index 0, or none, and some give each piece another id. A name
        with another id, or another name after arguments, is another call.
        """
        indexed = [call for call in self._begun if call.has_id and (index is None or call.index == index)]
        if not indexed or indexed[-1].decided:
            return None
        last = indexed[-1]
        has_other_id = identity not in {"", last.identity}
        has_other_name = called.get("name") != last.name and any(last.given)
        return None if called.get("name") and (has_other_id or has_other_name) else last

    def _begin(self, call: _PartialCall) -> _PartialCall:
        self._begun.append(call)
        self._undecided = True
        self.started = True
        return call

    def _extend(self, call: _PartialCall, called: Document) -> int:
        name = values.text_or_empty(called.get("name"), f"{_DELTA}.tool_calls[].{call.kind}.name")
        if name != call.name:
            # Some servers repeat the name with every piece.
            call.name += name
        given = values.text_or_empty(given_of(called, call.kind), f"{_DELTA}.tool_calls[].{call.kind}")
        call.given.append(given)
        self._write(given)
        return call.position

    def _decide_all(self) -> None:
        for call in sorted(self._begun, key=lambda call: call.index or 0):
            if not call.decided:
                call.decided = True
                call.taken_out = self._decide(call.asked())
        self._settle()

    def _settle(self) -> None:
        self._undecided = False
        taken_out = {call.index for call in self._begun if call.taken_out}
        kept = {call.index for call in self._begun if not call.taken_out}
        self._gaps = frozenset(index for index in taken_out - kept if index is not None)

    def finish(self) -> None:
        """See `Assembly.finish`."""
        self._decide_all()
        self.ended = self._is_done = True

    def remaining(self, event: Document, owners: Owners) -> Document | None:
        """See `Assembly.remaining`."""
        if not event.get("choices"):
            was_not_asked_for = event.get("usage") is not None and not self._shows_usage
            return None if was_not_asked_for else event
        if not any(call.taken_out for call in self._begun):
            return event
        choice = event["choices"][0]
        finished = choice.get("finish_reason")
        if not owners and finished is None:
            return event
        delta = self._remaining_delta(choice.get("delta") or {}, owners)
        if not delta and finished is None and event.get("usage") is None:
            return None
        if finished is not None and all(call.taken_out for call in self._begun):
            finished = reason_without_calls(finished)
            if not any(self._pieces):
                delta["content"] = ""
        return {**event, "choices": [{**choice, "delta": delta, "finish_reason": finished}]}

    def _remaining_delta(self, delta: Document, owners: Owners) -> Document:
        changed = dict(delta)
        entries = changed.pop("tool_calls", None) or []
        kept = [
            self._counted(entry, owner) for entry, owner in zip(entries, owners, strict=False) if self._keeps(owner)
        ]
        if kept:
            changed["tool_calls"] = kept
        if changed.get("function_call") is not None and not self._keeps(owners[-1]):
            del changed["function_call"]
        return changed

    def _keeps(self, owner: int) -> bool:
        return not self._begun[owner].taken_out

    def _counted(self, entry: Document, owner: int) -> Document:
        """The piece with the index that its call has among those that are left."""
        index = self._begun[owner].index
        if index is None:
            return entry
        return {**entry, "index": index - sum(gap < index for gap in self._gaps)}

    def give_up(self) -> None:
        """See `Assembly.give_up`."""
        for call in self._begun:
            call.taken_out = call.taken_out or not call.decided
            call.decided = True
        self._settle()

    def ending(self) -> list[bytes]:
        """See `Assembly.ending`."""
        last = {**self._envelope, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}]}
        events = [] if self.ended else [event_bytes(last)]
        return events if self._is_done else [*events, b"data: [DONE]\n\n"]


def _only(choices: list[Any]) -> Document:
    choice = values.mapping(choices[0], "choices[0]")
    index = values.count_or_none(choice.get("index"), "choices[0].index")
    if len(choices) > 1 or index:
        raise ApiFormatError("choices: there is more than the one that is asked for")
    return choice
