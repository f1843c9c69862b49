"""Messages of tasks and of transcripts in the shape of chat completions."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from passgate.tasks.agents.transcripts import as_text
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage, block_text
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


def request_base(
    model: str, tools: Sequence[Mapping[str, Any]], output_schema: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what every request of a trial holds beside its messages."""
    request: dict[str, Any] = {"model": model}
    if tools:
        request["tools"] = [{"type": "function", "function": tool} for tool in tools]
    if output_schema is not None:
        json_schema = {"name": "output", "strict": True, "schema": output_schema}
        request["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    return request


def chat_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Return the messages of a transcript in the shape of a chat. Calls that the agent never saw are left out."""
    chat: list[ChatMessage] = []
    for number, message in enumerate(messages):
        calls = {f"call_{number}_{n}": call for n, call in enumerate(message.tool_calls) if not call.refused}
        if calls:
            chat.append(_calling_message(message.content or None, calls))
            chat += [tool_message(key, call.result) for key, call in calls.items()]
        else:
            chat.append({"role": message.role, "content": message.content})
    return chat


def tool_message(call_id: str, result: Any) -> ChatMessage:
    """Return the message that tells the result of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": as_text(result)}


def reply_message(document: Mapping[str, Any]) -> ChatMessage:
    """Return the message of a reply as the next request repeats it, with everything that the provider added."""
    message: Mapping[str, Any] = document["choices"][0]["message"]
    said = {key: value for key, value in message.items() if value is not None}
    return {"content": None, **said, "role": "assistant"}


def task_chat(messages: Sequence[TaskMessage], files: Mapping[str, Path]) -> list[ChatMessage]:
    """Return the messages of a task in the shape of a chat; `files` says where their images lie.

    Models require that every call is answered and every answer asked for. So a call that no message answers is answered
    with its own result, and an answer without a call gets one. Raises `MeasurementError` for an image that cannot be
    sent.
    """
    chat: list[ChatMessage] = []
    waiting: dict[str, MessageCall] = {}
    for number, message in enumerate(messages):
        own_id = f"given_{number}"
        if message.role == "tool":
            chat += _answer(message, waiting, own_id)
            continue
        chat += _own_results(waiting)
        waiting = {}
        for place, call in enumerate(message.tool_calls):
            # A call that has no id, or that of another one, gets one.
            waiting[call.id if call.id and call.id not in waiting else f"{own_id}_{place}"] = call
        if waiting:
            chat.append(_calling_message(message.text or None, waiting))
        elif message.role == "user" and not isinstance(message.content, str):
            chat.append({"role": "user", "content": [_part(block, files) for block in message.content]})
        else:
            chat.append({"role": message.role, "content": message.text})
    return [*chat, *_own_results(waiting)]


def _answer(message: TaskMessage, waiting: dict[str, MessageCall], own_id: str) -> Iterator[ChatMessage]:
    """Answer the call that a tool's message names, else the first one that waits for an answer."""
    by_name = [key for key, call in waiting.items() if call.tool == message.name]
    by_id = [key for key in waiting if key == message.tool_call_id]
    key = next(iter([*by_id, *by_name, *waiting]), None)
    if key is None:
        key = message.tool_call_id or own_id
        yield _calling_message(None, {key: MessageCall(tool=message.name or "tool")})
    waiting.pop(key, None)
    yield tool_message(key, message.text)


def _own_results(waiting: Mapping[str, MessageCall]) -> list[ChatMessage]:
    return [tool_message(key, "" if call.result is None else call.result) for key, call in waiting.items()]


def _calling_message(content: str | None, calls: Mapping[str, MessageCall | ToolCall]) -> ChatMessage:
    tool_calls = [
        {"id": key, "type": "function", "function": {"name": call.tool, "arguments": as_text(call.arguments)}}
        for key, call in calls.items()
    ]
    return {"role": "assistant", "content": content, "tool_calls": tool_calls}


def _part(block: ContentBlock, files: Mapping[str, Path]) -> dict[str, Any]:
    """Return a block as a part of a user's message; an image as a data URL, unless it is one or an address already."""
    if block.type != "image":
        return {"type": "text", "text": block_text(block)}
    name = str(block.value)
    if name.startswith(_ADDRESSES):
        return {"type": "image_url", "image_url": {"url": name}}
    kind, file = _KINDS.get(Path(name).suffix.lower()), files.get(name)
    if kind is None:
        raise MeasurementError(f"the image {name} cannot be sent to a model: known are {', '.join(_KINDS)}")
    if file is None or file.is_symlink() or not file.is_file():
        raise MeasurementError(f"the image {name} cannot be read")
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_IMAGE_BYTES + 1)
    except OSError as error:
        raise MeasurementError(f"the image {name} cannot be read: {error}") from error
    if len(content) > MAX_IMAGE_BYTES:
        raise MeasurementError(f"the image {name} has more than {MAX_IMAGE_BYTES // 1024 // 1024} MiB")
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(content).decode()}"}}
