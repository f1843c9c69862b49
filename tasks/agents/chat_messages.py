"""Messages of tasks and of transcripts in the shape of chat completions."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from passgate.tasks.agents.transcripts import as_text
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage, block_text
from passgate.tasks.model.task import Tool
from passgate.tasks.model.transcript import Message, ToolCall

ChatMessage = dict[str, Any]
MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024
_KINDS: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_ADDRESSES: Final = ("data:", "http://", "https://")


def request_base(model: str, tools: Sequence[Tool], output_schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what every request of a trial holds beside its messages."""
    request: dict[str, Any] = {"model": model}
    if tools:
        functions = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
        ]
        request["tools"] = [{"type": "function", "function": function} for function in functions]
    if output_schema is not None:
        json_schema = {"name": "output", "strict": True, "schema": output_schema}
        request["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    return request


def chat_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Messages of a transcript. Calls that the agent never saw are left out."""
    return [chat for number, message in enumerate(messages) for chat in _message(message, number)]


def _message(message: Message, number: int) -> Iterator[ChatMessage]:
    calls = {f"call_{number}_{n}": call for n, call in enumerate(message.tool_calls) if not call.refused}
    if not calls:
        yield {"role": message.role, "content": message.content}
        return
    yield _asking(message.content or None, calls)
    for key, call in calls.items():
        yield tool_message(key, call.result)


def tool_message(call_id: str, result: Any) -> ChatMessage:
    """Return the message that tells the result of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": as_text(result)}


def reply_message(document: Mapping[str, Any]) -> ChatMessage:
    """Return the message of a reply as the next request repeats it, with everything that the provider added."""
    message: Mapping[str, Any] = document["choices"][0]["message"]
    said = {key: value for key, value in message.items() if value is not None}
    return {"content": None, **said, "role": "assistant"}


def task_chat(messages: Sequence[TaskMessage], files: Mapping[str, Path]) -> list[ChatMessage]:
    """Messages of a task; `files` says where their images lie.

    Models want every call answered and every answer asked for. So a call that no message answers is answered with its
    own result, and an answer without a call is given one. Raises `MeasurementError` for an image that cannot be sent.
    """
    chat: list[ChatMessage] = []
    waiting: dict[str, MessageCall] = {}
    for number, message in enumerate(messages):
        if message.role == "tool":
            chat += _answer(message, waiting, f"given_{number}")
            continue
        chat += _own_results(waiting)
        waiting = _with_ids(message.tool_calls, f"given_{number}")
        chat.append(_said(message, waiting, files))
    return [*chat, *_own_results(waiting)]


def _with_ids(calls: Sequence[MessageCall], own_id: str) -> dict[str, MessageCall]:
    """Calls by their ids; those that have none, or that of another one, are given one."""
    waiting: dict[str, MessageCall] = {}
    for number, call in enumerate(calls):
        waiting[call.id if call.id and call.id not in waiting else f"{own_id}_{number}"] = call
    return waiting


def _answer(message: TaskMessage, waiting: dict[str, MessageCall], own_id: str) -> Iterator[ChatMessage]:
    """Answer the call that a tool's message names, else the first one that waits for an answer."""
    by_name = [key for key, call in waiting.items() if call.tool == message.name]
    by_id = [key for key in waiting if key == message.tool_call_id]
    key = next(iter([*by_id, *by_name, *waiting]), None)
    if key is None:
        key = message.tool_call_id or own_id
        yield _asking(None, {key: MessageCall(tool=message.name or "tool")})
    waiting.pop(key, None)
    yield tool_message(key, message.text)


def _own_results(waiting: Mapping[str, MessageCall]) -> list[ChatMessage]:
    return [tool_message(key, "" if call.result is None else call.result) for key, call in waiting.items()]


def _said(message: TaskMessage, calls: Mapping[str, MessageCall], files: Mapping[str, Path]) -> ChatMessage:
    if calls:
        return _asking(message.text or None, calls)
    if message.role == "user" and not isinstance(message.content, str):
        return {"role": "user", "content": [_part(block, files) for block in message.content]}
    return {"role": message.role, "content": message.text}


def _asking(content: str | None, calls: Mapping[str, MessageCall | ToolCall]) -> ChatMessage:
    asked = [
        {"id": key, "type": "function", "function": {"name": call.tool, "arguments": as_text(call.arguments)}}
        for key, call in calls.items()
    ]
    return {"role": "assistant", "content": content, "tool_calls": asked}


def _part(block: ContentBlock, files: Mapping[str, Path]) -> dict[str, Any]:
    if block.type == "image":
        return {"type": "image_url", "image_url": {"url": _image(str(block.value), files)}}
    return {"type": "text", "text": block_text(block)}


def _image(name: str, files: Mapping[str, Path]) -> str:
    """Return an image as a data URL, unless it is one or an address already."""
    if name.startswith(_ADDRESSES):
        return name
    kind = _KINDS.get(Path(name).suffix.lower())
    if kind is None:
        raise MeasurementError(f"the image {name} cannot be sent to a model: known are {', '.join(_KINDS)}")
    content = _beginning(files.get(name))
    if content is None:
        raise MeasurementError(f"the image {name} cannot be read")
    if len(content) > MAX_IMAGE_BYTES:
        raise MeasurementError(f"the image {name} has more than {MAX_IMAGE_BYTES // 1024 // 1024} MiB")
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _beginning(file: Path | None) -> bytes | None:
    """Return a little more of a file than an image may have; `None` if there is no regular file."""
    if file is None or file.is_symlink() or not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_IMAGE_BYTES + 1)
    except OSError:
        return None
