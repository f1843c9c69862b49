"""Anthropic's messages, and everything compatible with them."""

from collections.abc import Collection
from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.errors import provider_error
from passgate.tasks.providers.apis.message_blocks import (
    answer_of,
    asked_call,
    call_id_of,
    is_answer,
    is_call,
    reason_with,
    usage_of,
)
from passgate.tasks.providers.apis.message_stream import MessageAssembly
from passgate.tasks.providers.apis.requests import changes_of, with_changes
from passgate.tasks.providers.apis.stream import CheckedStream
from passgate.tasks.providers.apis.texts import characters, clean, content_text, reply_text
from passgate.tasks.providers.exchange import (
    ApiFormatError,
    ModelReply,
    ModelRequest,
    ReplyStream,
    Said,
    ToolAnswer,
    Withheld,
)
from passgate.tasks.providers.sse import event_bytes

_LIMITS = ("max_tokens",)
_TEXT_KEYS = ("system", "messages", "tools", "output_config")
_LEAST_THINKING = 1024
"""The provider refuses a smaller budget of tokens for thinking."""
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Messages:
    """The `Api` of POST /v1/messages."""

    name = "messages"
    path = "v1/messages"

    def read_request(self, body: dict[str, Any]) -> ModelRequest:
        """See `Api.read_request`."""
        said, answers = _context(values.sequence(body.get("messages"), "messages"))
        system = content_text(body.get("system"), "system")
        return ModelRequest(
            model=values.text_or_empty(body.get("model"), "model"),
            stream=values.truth_or_false(body.get("stream"), "stream"),
            max_tokens_out=values.count_or_none(body.get("max_tokens"), "max_tokens"),
            said=(Said("system", system), *said) if system else said,
            answers=answers,
            continues=False,
            characters=characters([body.get(key) for key in _TEXT_KEYS]),
        )

    def prepared(self, body: dict[str, Any], *, model: str | None, max_tokens_out: int | None) -> dict[str, Any]:
        """See `Api.prepared`. A budget for thinking that does not fit below the lowered limit is lowered with it."""
        changes = changes_of(body, model=model, limits=_LIMITS, most=max_tokens_out)
        if "max_tokens" in changes:
            changes |= _less_thinking(body, changes["max_tokens"])
        return with_changes(body, changes)

    def read_reply(self, body: dict[str, Any]) -> ModelReply:
        """See `Api.read_reply`."""
        if body.get("type") == "error":
            raise provider_error(body.get("error"))
        blocks = _blocks(body)
        return ModelReply(
            text=clean(reply_text([block for block in blocks if block.get("type") == "text"], "content")),
            calls=tuple(asked_call(block, f"content[{n}]") for n, block in enumerate(blocks) if is_call(block)),
            usage=usage_of(body.get("usage")),
            model=clean(values.text_or_empty(body.get("model"), "model")),
        )

    def without_calls(self, body: dict[str, Any], call_ids: Collection[str]) -> dict[str, Any]:
        """See `Api.without_calls`. With a call that the provider has run its result goes too."""
        blocks = _blocks(body)
        kept = [block for block in blocks if call_id_of(block) not in call_ids]
        if len(kept) == len(blocks):
            return body
        reason = reason_with(body.get("stop_reason"), filter(is_call, kept))
        return {**body, "content": kept, "stop_reason": reason}

    def stream(self, body: dict[str, Any], withheld: Withheld) -> ReplyStream:
        """See `Api.stream`."""
        return CheckedStream(MessageAssembly(withheld, model=values.text_or_empty(body.get("model"), "model")))

    def error_body(self, status: int, code: str, message: str) -> dict[str, Any]:
        """See `Api.error_body`."""
        kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": message, "code": code}}

    def error_event(self, code: str, message: str) -> bytes:
        """See `Api.error_event`."""
        return event_bytes(self.error_body(500, code, message), "error")


def _less_thinking(body: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    thinking = body.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(budget, int) or budget < max_tokens:
        return {}
    if max_tokens <= _LEAST_THINKING:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {**body["thinking"], "budget_tokens": max_tokens - 1}}


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = values.sequence(body.get("content"), "content")
    return [values.mapping(block, f"content[{number}]") for number, block in enumerate(blocks)]


def _context(messages: list[Any]) -> tuple[tuple[Said, ...], tuple[ToolAnswer, ...]]:
    said: list[Said] = []
    answers: list[ToolAnswer] = []
    for number, given in enumerate(messages):
        place = f"messages[{number}]"
        message = values.mapping(given, place)
        role = values.text(message.get("role"), f"{place}.role")
        content = message.get("content")
        rest = content
        if isinstance(content, list):
            answers.extend(
                answer_of(block, f"{place}.content[{n}]") for n, block in enumerate(content) if is_answer(block)
            )
            rest = [block for block in content if not is_answer(block)]
        if role == "system" or (role == "user" and (rest or not content)):
            said.append(Said("system" if role == "system" else "user", content_text(rest, f"{place}.content")))
        elif role not in {"user", "assistant"}:
            raise ApiFormatError(f"{place}.role: {role!r} is none of the roles of messages")
    return tuple(said), tuple(answers)
