"""Anthropic's messages, and everything compatible with them.

Content blocks whose type ends in `tool_use` are calls: those that the agent runs and those that the provider has run
itself (`server_tool_use`, `mcp_tool_use`), whose results, of a type that ends in `tool_result`, are in the same
message.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

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
    raise_error,
    set_keys,
)
from passgate.tasks.providers.exchange import ApiFormatError, AskedCall, InputMessage, ModelReply, ToolAnswer
from passgate.tasks.providers.sse import event_bytes

_LEAST_THINKING = 1024  # The provider refuses a smaller budget of tokens for thinking
_LONGEST_JUDGEMENT = 8192  # Tokens; the API wants a limit
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_DELTAS = ("text", "thinking", "partial_json")
_BLOCK_EVENTS = frozenset({"content_block_start", "content_block_delta", "content_block_stop"})


class Messages(Api):
    """The `Api` of POST /v1/messages."""

    name = "messages"
    path_pattern = "v1/messages"
    limits = ("max_tokens",)
    schema_key = "output_config"
    texts = ("system", "messages", "tools", "output_config")

    def _context(self, body: Document) -> Context:
        said: list[InputMessage] = []
        answers: list[ToolAnswer] = []
        for number, given in enumerate(values.sequence(body.get("messages"), "messages")):
            place = f"messages[{number}]"
            message = values.mapping(given, place)
            role = values.text(message.get("role"), f"{place}.role")
            content = message.get("content")
            rest = content
            if isinstance(content, list):
                results = [(n, block) for n, block in enumerate(content) if _is_answer(block)]
                answers += [_tool_answer(block, f"{place}.content[{n}]") for n, block in results]
                rest = [block for block in content if not _is_answer(block)]
            if role == "system" or (role == "user" and (rest or not content)):
                text = values.content_text(rest, f"{place}.content")
                said.append(InputMessage("system" if role == "system" else "user", text))
            elif role not in {"user", "assistant"}:
                raise ApiFormatError(f"{place}.role: {role!r} is none of the roles of messages")
        system = values.content_text(body.get("system"), "system")
        return ((InputMessage("system", system), *said) if system else tuple(said)), tuple(answers)

    def question(
        self, model: str, messages: Sequence[tuple[str, str]], *, schema: Document | None, temperature: float | None
    ) -> Document:
        system = "\n\n".join(text for role, text in messages if role == "system")
        said = [{"role": role, "content": text} for role, text in messages if role != "system"]
        form = schema and {"format": {"type": "json_schema", "schema": schema}}
        more = set_keys(system=system or None, output_config=form, temperature=temperature)
        return {"model": model, "max_tokens": _LONGEST_JUDGEMENT, **more, "messages": said}

    def prepare(self, body: Document, *, model: str | None, max_tokens_out: int | None) -> Document:
        """Return the request with a budget for thinking that fits below a limit that is lowered."""
        sent = super().prepare(body, model=model, max_tokens_out=max_tokens_out)
        most, thinking = sent.get("max_tokens"), body.get("thinking")
        budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
        if most == body.get("max_tokens") or not isinstance(most, int) or not isinstance(budget, int) or budget < most:
            return sent
        fits = {"type": "disabled"} if most <= _LEAST_THINKING else {**body["thinking"], "budget_tokens": most - 1}
        return {**sent, "thinking": fits}

    def read_reply(self, body: Document) -> ModelReply:
        raise_error(body, reason=body.get("stop_reason"))
        blocks = _blocks(body)
        text = values.reply_text([block for block in blocks if block.get("type") == "text"], "content")
        return ModelReply(
            text=values.clean(text),
            calls=tuple(_asked_call(block, f"content[{n}]") for n, block in enumerate(blocks) if _is_call(block)),
            usage=_read_usage(body.get("usage")),
            model=values.clean(values.text_or_empty(body.get("model"), "model")),
            charges=_read_charges(values.mapping_or_empty(body.get("usage"), "usage"), blocks),
        )

    def remove_calls(self, body: Document, call_ids: Collection[str]) -> Document:
        blocks = _blocks(body)
        kept = [block for block in blocks if _call_id(block) not in call_ids]
        if len(kept) == len(blocks):
            return body
        reason = _reason_with(body.get("stop_reason"), filter(_is_call, kept))
        return {**body, "content": kept, "stop_reason": reason}

    def stream(self, body: Document, is_withheld: IsWithheld) -> ReplyStream:
        return _MessageStream(is_withheld, model=values.text_or_empty(body.get("model"), "model"))

    def error_body(self, status: int, code: str, message: str) -> Document:
        kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": message, "code": code}}

    def error_event(self, code: str, message: str) -> bytes:
        return event_bytes(self.error_body(500, code, message), "error")


def _blocks(body: Document) -> list[Document]:
    blocks = values.sequence(body.get("content"), "content")
    return [values.mapping(block, f"content[{number}]") for number, block in enumerate(blocks)]


def _is_call(block: Document) -> bool:
    return values.block_type(block).endswith("tool_use")


def _is_answer(block: Any) -> bool:
    return isinstance(block, dict) and values.block_type(block).endswith("tool_result")


def _call_id(block: Document) -> str:
    """Return the call that a block is, or is the result of; empty for other blocks."""
    identity = block.get("id" if _is_call(block) else "tool_use_id")
    return identity if isinstance(identity, str) else ""


def _asked_call(block: Document, place: str, given: str | None = None) -> AskedCall:
    """Return a block as a call; `given` is the JSON text of its input where that came apart from it."""
    return AskedCall(
        call_id=values.text(block.get("id"), f"{place}.id"),
        tool=values.clean(values.text(block.get("name"), f"{place}.name")),
        arguments=values.parse_arguments(given or block.get("input")),
    )


def _tool_answer(block: Document, place: str) -> ToolAnswer:
    """Return a block as a result: text of the agent's, of the provider's own tools what they gave."""
    content = block.get("content")
    is_error = values.truth_or_false(block.get("is_error"), f"{place}.is_error")
    if isinstance(content, dict):
        is_error = is_error or values.block_type(content).endswith("_error")
    is_text = values.block_type(block) == "tool_result"
    return ToolAnswer(
        call_id=values.text(block.get("tool_use_id"), f"{place}.tool_use_id"),
        result=values.content_text(content, f"{place}.content") if is_text else content,
        is_error=is_error,
    )


def _reason_with(reason: Any, calls: Iterable[Document]) -> Any:
    """Return the reason to stop of a reply that is left with these calls: without one to go on from, the turn
    is over.
    """
    kinds = {values.block_type(call) for call in calls}
    is_over = (reason == "tool_use" and "tool_use" not in kinds) or (reason == "pause_turn" and not kinds)
    return "end_turn" if is_over else reason


def _read_usage(given: Any) -> Usage:
    """Return the usage of a message. Anthropic counts tokens from and to its cache beside `input_tokens`."""
    fields = values.mapping_or_empty(given, "usage")
    cached, written, rest, out = (
        values.count_or_none(fields.get(key), f"usage.{key}")
        for key in ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens", "output_tokens")
    )
    whole = None if rest is None else rest + (cached or 0) + (written or 0)
    return Usage(tokens_in=whole, tokens_cached=cached, tokens_cache_write=written, tokens_out=out)


def _read_charges(usage: Document, blocks: Iterable[Document]) -> Charges:
    """Return what is charged beside the tokens. How often code ran only the blocks of the message say."""
    created, used = usage.get("cache_creation"), usage.get("server_tool_use")
    hour = created.get("ephemeral_1h_input_tokens") if isinstance(created, dict) else None
    counts = used if isinstance(used, dict) else {}
    tools = {name.removesuffix("_requests"): values.count_or_zero(count) for name, count in counts.items()}
    code = sum(
        block.get("type") == "server_tool_use" and str(block.get("name")).endswith("code_execution") for block in blocks
    )
    tier = "fast" if usage.get("speed") == "fast" else values.string_or_empty(usage.get("service_tier"))
    return Charges(tier, values.count_or_zero(hour), {**tools, "code_execution": code})


class _MessageStream(ReplyStream):
    """A message from its events. A call is whole when its block stops."""

    _open_calls: dict[int, tuple[Document, list[str]]]
    """Blocks, with the pieces of their input."""

    def __init__(self, is_withheld: IsWithheld, *, model: str) -> None:
        super().__init__(is_withheld)
        self._asked_model = model
        self._used: Document = {}
        self._has_begun = False
        self._has_reason = False
        self._open: set[int] = set()  # The blocks under way that are no calls
        self._refused: set[str] = set()
        self._called: list[Document] = []
        self._left: list[Document] = []  # The calls that the agent gets

    def _take(self, event: Document) -> Owners:
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
                self._take_usage_and_reason(event)
            case "message_stop":
                self._finish()
            case _:
                raise_error(event)
        return ()

    def _begin(self, message: Document) -> None:
        self._has_begun = True
        self._model = values.text_or_empty(message.get("model"), "message.model")
        self._used = dict(values.mapping_or_empty(message.get("usage"), "message.usage"))
        # What was written so far is no account of what will have been written.
        self._usage = _read_usage(self._used).model_copy(update={"tokens_out": None})

    def _begin_block(self, index: int, block: Document) -> None:
        self.started = True
        if _is_call(block):
            self._open_calls[index] = (block, [])
            self._called.append(block)
        elif _call_id(block) in self._refused:
            self._gaps.add(index)
        else:
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
        call = _asked_call(block, f"content[{index}]", "".join(given))
        if self._decide(call):
            self._gaps.add(index)
            self._refused.add(call.call_id)
        else:
            self._left.append(block)

    def _take_usage_and_reason(self, event: Document) -> None:
        usage = values.mapping_or_empty(event.get("usage"), "usage")
        # Counts are of the whole message; those that did not change may be left out.
        self._used.update({key: value for key, value in usage.items() if value is not None})
        if usage:
            self._usage = _read_usage(self._used)
            self._charges = _read_charges(self._used, self._called)
        delta = values.mapping_or_empty(event.get("delta"), "delta")
        raise_error(delta, reason=delta.get("stop_reason"))
        self._has_reason = self._has_reason or delta.get("stop_reason") is not None

    def _finish(self) -> None:
        # A call whose block never stopped is whole too.
        for index in sorted(self._open_calls):
            self._end_block(index)
        self.ended = True

    def _remaining(self, event: Document, owners: Owners) -> Document | None:
        kind = event.get("type")
        if self._gaps and kind in _BLOCK_EVENTS:
            return self._renumbered(event, "index")
        if not self._gaps or kind != "message_delta":
            return event
        delta = event.get("delta") or {}
        reason = delta.get("stop_reason")
        changed = _reason_with(reason, self._left)
        return event if changed == reason else {**event, "delta": {**delta, "stop_reason": changed}}

    def _ending(self) -> list[bytes]:
        events: list[Document] = []
        if not self._has_begun:
            message = {"id": "msg_cut_off", "type": "message", "role": "assistant", "content": []}
            usage = {"input_tokens": 0, "output_tokens": 0}
            end = {"model": self._asked_model, "stop_reason": None, "stop_sequence": None, "usage": usage}
            events = [{"type": "message_start", "message": {**message, **end}}]
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
