"""OpenAI's responses."""

from collections.abc import Collection
from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.openai_shared import error_fields, raise_error
from passgate.tasks.providers.apis.requests import changes_of, with_changes
from passgate.tasks.providers.apis.response_items import (
    answer_of,
    is_answer,
    items_of,
    kind_of,
    reply_of,
    without,
)
from passgate.tasks.providers.apis.response_stream import ResponseAssembly
from passgate.tasks.providers.apis.stream import CheckedStream
from passgate.tasks.providers.apis.texts import characters, content_text
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

_LIMITS = ("max_output_tokens",)
_TEXT_KEYS = ("instructions", "input", "tools", "text", "prompt")


class Responses:
    """The `Api` of POST /responses."""

    name = "responses"
    path = "responses"

    def read_request(self, body: dict[str, Any]) -> ModelRequest:
        """See `Api.read_request`."""
        if values.truth_or_false(body.get("background"), "background"):
            raise ApiFormatError("background: a reply that is fetched later cannot be metered; ask for it at once")
        said, answers = _context(body.get("input"))
        instructions = content_text(body.get("instructions"), "instructions")
        return ModelRequest(
            model=values.text_or_empty(body.get("model"), "model"),
            stream=values.truth_or_false(body.get("stream"), "stream"),
            max_tokens_out=values.count_or_none(body.get("max_output_tokens"), "max_output_tokens"),
            said=(Said("system", instructions), *said) if instructions else said,
            answers=answers,
            continues=any(body.get(key) is not None for key in ("previous_response_id", "conversation")),
            characters=characters([body.get(key) for key in _TEXT_KEYS]),
        )

    def prepared(self, body: dict[str, Any], *, model: str | None, max_tokens_out: int | None) -> dict[str, Any]:
        """See `Api.prepared`."""
        return with_changes(body, changes_of(body, model=model, limits=_LIMITS, most=max_tokens_out))

    def read_reply(self, body: dict[str, Any]) -> ModelReply:
        """See `Api.read_reply`."""
        if body.get("object") != "response":
            raise_error(body)
        values.sequence(body.get("output"), "output")
        return reply_of(body)

    def without_calls(self, body: dict[str, Any], call_ids: Collection[str]) -> dict[str, Any]:
        """See `Api.without_calls`. With a call that the provider has run its result goes too."""
        items = items_of(body)
        kept = without(items, call_ids)
        return body if len(kept) == len(items) else {**body, "output": kept}

    def stream(self, body: dict[str, Any], withheld: Withheld) -> ReplyStream:
        """See `Api.stream`."""
        return CheckedStream(ResponseAssembly(withheld, model=values.text_or_empty(body.get("model"), "model")))

    def error_body(self, status: int, code: str, message: str) -> dict[str, Any]:
        """See `Api.error_body`."""
        return {"error": error_fields(status, code, message)}

    def error_event(self, code: str, message: str) -> bytes:
        """See `Api.error_event`. What is documented as keys of the event comes as its `error` too, which raises."""
        fields = error_fields(500, code, message)
        stated = {"code": code, "message": message, "param": None, "sequence_number": 0}
        return event_bytes({"type": "error", **stated, "error": fields}, "error")


def _context(given: Any) -> tuple[tuple[Said, ...], tuple[ToolAnswer, ...]]:
    if given is None or isinstance(given, str):
        return ((Said("user", given),) if given is not None else ()), ()
    items = [values.mapping(item, f"input[{n}]") for n, item in enumerate(values.sequence(given, "input"))]
    said = [_said(item, f"input[{n}]") for n, item in enumerate(items) if kind_of(item) in {"", "message"}]
    answers = [answer_of(item, f"input[{n}]") for n, item in enumerate(items) if is_answer(item)]
    return tuple(one for one in said if one is not None), tuple(answers)


def _said(item: dict[str, Any], place: str) -> Said | None:
    match values.text_or_empty(item.get("role"), f"{place}.role"):
        case "system" | "developer":
            return Said("system", content_text(item.get("content"), f"{place}.content"))
        case "user":
            return Said("user", content_text(item.get("content"), f"{place}.content"))
        case "assistant" | "":
            return None
        case role:
            raise ApiFormatError(f"{place}.role: {role!r} is none of the roles of responses")
