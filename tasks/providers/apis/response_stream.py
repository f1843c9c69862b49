"""A streamed response of OpenAI's."""

from collections.abc import Iterable

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.errors import provider_error
from passgate.tasks.providers.apis.response_draft import Draft
from passgate.tasks.providers.apis.response_items import (
    asked_call,
    call_id_of,
    is_answer,
    is_call,
    items_of,
    reply_of,
    without,
)
from passgate.tasks.providers.apis.stream import Assembly, Document, Owners
from passgate.tasks.providers.exchange import AskedCall, Withheld

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})
_SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})


class ResponseAssembly(Assembly):
    """A response from its events. A call is whole when its item is done."""

    def __init__(self, withheld: Withheld, *, model: str) -> None:
        super().__init__(withheld)
        self._draft = Draft(model)
        self._open_calls: dict[int, str] = {}
        """The ids of the calls under way, by the index of their items."""
        self._decided: list[tuple[AskedCall, bool]] = []
        self._refused: set[str] = set()
        self._gaps: set[int] = set()
        self._kept: list[Document] | None = None
        """The output of the last event where calls are taken out of it."""

    @property
    def undecided(self) -> bool:
        return bool(self._open_calls)

    def take(self, event: Document) -> Owners:
        """See `Assembly.take`."""
        kind = values.text_or_empty(event.get("type"), "type")
        self._draft.count(event)
        if kind in _SPOKEN:
            piece = values.text(event.get("delta"), "delta")
            self._say(piece)
            self._draft.extend(event, piece)
        elif kind.endswith(".delta"):
            self._write(values.text_or_empty(event.get("delta"), "delta"))
        elif kind in {"response.output_item.added", "response.output_item.done"}:
            self._take_item(kind, event)
        elif kind in _LAST:
            self._end(values.mapping(event.get("response"), "response"))
        elif kind == "response.created":
            self._begin(values.mapping(event.get("response"), "response"))
        elif kind == "error":
            raise provider_error(event.get("error") or event)
        return ()

    def _begin(self, response: Document) -> None:
        self._draft.begin(response)
        self._model = values.text_or_empty(response.get("model"), "response.model")

    def _take_item(self, kind: str, event: Document) -> None:
        item = values.mapping_or_empty(event.get("item"), "item")
        is_done = kind.endswith(".done")
        if event.get("output_index") is None and not is_call(item):
            return
        index = values.count(event.get("output_index"), "output_index")
        if is_call(item):
            self._take_call(item, index, is_done=is_done)
        elif is_answer(item) and call_id_of(item, index) in self._refused:
            self._gaps.add(index)
        elif is_done:
            self._draft.finish(index, item)
        else:
            self._draft.add(index, item)

    def _take_call(self, item: Document, index: int, *, is_done: bool) -> None:
        self.started = True
        if not is_done:
            self._open_calls[index] = call_id_of(item, index)
            return
        self._open_calls.pop(index, None)
        if self._refuses(asked_call(item, index)):
            self._gaps.add(index)
        else:
            self._draft.finish(index, item)

    def _refuses(self, call: AskedCall) -> bool:
        refused = self._decide(call)
        self._decided.append((call, refused))
        if refused:
            self._refused.add(call.call_id)
        return refused

    def _end(self, response: Document) -> None:
        """The last event repeats the whole output. Calls that are in it alone are asked about now."""
        final = reply_of(response)
        refused = self._refused_of(final.calls)
        if refused:
            self._kept = without(items_of(response), refused)
        allowed = {call.call_id for call in final.calls} - refused
        self._gaps.update(index for index, identity in self._open_calls.items() if identity not in allowed)
        self._open_calls.clear()
        if final.text:
            self._pieces = [final.text]
        self.started = self.started or bool(final.text or final.calls)
        self._usage = final.usage
        self._model = final.model or self._model
        self.ended = True

    def _refused_of(self, calls: Iterable[AskedCall]) -> set[str]:
        earlier = list(self._decided)
        refused = set()
        for call in calls:
            known = _find(call, earlier)
            if known is not None:
                earlier.remove(known)
            if self._refuses(call) if known is None else known[1]:
                refused.add(call.call_id)
        return refused

    def finish(self) -> None:
        """See `Assembly.finish`. Only the last event says that the reply is complete."""

    def remaining(self, event: Document, owners: Owners) -> Document | None:
        """See `Assembly.remaining`."""
        if self._kept is not None and event.get("type") in _LAST:
            return {**event, "response": {**event["response"], "output": self._kept}}
        index = event.get("output_index")
        if not self._gaps or not isinstance(index, int):
            return event
        if index in self._gaps:
            return None
        counted = self._counted(index)
        return event if counted == index else {**event, "output_index": counted}

    def _counted(self, index: int) -> int:
        """The index among the items that are left."""
        return index - sum(gap < index for gap in self._gaps)

    def give_up(self) -> None:
        """See `Assembly.give_up`."""
        self._gaps.update(self._open_calls)
        self._open_calls.clear()

    def ending(self) -> list[bytes]:
        """See `Assembly.ending`."""
        return [] if self.ended else self._draft.ending(self._counted)


Decision = tuple[AskedCall, bool]


def _find(call: AskedCall, decided: list[Decision]) -> Decision | None:
    """What was decided on a call. Some servers give it another id in the last event than before."""
    same_id = (one for one in decided if one[0].call_id == call.call_id)
    alike = (one for one in decided if (one[0].tool, one[0].arguments) == (call.tool, call.arguments))
    return next(same_id, None) or next(alike, None)
