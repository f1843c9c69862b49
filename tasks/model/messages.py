"""What a task says in messages: what the agent is asked, and what it is expected to answer."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from passgate.tasks.model.base import Frozen


class ContentBlock(Frozen):
    """A part of a message."""

    type: Literal["text", "file", "image", "json"]
    value: Any
    """`text`: the text. `file`, `image`: a path relative to the suites folder, or for an image its data URL. `json`:
    any JSON value."""
    text: str | None = None
    """What a file held when the task was loaded."""


class MessageCall(Frozen):
    """A tool call in a message of a task."""

    id: str = ""
    tool: str
    arguments: dict[str, Any] = {}
    result: Any = None
    duration_ms: float | None = None


class TaskMessage(Frozen):
    """One message of a task."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[ContentBlock, ...] = ""
    name: str | None = None
    """Of a tool message: the tool."""
    tool_call_id: str | None = None
    """Of a tool message: the call that it answers."""
    tool_calls: tuple[MessageCall, ...] = ()

    @property
    def text(self) -> str:
        """The content as one text: files as they were when the task was loaded, JSON as JSON."""
        if isinstance(self.content, str):
            return self.content
        return "\n\n".join(block_text(block) for block in self.content)


def block_text(block: ContentBlock) -> str:
    """Return a block as text; an image only by its name."""
    match block.type:
        case "text":
            return str(block.value)
        case "file":
            return f'<file path="{block.value}">\n{block.text or ""}\n</file>'
        case "image":
            name = block.value if isinstance(block.value, str) and not block.value.startswith("data:") else "inline"
            return f"[image: {name}]"
        case "json":
            return json.dumps(block.value, ensure_ascii=False, indent=2)


def as_prompt(messages: Sequence[TaskMessage]) -> str:
    """Return messages as one text: one user message is its text, several are add_head by their roles."""
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].text
    return "\n\n".join(f"@[{message.role.capitalize()}]:\n{message.text}" for message in messages)
