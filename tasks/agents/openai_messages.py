"""Transcripts in the shape of OpenAI's or Anthropic's messages, which the harnesses of most agents log anyway."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

_ROLES: Final = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_ANSWERS: Final = frozenset({"tool", "function"})
_TEXTS: Final = ("text", "refusal")
_ASKING, _ANSWERING = "tool_use", "tool_result"  # how the types of Anthropic's blocks end
Document = Mapping[str, Any]


def has_api_messages(messages: object) -> bool:
    """Return whether these are messages as an API has them, and could be none of a transcript."""
    documents = [one for one in messages if isinstance(one, Mapping)] if isinstance(messages, list) else []
    return any(
        one.get("role") in {"developer", *_ANSWERS}
        or not isinstance(one.get("content", ""), str)
        or any("tool" not in call for call in _calls(one))
        for one in documents
    )


def transcript_messages(messages: Sequence[Any]) -> list[Any]:
    """Return the messages of a transcript, in which the answer of a tool is the result of the call that it names.

    What is not a message stays as it is, for the reader of transcripts to refuse. Raises `ValueError` for an answer to
    no call, and for a call of no tool.
    """
    made: list[Any] = []
    waiting: dict[str, dict[str, Any]] = {}
    for one in messages:
        if not isinstance(one, Mapping) or one.get("role") not in {*_ROLES, *_ANSWERS}:
            made.append(one)
            continue
        calls = {str(call.get("id") or _function(call).get("name")): _call(call) for call in _calls(one)}
        waiting |= calls
        answers = list(_answers(one))
        for key, result, is_error in answers:
            if key not in waiting:
                raise ValueError(f"a tool answers {key!r}, which is the id of no call before it")
            waiting[key] |= {"result": result, "is_error": is_error}
        text = _text(one.get("content"))
        if one["role"] in _ROLES and (text or calls or not answers):
            made.append({"role": _ROLES[one["role"]], "content": text, "tool_calls": [*calls.values()]})
    return made


def _calls(message: Document) -> list[Document]:
    calls = message.get("tool_calls")
    legacy = message.get("function_call")
    every = [*(calls if isinstance(calls, list) else []), *([{"function": legacy}] if legacy else [])]
    blocks = [block for block in _blocks(message) if str(block.get("type")).endswith(_ASKING)]
    return [call for call in [*every, *blocks] if isinstance(call, Mapping)]


def _function(call: Document) -> Document:
    function = call.get("function") or call.get("custom") or call
    return function if isinstance(function, Mapping) else {}


def _call(call: Document) -> dict[str, Any]:
    if "tool" in call:
        return dict(call)
    function = _function(call)
    if not isinstance(function.get("name"), str):
        raise ValueError("a tool call names no tool")  # noqa: TRY004 - as whatever else is no message
    given = function.get("arguments", function.get("input"))
    if isinstance(given, str):
        with suppress(ValueError):
            given = json.loads(given or "{}")
    arguments = given if isinstance(given, dict) else {} if given is None else {"unparsed": given}
    return {"tool": function["name"], "arguments": arguments, "is_error": None}


def _answers(message: Document) -> Iterator[tuple[str, Any, bool | None]]:
    """Yield the calls that a message answers, each with its result and whether that is an error, if known."""
    if message["role"] in _ANSWERS:
        yield str(message.get("tool_call_id") or message.get("name")), _text(message.get("content")), None
    for block in _blocks(message):
        if str(block.get("type")).endswith(_ANSWERING):
            yield str(block.get("tool_use_id")), _text(block.get("content")), bool(block.get("is_error"))


def _blocks(message: Document) -> list[Document]:
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _text(content: Any) -> Any:
    """Return the text of a content, which is a text, nothing, or blocks of which some are texts."""
    if not isinstance(content, list):
        return "" if content is None else content
    parts = [block.get(key) for block in _blocks({"content": content}) for key in _TEXTS]
    return "\n".join(part for part in parts if isinstance(part, str))
