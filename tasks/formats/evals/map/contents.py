"""What messages of eval files consist of: texts, files, images, JSON."""

import base64
import binascii
from typing import Any

from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Key, Node, take_apart
from passgate.tasks.formats.rules import NO_FILES
from passgate.tasks.formats.schema_check import Kind, nearest, shown
from passgate.tasks.model.messages import ContentBlock

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

Content = str | tuple[ContentBlock, ...]


def read_content(node: Node | None, sources: Sources) -> Content:
    """A text, blocks, or any other value as JSON; empty where there is none."""
    if node is None:
        return ""
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, list) and any(_is_block(item) for item in node.value):
        blocks = (_block(item, sources) for item in node.items())
        return tuple(block for block in blocks if block is not None)
    return (json_block(node.value),)


def json_block(value: Any) -> ContentBlock:
    return ContentBlock(type="json", value=value)


def file_block(node: Node, name: str, sources: Sources) -> ContentBlock:
    """The block of a file, with what it holds."""
    path, text = sources.text(node, name)
    return ContentBlock(type="file", value=path, text=text)


def _is_block(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and "type" in value)


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
    return json_block(value.value)  # what stands for a variable in a text may be any value


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
    return sources.found(node, text)


def _decoded(text: str) -> bytes:
    """The bytes that a text is the base64 of, over several lines and without padding too; none where it is not."""
    plain = "".join(text.split())
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
