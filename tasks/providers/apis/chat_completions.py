"""OpenAI's chat completions, and everything compatible with them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from passgate.tasks.model.price import Charges
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.interface import (
    Api,
    Context,
    Document,
    IsWithheld,
    Owners,
    ReplyStream,
    openai_usage,
    raise_error,
    set_keys,
)
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, InputMessage, ModelReply, ToolAnswer
from passgate.tasks.providers.sse import event_bytes

_GIVEN_AS = {"function": "arguments", "custom": "input"}
_OF_CALLS = frozenset({"tool_calls", "function_call"})  # Keys of a message, and the reasons to finish that go with them
_ENVELOPE = ("id", "object", "created", "model", "service_tier", "system_fingerprint")
_REASONING = ("reasoning_content", "reasoning")
_DELTA = "choices[0].delta"
_MESSAGE = "choices[0].message"


class ChatCompletions(Api):
    """The `Api` of POST /chat/completions."""

    name = "chat_completions"
    path_pattern = "chat/completions"
    limits: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "max_tokens")
    texts: ClassVar[tuple[str, ...]] = ("messages", "tools", "functions", "response_format")
    schema_key: ClassVar[str] = "response_format"

    def _context(self, body: Document) -> Context:
        if (values.count_or_none(body.get("n"), "n") or 1) > 1:
            raise ApiFormatError("n: more than one choice of a reply cannot be metered; ask for one")
        said: list[InputMessage] = []
        answers: list[ToolAnswer] = []
        for number, given in enumerate(values.sequence(body.get("messages"), "messages")):
            place = f"messages[{number}]"
            message = values.mapping(given, place)
            match values.text(message.get("role"), f"{place}.role"):
                case "system" | "developer":
                    said.append(InputMessage("system", _content(message, place)))
                case "user":
                    said.append(InputMessage("user", _content(message, place)))
                case "tool":
                    answers.append(_answer(message, "tool_call_id", place))
                case "function":
                    answers.append(_answer(message, "name", place))
                case "assistant":
                    pass
                case role:
                    raise ApiFormatError(f"{place}.role: {role!r} is none of the roles of chat completions")
        return tuple(said), tuple(answers)

    def question(
        self, model: str, messages: Sequence[tuple[str, str]], *, schema: Document | None, temperature: float | None
    ) -> Document:
        form = schema and {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
        said = [{"role": role, "content": text} for role, text in messages]
        return {"model": model, **set_keys(response_format=form, temperature=temperature), "messages": said}

    def asking_for_usage(self, body: Document) -> Document:
        options = body.get("stream_options") or {}
        if not body.get("stream") or _wants_usage(body) or not isinstance(options, dict):
            return body
        return {**body, "stream_options": {**options, "include_usage": True}}

    def read_reply(self, body: Document) -> ModelReply:
        raise_error(body)
        choice, message = _choice(body)
        raise_error(choice, message, reason=choice.get("finish_reason"))
        text = values.reply_text(message.get("content"), f"{_MESSAGE}.content")
        return ModelReply(
            text=values.clean(text + values.text_or_empty(message.get("refusal"), f"{_MESSAGE}.refusal")),
            calls=tuple(_model_calls(message)),
            usage=_usage(body.get("usage")),
            model=values.clean(values.text_or_empty(body.get("model"), "model")),
            charges=Charges(tier=values.string_or_empty(body.get("service_tier")), tools=_searches(message)),
        )

    def remove_calls(self, body: Document, call_ids: Collection[str]) -> Document:
        choice, message = _choice(body)
        if not any(call.call_id in call_ids for call in _model_calls(message)):
            return body
        changed = _without(message, call_ids)
        reason = choice.get("finish_reason")
        reason = reason if _has_calls(changed) else _reason_without_calls(reason)
        return {**body, "choices": [{**choice, "message": changed, "finish_reason": reason}]}

    def stream(self, body: Document, is_withheld: IsWithheld) -> ReplyStream:
        model = values.text_or_empty(body.get("model"), "model")
        return _ChatStream(is_withheld, model=model, shows_usage=_wants_usage(body))


def _content(message: Document, place: str) -> str:
    return values.content_text(message.get("content"), f"{place}.content")


def _answer(message: Document, identity: str, place: str) -> ToolAnswer:
    call_id = values.text_or_empty(message.get(identity), f"{place}.{identity}")
    return ToolAnswer(call_id, _content(message, place), is_error=None)


def _wants_usage(body: Document) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _usage(given: Any) -> Usage:
    return openai_usage(given, tokens_in="prompt_tokens", tokens_out="completion_tokens")


def _searches(message: Document) -> dict[str, int]:
    """Return the use of the web search that a message cites."""
    notes = message.get("annotations")
    listed = notes if isinstance(notes, list) else []
    cited = any(isinstance(note, dict) and note.get("type") == "url_citation" for note in listed)
    return {"web_search": 1} if cited else {}


def _choice(body: Document) -> tuple[Document, Document]:
    """Return the one choice of a whole reply, and its message."""
    choices = values.sequence(body.get("choices"), "choices")
    if len(choices) != 1:
        raise ApiFormatError(f"choices: there are {len(choices)} where one is asked for")
    choice = values.mapping(choices[0], "choices[0]")
    return choice, values.mapping(choice.get("message"), _MESSAGE)


def _model_calls(message: Document) -> Iterator[AskedCall]:
    entries = values.sequence_or_empty(message.get("tool_calls"), "tool_calls")
    for position, entry in enumerate(entries):
        yield _call_of_entry(entry, position)
    if message.get("function_call") is not None:
        yield _call_of_function_call(message["function_call"])


def _without(message: Document, call_ids: Collection[str]) -> Document:
    """Return a whole message without these calls."""
    changed = dict(message)
    entries = changed.pop("tool_calls", None) or []
    kept = [entry for position, entry in enumerate(entries) if _call_of_entry(entry, position).call_id not in call_ids]
    if kept:
        changed["tool_calls"] = kept
    legacy = changed.get("function_call")
    if legacy is not None and _call_of_function_call(legacy).call_id in call_ids:
        del changed["function_call"]
    if changed.get("content") is None and not _has_calls(changed):
        changed["content"] = ""
    return changed


def _has_calls(message: Document) -> bool:
    return any(message.get(key) for key in _OF_CALLS)


def _reason_without_calls(reason: Any) -> Any:
    """Return the reason to finish of a reply whose calls are all taken out."""
    return "stop" if isinstance(reason, str) and reason in _OF_CALLS else reason


def _entry_type(entry: Document) -> str:
    """Return whether an entry calls a `function`, with its arguments as JSON, or a `custom` tool, with a text."""
    return "custom" if entry.get("custom") is not None else "function"


def _call_of_entry(entry: Any, position: int) -> AskedCall:
    place = f"tool_calls[{position}]"
    fields = values.mapping(entry, place)
    kind = _entry_type(fields)
    called = values.mapping(fields.get(kind), f"{place}.{kind}")
    name = values.text(called.get("name"), f"{place}.{kind}.name")
    identity = values.text_or_empty(fields.get("id"), f"{place}.id")
    return _call(identity, position, kind, name, called.get(_GIVEN_AS[kind]))


def _call_of_function_call(function_call: Any) -> AskedCall:
    """`function_call` has no id: its answer names the function."""
    called = values.mapping(function_call, "function_call")
    name = values.text(called.get("name"), "function_call.name")
    return _call(name, 0, "function", name, called.get("arguments"))


def _call(identity: str, position: int, kind: str, name: str, given: Any) -> AskedCall:
    """Return a call from what its entry says; one without an id goes by its position."""
    is_text = kind == "custom" and isinstance(given, str)
    arguments = {"input": values.clean(given)} if is_text else values.parse_arguments(given)
    return AskedCall(identity or f"tool_calls[{position}]", values.clean(name), arguments)


@dataclass(slots=True)
class _PartialCall:
    index: int | None
    position: int
    kind: str
    has_id: bool
    identity: str = ""
    name: str = ""
    given: list[str] = field(default_factory=list)
    taken_out: bool = False

    def asked(self) -> AskedCall:
        if not self.name:
            raise ApiFormatError(f"tool_calls[{self.position}].{self.kind}.name: is missing")
        # A `function_call` has no id: its answer names the function.
        identity = self.identity if self.has_id else self.name
        return _call(identity, self.position, self.kind, self.name, "".join(self.given))


class _ChatStream(ReplyStream):
    """A chat completion from its chunks. Its calls are whole when it says why it finished."""

    _open_calls: dict[int, _PartialCall]
    """By their position."""

    def __init__(self, is_withheld: IsWithheld, *, model: str, shows_usage: bool) -> None:
        super().__init__(is_withheld)
        self._shows_usage = shows_usage
        self._envelope: Document = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._begun: list[_PartialCall] = []
        self._has_choice = False
        self._is_done = False

    def _take(self, event: Document) -> Owners:
        raise_error(event)
        if not self._model:
            self._model = values.text_or_empty(event.get("model"), "model")
            self._envelope.update({key: event[key] for key in _ENVELOPE if key in event})
        if event.get("usage") is not None:
            self._usage = _usage(event["usage"])
        if tier := values.string_or_empty(event.get("service_tier")):
            self._charges = replace(self._charges, tier=tier)
        choices = values.sequence_or_empty(event.get("choices"), "choices")
        if not choices:
            return ()
        self._has_choice = True
        choice = values.mapping(choices[0], "choices[0]")
        if len(choices) > 1 or values.count_or_none(choice.get("index"), "choices[0].index"):
            raise ApiFormatError("choices: there is more than the one that is asked for")
        raise_error(choice, choice.get("delta"), reason=choice.get("finish_reason"))
        owners = self._take_delta(values.mapping_or_empty(choice.get("delta"), _DELTA))
        if choice.get("finish_reason") is not None:
            self._decide_all()
            self.ended = True
        return owners

    def _take_delta(self, delta: Document) -> Owners:
        self._say(values.reply_text(delta.get("content"), f"{_DELTA}.content"))
        self._say(values.text_or_empty(delta.get("refusal"), f"{_DELTA}.refusal"))
        if searches := _searches(delta):
            self._charges = replace(self._charges, tools=searches)
        for key in _REASONING:
            if isinstance(delta.get(key), str):
                self._write(delta[key])
        entries = values.sequence_or_empty(delta.get("tool_calls"), f"{_DELTA}.tool_calls")
        owners = tuple([self._take_entry(entry) for entry in entries])
        if delta.get("function_call") is not None:
            called = values.mapping(delta["function_call"], f"{_DELTA}.function_call")
            begun = next((call for call in self._open_calls.values() if not call.has_id), None)
            call = begun or self._begin(_PartialCall(None, len(self._begun), "function", has_id=False))
            owners += (self._extend(call, called),)
        return owners

    def _take_entry(self, entry: Any) -> int:
        place = f"{_DELTA}.tool_calls[]"
        fields = values.mapping(entry, place)
        index = values.count_or_none(fields.get("index"), f"{place}.index")
        identity = values.text_or_empty(fields.get("id"), f"{place}.id")
        kind = _entry_type(fields)
        called = values.mapping_or_empty(fields.get(kind), f"{place}.{kind}")
        call = self._same(index, identity, called)
        if call is None:
            call = self._begin(_PartialCall(index, len(self._begun), kind, has_id=True, identity=identity))
        elif called:
            call.kind = kind
        return self._extend(call, called)

    def _same(self, index: int | None, identity: str, called: Document) -> _PartialCall | None:
        """Return the call that a piece goes on with, `None` when it begins one.

        Not every server counts: some give each call the index 0, or none, and some give each piece another id. A name
        with another id, or another name after arguments, is another call.
        """
        indexed = [call for call in self._begun if call.has_id and (index is None or call.index == index)]
        if not indexed or indexed[-1].position not in self._open_calls:
            return None
        last = indexed[-1]
        has_other_id = identity not in {"", last.identity}
        has_other_name = called.get("name") != last.name and any(last.given)
        return None if called.get("name") and (has_other_id or has_other_name) else last

    def _begin(self, call: _PartialCall) -> _PartialCall:
        self._begun.append(call)
        self._open_calls[call.position] = call
        self.started = True
        return call

    def _extend(self, call: _PartialCall, called: Document) -> int:
        place = f"{_DELTA}.tool_calls[].{call.kind}"
        name = values.text_or_empty(called.get("name"), f"{place}.name")
        if name != call.name:
            # Some servers repeat the name with every piece.
            call.name += name
        given = values.text_or_empty(called.get(_GIVEN_AS[call.kind]), place)
        call.given.append(given)
        self._write(given)
        return call.position

    def _decide_all(self) -> None:
        for call in sorted(self._open_calls.values(), key=lambda call: call.index or 0):
            call.taken_out = self._decide(call.asked())
        self._settle()

    def _settle(self) -> None:
        self._open_calls.clear()
        taken_out = {call.index for call in self._begun if call.taken_out}
        kept = {call.index for call in self._begun if not call.taken_out}
        self._gaps = {index for index in taken_out - kept if index is not None}

    def _finish(self) -> None:
        if not self._has_choice:
            raise ApiFormatError("choices: none came before the end of the stream")
        self._decide_all()
        self.ended = self._is_done = True

    def _remaining(self, event: Document, owners: Owners) -> Document | None:
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
            finished = _reason_without_calls(finished)
            if not any(self._pieces):
                delta["content"] = ""
        return {**event, "choices": [{**choice, "delta": delta, "finish_reason": finished}]}

    def _remaining_delta(self, delta: Document, owners: Owners) -> Document:
        changed = dict(delta)
        entries = changed.pop("tool_calls", None) or []
        kept = [
            entry if call.index is None else {**entry, "index": self._counted(call.index)}
            for entry, call in zip(entries, [self._begun[owner] for owner in owners], strict=False)
            if not call.taken_out
        ]
        if kept:
            changed["tool_calls"] = kept
        if changed.get("function_call") is not None and self._begun[owners[-1]].taken_out:
            del changed["function_call"]
        return changed

    def _give_up(self) -> None:
        for call in self._open_calls.values():
            call.taken_out = True
        self._settle()

    def _ending(self) -> list[bytes]:
        last = {**self._envelope, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}]}
        events = [] if self.ended else [event_bytes(last)]
        return events if self._is_done else [*events, b"data: [DONE]\n\n"]
