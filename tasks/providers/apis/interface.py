"""What an API of a provider has to offer, and what all of them have in common."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Self

from passgate.tasks.model.price import NO_CHARGES
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis import values
from passgate.tasks.providers.exchange import (
    ApiFormatError,
    AskedCall,
    InputMessage,
    ModelReply,
    ModelRequest,
    ToolAnswer,
)
from passgate.tasks.providers.sse import MAX_EVENT_BYTES, Event, EventParser, event_bytes

Document = dict[str, Any]
Context = tuple[tuple[InputMessage, ...], tuple[ToolAnswer, ...]]
"""Every system and user message of a request, and every tool result."""
Owners = tuple[int, ...]
"""To which of the reply's tool calls the pieces of an event belong, where its API does not say it in each event."""
IsWithheld = Callable[[AskedCall], bool]  # Decides whether a tool call is taken out of the reply

MAX_HELD_BYTES = 2 * MAX_EVENT_BYTES
_DONE = b"[DONE]"
_FAILED = frozenset(
    {"error", "failed", "cancelled", "abort", "network_error", "insufficient_system_resource"}
    | {"content_filter", "sensitive", "refusal"}
)
"""Reasons to end that are no model's, as servers word them: something failed, or a filter stopped it."""


class ReplyStream(ABC):
    """One streamed reply on its way to the agent, put together from its events as its API has them.

    Events go through in their order. From the first event of a tool call on they are held back until every call that
    has begun is whole and decided on; then they go on as they came, or without the calls that are taken out.
    """

    def __init__(self, is_withheld: IsWithheld) -> None:
        """`is_withheld` is asked once for every tool call."""
        self.started = False  # Whether the model has begun to write: a text or a tool call
        self.ended = False  # Whether the provider has said that the reply is complete
        self.characters = 0
        """How many the model has written so far: text, reasoning that is shown, and arguments of tool calls."""
        self._is_withheld = is_withheld
        self._parser = EventParser()
        self._held: list[tuple[Event, Document | None, Owners]] = []
        self._held_bytes = 0
        self._pieces: list[str] = []
        self._calls: list[AskedCall] = []
        self._open_calls: dict[int, Any] = {}
        """The calls that have begun and are not decided on, by their index in the reply."""
        self._gaps: set[int] = set()  # The indices that are taken out
        self._usage = Usage()
        self._charges = NO_CHARGES
        self._model = ""

    @property
    def reply(self) -> ModelReply:
        """What has come so far, withheld calls included."""
        self._pieces = ["".join(self._pieces)]
        text, model = values.clean(self._pieces[0]), values.clean(self._model)
        return ModelReply(text, tuple(self._calls), self._usage, model, self._charges)

    def feed(self, chunk: bytes) -> bytes:
        """Return what the agent is sent for a piece of the provider's stream, however it was cut.

        Raises `ApiFormatError` for what is no stream of this API, or an error event of the provider.
        """
        return b"".join([self._passed(event) for event in self._parser.feed(chunk)])

    def cut(self) -> bytes:
        """Return the well-formed end of a reply that is cut off here because a limit is reached."""
        self._give_up()
        return self._released() + b"".join(self._ending())

    @abstractmethod
    def _take(self, event: Document) -> Owners:
        """Add an event to the reply. Raises `ApiFormatError` for one that is not of the API, or an error."""

    @abstractmethod
    def _finish(self) -> None:
        """Note that the stream says that nothing follows."""

    @abstractmethod
    def _remaining(self, event: Document, owners: Owners) -> Document | None:
        """Return what is left of an event without the calls that are taken out: the same object when that is
        all of it.
        """

    @abstractmethod
    def _ending(self) -> list[bytes]:
        """Return the events that end the reply here, as one that has reached its limit of tokens."""

    def _give_up(self) -> None:
        """Take out the calls that are not decided on: they will not become whole."""
        self._gaps.update(self._open_calls)
        self._open_calls.clear()

    def _say(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._write(text)

    def _write(self, text: str) -> None:
        """Count what the model has written, whether it is shown or not."""
        if text:
            self.characters += len(text)
            self.started = True

    def _decide(self, call: AskedCall) -> bool:
        """Return whether a call is taken out."""
        self._calls.append(call)
        return self._is_withheld(call)

    def _counted(self, index: int) -> int:
        """Return the index among what is left."""
        return index - sum(gap < index for gap in self._gaps)

    def _renumbered(self, event: Document, key: str) -> Document | None:
        """Return an event with the index that it has among what is left; `None` when it is taken out."""
        if event[key] in self._gaps:
            return None
        counted = self._counted(event[key])
        return event if counted == event[key] else {**event, key: counted}

    def _passed(self, event: Event) -> bytes:
        document: Document | None = None
        owners: Owners = ()
        if event.data == _DONE:
            self._finish()
        elif event.data:
            document = _document(event)
            owners = self._take(document)
        if not self._held and not self._open_calls:
            return self._sent(event, document, owners)
        self._held.append((event, document, owners))
        self._held_bytes += len(event.raw)
        if self._held_bytes > MAX_HELD_BYTES:
            raise ApiFormatError(f"the tool calls of the reply are larger than {MAX_HELD_BYTES} bytes")
        return b"" if self._open_calls else self._released()

    def _released(self) -> bytes:
        held, self._held, self._held_bytes = self._held, [], 0
        return b"".join([self._sent(*one) for one in held])

    def _sent(self, event: Event, document: Document | None, owners: Owners) -> bytes:
        if document is None:
            return event.raw
        remaining = self._remaining(document, owners)
        if remaining is document:
            return event.raw
        return b"" if remaining is None else event_bytes(remaining, event.name)


def _document(event: Event) -> Document:
    try:
        document = json.loads(event.data or b"")
    except (ValueError, RecursionError) as error:
        raise ApiFormatError(f"an event of the stream is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ApiFormatError("an event of the stream is not a JSON object")
    if event.name is not None:
        # Some servers say what an event is in its name alone.
        document.setdefault("type", event.name)
    return document


class Api(ABC):
    """One provider API: how its requests and replies are read, changed and refused."""

    name: ClassVar[str]
    path_pattern: ClassVar[str]
    """Of the paths of its calls, as in `chat/completions`; a group `model` is the model of the call."""
    limits: ClassVar[tuple[str, ...]]
    """The keys of a request that limit the tokens of its reply."""
    texts: ClassVar[tuple[str, ...]]
    """The keys of a request that hold what the model reads."""
    earlier: ClassVar[tuple[str, ...]] = ()
    """The keys of a request that name a context which the provider holds."""
    schema_key: ClassVar[str] = ""
    """The key of a request that holds the JSON Schema of the reply; empty if it answers no conversation."""
    is_step: ClassVar[bool] = True  # Whether a call is a step, made with the model that the user names

    def __init__(self, path: str = "", query: str = "", model_at: tuple[int, int] | None = None) -> None:
        """Speak it at a path below the base URL, whose model stands at `model_at`; without one where it usually is."""
        self._path = path or self.path_pattern
        self._query = query
        self._model_at = model_at

    @property
    def path_model(self) -> str:
        """The model that the path names; empty if it names none."""
        return self._path[slice(*self._model_at)] if self._model_at else ""

    @property
    def answers_array(self) -> bool:
        """Whether a streamed reply reaches the agent as a JSON array in place of events."""
        return False

    def target(self, model: str | None = None) -> str:
        """Return the path and the query that a call is sent to, with another model where the path names one."""
        path = self._path
        if model is not None and self._model_at:
            begin, end = self._model_at
            path = path[:begin] + model + path[end:]
        return f"{path}?{self._query}" if self._query else path

    @classmethod
    def for_model(cls, model: str) -> Self:
        """Speak it at its usual path, for requests of passgate's own."""
        return cls()

    @abstractmethod
    def question(
        self, model: str, messages: Sequence[tuple[str, str]], *, schema: Document | None, temperature: float | None
    ) -> Document:
        """Return a request of passgate's own, for a reply by the schema if any. Messages are a role and a text:
        `system`, `user` or `assistant`.
        """

    def read_request(self, body: Document) -> ModelRequest:
        """Return what is asked. Raises `ApiFormatError`."""
        said, answers = self._context(body)
        limits = [values.count_or_none(body.get(key), key) for key in self.limits]
        return ModelRequest(
            model=self.path_model or values.text_or_empty(body.get("model"), "model"),
            stream=values.truth_or_false(body.get("stream"), "stream"),
            max_tokens_out=max((limit for limit in limits if limit is not None), default=None),
            said=said,
            answers=answers,
            continues=any(body.get(key) is not None for key in self.earlier),
            characters=values.characters([body.get(key) for key in self.texts]),
        )

    def prepare(self, body: Document, *, model: str | None, max_tokens_out: int | None) -> Document:
        """Return the request as it is sent on: with another model, and with no more than `max_tokens_out` where it sets
        a limit that is higher. The same object when nothing has to be changed.
        """
        changes: Document = {}
        if model is not None and body.get("model") != model and not (self.path_model and "model" not in body):
            changes["model"] = model
        for key in self.limits:
            if max_tokens_out is not None and isinstance(body.get(key), int) and body[key] > max_tokens_out:
                changes[key] = max_tokens_out
        return {**body, **changes} if changes else body

    def asking_for_usage(self, body: Document) -> Document:
        """Return the request so that a streamed reply says what it used. The same object when it does so anyway."""
        return body

    @abstractmethod
    def read_reply(self, body: Document) -> ModelReply:
        """Return what was answered. Raises `ApiFormatError`."""

    @abstractmethod
    def remove_calls(self, body: Document, call_ids: Collection[str]) -> Document:
        """Return the reply without some of its tool calls, well-formed: with none left it ends as a reply without any.
        With a call that the provider has run its result goes too.
        """

    @abstractmethod
    def stream(self, body: Document, is_withheld: IsWithheld) -> ReplyStream:
        """Return a streamed reply to this request, as the agent sent it."""

    def error_body(self, status: int, code: str, message: str) -> Document:
        """Return an error as this API words it, which its client libraries raise with the message in it."""
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def error_event(self, code: str, message: str) -> bytes:
        """Return an error in the middle of a stream, which client libraries raise."""
        return event_bytes(self.error_body(500, code, message))

    @abstractmethod
    def _context(self, body: Document) -> Context:
        """Return what the request tells the model. Raises `ApiFormatError`."""


def set_keys(**keys: Any) -> Document:
    """Return the keys that have a value."""
    return {key: value for key, value in keys.items() if value is not None}


def raise_error(*places: Any, reason: Any = None) -> None:
    """Raise the provider's message when one of these parts of a reply or an event holds an error, or is one, or when
    the reason why the model ended is that something failed or that a filter stopped it.
    """
    for place in places:
        if not isinstance(place, dict):
            continue
        if place.get("error"):
            raise values.provider_error(place["error"])
        if "error" in (place.get("type"), place.get("object")):
            raise values.provider_error(place)
    if isinstance(reason, str) and reason.partition(":")[0] in _FAILED:
        raise values.provider_error({"code": reason, "message": f"the model was stopped: {reason}"})


def openai_usage(given: Any, *, tokens_in: str, tokens_out: str) -> Usage:
    """Return the usage of a reply of OpenAI's APIs; the two names are those of the API. Some servers count the tokens
    of reasoning in `total_tokens` or in the details alone.
    """
    fields = values.mapping_or_empty(given, "usage")
    name = f"{tokens_in}_details"
    details = values.mapping_or_empty(fields.get(name), f"usage.{name}")
    read = values.count_or_none(fields.get(tokens_in), f"usage.{tokens_in}")
    written = values.count_or_none(fields.get(tokens_out), f"usage.{tokens_out}")
    if read is not None and written is not None:
        out = fields.get(f"{tokens_out}_details")
        thought = values.count_or_zero(out.get("reasoning_tokens") if isinstance(out, dict) else None)
        rest = values.count_or_zero(fields.get("total_tokens")) - read
        written = max(written, rest, written + thought if thought > written else 0)
    return Usage(
        tokens_in=read,
        tokens_out=written,
        tokens_cached=values.count_or_none(details.get("cached_tokens"), f"usage.{name}.cached_tokens"),
        tokens_cache_write=values.count_or_none(details.get("cache_write_tokens"), f"usage.{name}.cache_write_tokens"),
    )
