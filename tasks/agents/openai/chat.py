"""Requests in the shape of chat completions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from passgate.tasks.agents.foreign import as_text
from passgate.tasks.model.task import Tool
from passgate.tasks.model.transcript import Message

ChatMessage = dict[str, Any]


def request_of(model: str, tools: Sequence[Tool], output_schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """What every request of a trial says beside its messages."""
    request: dict[str, Any] = {"model": model}
    if tools:
        request["tools"] = [_tool(tool) for tool in tools]
    if output_schema is not None:
        json_schema = {"name": "output", "strict": True, "schema": output_schema}
        request["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    return request


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def chat_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Messages of a transcript. Calls that the agent never saw are left out."""
    return [chat for number, message in enumerate(messages) for chat in _message(message, number)]


def _message(message: Message, number: int) -> Iterator[ChatMessage]:
    calls = {f"call_{number}_{n}": call for n, call in enumerate(message.tool_calls) if not call.refused}
    if not calls:
        yield {"role": message.role, "content": message.content}
        return
    asked = [
        {"id": key, "type": "function", "function": {"name": call.tool, "arguments": as_text(call.arguments)}}
        for key, call in calls.items()
    ]
    yield {"role": message.role, "content": message.content or None, "tool_calls": asked}
    for key, call in calls.items():
        yield tool_message(key, call.result)


def tool_message(call_id: str, result: Any) -> ChatMessage:
    """What came of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "content": as_text(result)}


def returned_message(document: Mapping[str, Any]) -> ChatMessage:
    """The message of a reply as the next request repeats it: with everything that the provider put into it."""
    message: Mapping[str, Any] = document["choices"][0]["message"]
    said = {key: value for key, value in message.items() if value is not None}
    return {"content": None, **said, "role": "assistant"}
