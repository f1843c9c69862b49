"""Messages and tool calls as plain JSON, with the keys of AgentEvals and of AgentV at once."""

import json
from collections.abc import Sequence
from typing import Any

from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage
from passgate.tasks.model.transcript import Message, ToolCall


def plain_task_message(message: TaskMessage) -> dict[str, Any]:
    """A message of a task: `role` and `content`, a text or blocks, and what else it has."""
    content = message.content if isinstance(message.content, str) else [_block(block) for block in message.content]
    plain: dict[str, Any] = {"role": message.role, "content": content}
    if message.name is not None:
        plain["name"] = message.name
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        plain["tool_calls"] = [_expected_call(call) for call in message.tool_calls]
    return plain


def plain_message(message: Message) -> dict[str, Any]:
    """A message of a transcript: `role`, `content` and `tool_calls`."""
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = [plain_call(call) for call in message.tool_calls]
    return plain


def plain_call(call: ToolCall) -> dict[str, Any]:
    """A tool call: `tool`, `input`, `output`, `status`, `duration_ms`, and `function` as OpenAI's messages have it."""
    return _call(call.tool, call.arguments, call.result, call.duration_ms) | {"status": status_of(call)}


def status_of(call: ToolCall) -> str:
    """How a call ended, in AgentV's words."""
    if call.is_error is None:
        return "unknown"
    return "error" if call.is_error else "ok"


def _expected_call(call: MessageCall) -> dict[str, Any]:
    named = {"id": call.id} if call.id else {}
    return named | _call(call.tool, call.arguments, call.result, call.duration_ms)


def _call(tool: str, arguments: dict[str, Any], result: Any, duration_ms: float | None) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
    plain = {"tool": tool, "input": arguments, "output": result, "type": "function", "function": function}
    return plain if duration_ms is None else {**plain, "duration_ms": duration_ms}


def _block(block: ContentBlock) -> dict[str, Any]:
    plain = {"type": block.type, "value": block.value}
    return plain if block.text is None else {**plain, "text": block.text}


def names_of_calls(calls: Sequence[ToolCall]) -> dict[str, int]:
    """How often each tool was called, in the order of the first calls."""
    counts: dict[str, int] = {}
    for call in calls:
        counts[call.tool] = counts.get(call.tool, 0) + 1
    return counts
