"""OpenAI's chat completions, and everything compatible with them."""

from collections.abc import Collection
from typing import Any

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.chat_calls import calls_of, has_calls, reason_without_calls, without
from passgate.tasks.providers.apis.chat_stream import ChatAssembly
from passgate.tasks.providers.apis.openai_shared import error_fields, raise_error, usage_of
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

_LIMITS = ("max_completion_tokens", "max_tokens")
_TEXT_KEYS = ("messages", "tools", "functions", "response_format")


class ChatCompletions:
    """The `Api` of POST /chat/completions."""

    name = "chat_completions"
    path = "chat/completions"

    def read_request(self, body: dict[str, Any]) -> ModelRequest:
        """See `Api.read_request`."""
        if (values.count_or_none(body.get("n"), "n") or 1) > 1:
            raise ApiFormatError("n: more than one choice of a reply cannot be metered; ask for one")
        limits = [values.count_or_none(body.get(key), key) for key in _LIMITS]
        said, answers = _context(values.sequence(body.get("messages"), "messages"))
        return ModelRequest(
            model=values.text_or_empty(body.get("model"), "model"),
            stream=values.truth_or_false(body.get("stream"), "stream"),
            max_tokens_out=max((limit for limit in limits if limit is not None), default=None),
            said=said,
            answers=answers,
            continues=False,
            characters=characters([body.get(key) for key in _TEXT_KEYS]),
        )

    def prepared(self, body: dict[str, Any], *, model: str | None, max_tokens_out: int | None) -> dict[str, Any]:
        """See `Api.prepared`."""
        changes = changes_of(body, model=model, limits=_LIMITS, most=max_tokens_out)
        if body.get("stream") and not _wants_usage(body):
            options = values.mapping_or_empty(body.get("stream_options"), "stream_options")
            changes["stream_options"] = {**options, "include_usage": True}
        return with_changes(body, changes)

    def read_reply(self, body: dict[str, Any]) -> ModelReply:
        """See `Api.read_reply`."""
        raise_error(body)
        message = values.mapping(_choice(body).get("message"), "choices[0].message")
        return ModelReply(
            text=clean(_text(message)),
            calls=tuple(calls_of(message)),
            usage=usage_of(body.get("usage"), tokens_in="prompt_tokens", tokens_out="completion_tokens"),
            model=clean(values.text_or_empty(body.get("model"), "model")),
        )

    def without_calls(self, body: dict[str, Any], call_ids: Collection[str]) -> dict[str, Any]:
        """See `Api.without_calls`."""
        choice = _choice(body)
        message = values.mapping(choice.get("message"), "choices[0].message")
        if not any(call.call_id in call_ids for call in calls_of(message)):
            return body
        changed = without(message, call_ids)
        reason = choice.get("finish_reason")
        reason = reason if has_calls(changed) else reason_without_calls(reason)
        return {**body, "choices": [{**choice, "message": changed, "finish_reason": reason}]}

    def stream(self, body: dict[str, Any], withheld: Withheld) -> ReplyStream:
        """See `Api.stream`."""
        model = values.text_or_empty(body.get("model"), "model")
        return CheckedStream(ChatAssembly(withheld, model=model, shows_usage=_wants_usage(body)))

    def error_body(self, status: int, code: str, message: str) -> dict[str, Any]:
        """See `Api.error_body`."""
        return {"error": error_fields(status, code, message)}

    def error_event(self, code: str, message: str) -> bytes:
        """See `Api.error_event`."""
        return event_bytes({"error": error_fields(500, code, message)})


def _wants_usage(body: dict[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def _context(messages: list[Any]) -> tuple[tuple[Said, ...], tuple[ToolAnswer, ...]]:
    said: list[Said] = []
    answers: list[ToolAnswer] = []
    for number, given in enumerate(messages):
        place = f"messages[{number}]"
        message = values.mapping(given, place)
        match values.text(message.get("role"), f"{place}.role"):
            case "system" | "developer":
                said.append(Said("system", content_text(message.get("content"), f"{place}.content")))
            case "user":
                said.append(Said("user", content_text(message.get("content"), f"{place}.content")))
            case "tool":
                answers.append(_answer(message, "tool_call_id", place))
            case "function":
                answers.append(_answer(message, "name", place))
            case "assistant":
                pass
            case role:
                raise ApiFormatError(f"{place}.role: {role!r} is none of the roles of chat completions")
    return tuple(said), tuple(answers)


def _answer(message: dict[str, Any], identity: str, place: str) -> ToolAnswer:
    return ToolAnswer(
        call_id=values.text_or_empty(message.get(identity), f"{place}.{identity}"),
        result=content_text(message.get("content"), f"{place}.content"),
        is_error=None,
    )


def _choice(body: dict[str, Any]) -> dict[str, Any]:
    choices = values.sequence(body.get("choices"), "choices")
    if len(choices) != 1:
        raise ApiFormatError(f"choices: there are {len(choices)} where one is asked for")
    return values.mapping(choices[0], "choices[0]")


def _text(message: dict[str, Any]) -> str:
    content = reply_text(message.get("content"), "choices[0].message.content")
    return content + values.text_or_empty(message.get("refusal"), "choices[0].message.refusal")
