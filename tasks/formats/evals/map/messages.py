"""Messages of eval files: what the agent is asked, and what it is expected to say; texts, files, images, tool calls."""

import base64
import binascii
from typing import Any

from passgate.tasks.formats.evals.map.sources import Sources, present
from passgate.tasks.formats.evals.read.node import Key, Node, as_items, as_number, as_one_of, as_text, take_apart
from passgate.tasks.formats.rules import NO_FILES
from passgate.tasks.formats.schema_check import Kind, nearest, shown
from passgate.tasks.model.json_values import parse_json
from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage

_ANY, _TEXT, _NUMBER = Key(), Key((Kind.TEXT,)), Key((Kind.NUMBER,))
ROLES = ("system", "user", "assistant", "tool")
MESSAGE_KEYS = {
    "role": Key((Kind.TEXT,), needed=True),
    "content": _ANY,
    # Of a message of a tool: which tool, and the call that it answers.
    **dict.fromkeys(("name", "tool_call_id"), _TEXT),
    "tool_calls": Key((Kind.LIST,), items=(Kind.MAPPING,)),
    # What a recorded message has beside that, and a message of a task does not need.
    **dict.fromkeys(("metadata", "duration_ms", "start_time", "end_time", "token_usage", "cost_usd"), _ANY),
}
OPENAI_CALL_KEYS = {
    **dict.fromkeys(("id", "type"), _TEXT),
    "function": Key((Kind.MAPPING,), needed=True),
    "index": _NUMBER,
}
FUNCTION_KEYS = {"name": Key((Kind.TEXT,), needed=True), "arguments": Key((Kind.TEXT, Kind.MAPPING))}
AGENTV_CALL_KEYS = {
    "tool": Key((Kind.TEXT,), spellings=("name",), needed=True),
    "arguments": Key(spellings=("input", "args")),
    "result": Key(spellings=("output",)),
    "status": _TEXT,
    "duration_ms": _NUMBER,
    **dict.fromkeys(("id", "start_time", "end_time", "error", "metadata"), _ANY),
}
_TYPE = Key((Kind.TEXT,), needed=True)
BLOCK_KEYS = {
    "text": {"type": _TYPE, "value": Key(spellings=("text",), needed=True)},
    "file": {"type": _TYPE, "value": Key((Kind.TEXT,), spellings=("path",), needed=True)},
    "image": {"type": _TYPE, "value": Key((Kind.TEXT,), spellings=("path",), needed=True)},
    "json": {"type": _TYPE, "value": Key(needed=True, null=True)},
}
_IMAGE_TYPES = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""By their first bytes."""
_LONGEST_PATH = 1024
"""A longer text that is base64 is meant as an image: macOS knows no longer paths."""

Expected = tuple[Any, tuple[TaskMessage, ...]]
"""What is expected as a value or as messages; at most one of them says something."""


def is_message(value: Any) -> bool:
    """Whether a value is a message: a mapping with a role. A structured payload has no key of this name."""
    return isinstance(value, dict) and "role" in value


def are_messages(value: Any) -> bool:
    """Whether a value is a list with a message in it: something with a role that says or does something."""
    return isinstance(value, list) and any(
        is_message(item) and ("content" in item or "tool_calls" in item) for item in value
    )


def read_messages(node: Node, sources: Sources) -> tuple[TaskMessage, ...]:
    """A text or a payload as the message of a user, a message, or a list of messages."""
    value = node.value
    if isinstance(value, str):
        return (TaskMessage(role="user", content=value),) if value.strip() else ()
    if is_message(value):
        return present([_message(node, sources)])
    if isinstance(value, dict):
        return (TaskMessage(role="user", content=(ContentBlock(type="json", value=value),)),)
    if isinstance(value, list):
        return present(_message(item, sources) for item in node.items())
    sources.refuse(node, f"expected a text, a message or messages, not {shown(value)}")
    return ()


def _message(node: Node, sources: Sources) -> TaskMessage | None:
    """One message; `None` where it is none, and then that is a problem."""
    if not is_message(node.value):
        sources.refuse(node, f"expected a message with `role` and `content`, not {shown(node.value)}")
        return None
    if _is_plain(node.value):
        return TaskMessage(role=node.value["role"], content=node.value["content"])
    parts = take_apart(node, MESSAGE_KEYS, sources.complaints)
    role: Any = as_one_of(parts.get("role"), ROLES, sources.complaints)
    if not parts.sound or role is None:
        return None
    if parts.get("content") is None and parts.get("tool_calls") is None:
        sources.refuse(node, "a message needs `content` or `tool_calls`")
    return TaskMessage(
        role=role,
        content=_content(parts.get("content"), sources),
        name=as_text(parts.get("name")),
        tool_call_id=as_text(parts.get("tool_call_id")),
        tool_calls=present(_call(item, sources) for item in as_items(parts.get("tool_calls"))),
    )


def _is_plain(value: dict[str, Any]) -> bool:
    """Whether a message is a text and nothing else, as most are."""
    return len(value) == 2 and value["role"] in ROLES and isinstance(value.get("content"), str)


def read_expected(short: Node | None, long: Node | None, sources: Sources) -> Expected:
    """`expected_output` and `expected_messages` of a test; both have to say the same."""
    if long is None:
        return (None, ()) if short is None else _expected(short, sources)
    if not isinstance(long.value, list) and not is_message(long.value):
        what = f"expected messages with `role` and `content`, not {shown(long.value)}"
        sources.refuse(long, f"{what}: write a text or a value as `expected_output`")
        return None, ()
    messages = read_messages(long, sources)
    if short is not None and _answer(_expected(short, sources)) != _answer((None, messages)):
        sources.refuse(long, "says something else than expected_output; keep one of them", at_key=True)
    return None, messages


def _expected(node: Node, sources: Sources) -> Expected:
    one = is_message(node.value) and node.value["role"] in ROLES
    if one or are_messages(node.value):
        return None, read_messages(node, sources)
    return node.value, ()


def _answer(expected: Expected) -> str:
    value, messages = expected
    return messages[-1].text if messages else str(value)


def _content(node: Node | None, sources: Sources) -> str | tuple[ContentBlock, ...]:
    """A text, blocks, or any other value as JSON; empty where there is none."""
    if node is None:
        return ""
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, list) and any(
        isinstance(item, str) or (isinstance(item, dict) and "type" in item) for item in node.value
    ):
        return present(_block(item, sources) for item in node.items())
    return (ContentBlock(type="json", value=node.value),)


def file_block(node: Node, name: str, sources: Sources) -> ContentBlock:
    """The block of a file, with what it holds."""
    path, text = sources.text(node, name)
    return ContentBlock(type="file", value=path, text=text)


def _block(node: Node, sources: Sources) -> ContentBlock | None:
    if isinstance(node.value, str):
        return ContentBlock(type="text", value=node.value)
    kind = node.value.get("type") if isinstance(node.value, dict) else None
    keys = BLOCK_KEYS.get(kind) if isinstance(kind, str) else None
    if keys is None:
        sources.refuse(node, f"{shown(kind or node.value)} is no kind of content{nearest(kind, list(BLOCK_KEYS))}")
        return None
    block = take_apart(node, keys, sources.complaints)
    return _block_of(str(kind), block.values["value"], sources) if block.sound else None


def _block_of(kind: str, value: Node, sources: Sources) -> ContentBlock:
    if kind == "file":
        return file_block(value, value.value, sources)
    if kind == "image":
        return ContentBlock(type="image", value=_image(value, value.value, sources))
    if kind == "text" and isinstance(value.value, str):
        return ContentBlock(type="text", value=value.value)
    return ContentBlock(type="json", value=value.value)  # what stands for a variable in a text may be any value


def _image(node: Node, text: str, sources: Sources) -> str:
    """An image by its path or URL; one that stands in the file itself as a data URL."""
    if text.startswith(NO_FILES):
        return text
    raw = _decoded(text)
    kind = next((kind for begin, kind in _IMAGE_TYPES.items() if raw.startswith(begin)), None)
    if kind is not None:
        return f"data:image/{kind};base64,{''.join(text.split())}"
    if raw and len(text) > _LONGEST_PATH:
        known = ", ".join(_IMAGE_TYPES.values())
        sources.refuse(node, f"base64 of no {known}: write its type, as in data:image/TYPE;base64,...")
        return text
    path = sources.path(node, text)
    return text if path is None else sources.ground.relative(path)


def _decoded(text: str) -> bytes:
    """The bytes that a text is the base64 of, over several lines and without padding too; none where it is not."""
    plain = "".join(text.split())
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _call(node: Node, sources: Sources) -> MessageCall | None:
    return _of_openai(node, sources) if "function" in node.value else _of_agentv(node, sources)


def _of_openai(node: Node, sources: Sources) -> MessageCall | None:
    call = take_apart(node, OPENAI_CALL_KEYS, sources.complaints)
    if not call.sound:
        return None
    function = take_apart(call.values["function"], FUNCTION_KEYS, sources.complaints)
    tool = as_text(function.get("name"))
    arguments = _arguments(function.get("arguments"), sources)
    return MessageCall(id=call.value("id", ""), tool=tool, arguments=arguments) if tool else None


def _of_agentv(node: Node, sources: Sources) -> MessageCall | None:
    call = take_apart(node, AGENTV_CALL_KEYS, sources.complaints)
    tool = as_text(call.get("tool"))
    if not call.sound or tool is None:
        return None
    return MessageCall(
        id=str(call.value("id", "")),
        tool=tool,
        arguments=_arguments(call.get("arguments"), sources),
        result=call.value("result"),
        duration_ms=as_number(call.get("duration_ms"), sources.complaints),
    )


def _arguments(node: Node | None, sources: Sources) -> dict[str, Any]:
    """Arguments by name; a value without a name is that of `input`."""
    if node is None:
        return {}
    value, problem = node.value, ""
    if isinstance(value, str) and node.path[-1] == "arguments":
        try:
            value = parse_json(value or "{}")
        except ValueError as error:
            problem = f": {error}"
        if problem or not isinstance(value, dict):
            sources.refuse(node, f"arguments are a mapping, also as a JSON text{problem}")
            return {}
    return value if isinstance(value, dict) else {"input": value}
