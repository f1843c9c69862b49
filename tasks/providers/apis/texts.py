"""Texts of requests and replies, and the arguments of tool calls."""

import json
from collections.abc import Mapping
from typing import Any

from passgate.tasks.providers.apis import values

_SHORT_NAMES = {
    "image_url": "image",
    "input_image": "image",
    "computer_screenshot": "image",
    "input_audio": "audio",
    "input_file": "file",
}
_FILES = frozenset({*_SHORT_NAMES, "image", "file", "document", "container_upload", "redacted_thinking"})
_OPAQUE = frozenset({"encrypted_content", "signature"})


def clean(text: str) -> str:
    """The text in characters that can be written down: halves of surrogate pairs, which JSON may hold, are joined or,
    when alone, replaced.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def content_text(content: Any, place: str) -> str:
    """The text of a message that is sent to a model: a text, `null`, or parts, those without text as `[image]`."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = values.sequence(content, place)
    texts = []
    for number, part in enumerate(parts):
        text = _part_text(part, f"{place}[{number}]")
        texts.append(_kind_of_file(part, f"{place}[{number}]") if text is None else text)
    return "\n".join(texts)


def reply_text(content: Any, place: str) -> str:
    """The text of a message of a model: a text, `null`, or parts, of which one sentence may need several."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = values.sequence(content, place)
    return "".join([_part_text(part, f"{place}[{number}]") or "" for number, part in enumerate(parts)])


def _part_text(part: Any, place: str) -> str | None:
    if isinstance(part, str):
        return part
    fields = values.mapping(part, place)
    key = next((key for key in ("text", "refusal") if fields.get(key) is not None), None)
    return None if key is None else values.text(fields[key], f"{place}.{key}")


def _kind_of_file(part: dict[str, Any], place: str) -> str:
    kind = values.text_or_empty(part.get("type"), f"{place}.type")
    return f"[{_SHORT_NAMES.get(kind, kind)}]"


def characters(value: Any) -> int:
    """How many characters of text a JSON value holds, keys of objects included, images and other files left out."""
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, dict) and not _is_file(one):
            total += sum(map(len, one))
            waiting.extend(held for key, held in one.items() if key not in _OPAQUE)
    return total


def _is_file(fields: dict[str, Any]) -> bool:
    kind = fields.get("type")
    return isinstance(kind, str) and kind in _FILES


def arguments_of(given: Any) -> Mapping[str, Any]:
    """The arguments of a tool call from their JSON text, or from the object itself. No text is no arguments."""
    if isinstance(given, dict):
        return _cleaned(given)
    if not isinstance(given, str):
        return {} if given is None else {"unparsed": json.dumps(given)}
    if not given.strip():
        return {}
    try:
        parsed = json.loads(given)
    except (ValueError, RecursionError):
        parsed = None
    return _cleaned(parsed) if isinstance(parsed, dict) else {"unparsed": clean(given)}


def _cleaned(arguments: dict[str, Any]) -> Mapping[str, Any]:
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return dict(_clean_value(arguments))
    except RecursionError:
        return {"unparsed": "nested too deeply"}
    return arguments


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_value(one) for one in value]
    if isinstance(value, dict):
        return {clean(key): _clean_value(held) for key, held in value.items()}
    return value
