"""Reading values that nobody vouches for: of the expected type, or an `ApiFormatError` that names the place.

Then the texts of requests and replies, and the arguments of tool calls.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from passgate.tasks.providers.exchange import ApiFormatError, ReplyError
from passgate.tasks.providers.refusals import Refusal

Kind = TypeVar("Kind")
_MAX_TOKENS = 10**12  # A count above this is a mistake of the server, and no count of tokens
_NAMES: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
_SHORT_NAMES = {
    "image_url": "image",
    "input_image": "image",
    "computer_screenshot": "image",
    "input_audio": "audio",
    "input_file": "file",
}
_FILES = frozenset({*_SHORT_NAMES, "image", "file", "document", "container_upload", "redacted_thinking"})
_OPAQUE = frozenset(
    {"encrypted_content", "signature", "thoughtSignature", "thought_signature"}
    | {"inlineData", "inline_data", "fileData", "file_data"}
)


def _wrong(value: Any, place: str, expected: str) -> ApiFormatError:
    return ApiFormatError(f"{place}: is {_NAMES.get(type(value), 'a number')}, not {expected}")


def _of(kind: type[Kind], value: Any, place: str) -> Kind:
    if isinstance(value, kind):
        return value
    raise _wrong(value, place, _NAMES[kind])


def mapping(value: Any, place: str) -> dict[str, Any]:
    return _of(dict, value, place)


def mapping_or_empty(value: Any, place: str) -> dict[str, Any]:
    return {} if value is None else _of(dict, value, place)


def sequence(value: Any, place: str) -> list[Any]:
    return _of(list, value, place)


def sequence_or_empty(value: Any, place: str) -> list[Any]:
    return [] if value is None else _of(list, value, place)


def text(value: Any, place: str) -> str:
    return _of(str, value, place)


def text_or_empty(value: Any, place: str) -> str:
    return "" if value is None else _of(str, value, place)


def count(value: Any, place: str) -> int:
    """Return a whole number that is not negative."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS:
        return value
    raise _wrong(value, place, "a whole number from 0")


def count_or_none(value: Any, place: str) -> int | None:
    return None if value is None else count(value, place)


def count_or_zero(value: Any) -> int:
    """Return a whole number that is not negative; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS else 0


def string_or_empty(value: Any) -> str:
    """Return a text; empty for what is none."""
    return value if isinstance(value, str) else ""


def truth_or_false(value: Any, place: str) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _wrong(value, place, "true or false")


def block_type(fields: Mapping[str, Any]) -> str:
    """Return the `type` of a block or an item; empty when it is not a text."""
    kind = fields.get("type")
    return kind if isinstance(kind, str) else ""


def provider_error(error: Any) -> ReplyError:
    """Return the error to raise for what a reply or an event has as its `error`, of any shape."""
    message = error.get("message") if isinstance(error, dict) else error
    said = clean(message) if isinstance(message, str) and message else "an error without a message"
    return ReplyError(f"the provider says: {said}", Refusal.from_error(error))


def clean(text: str) -> str:
    """Return the text in characters that can be written down: halves of surrogate pairs, which JSON may hold, are
    joined or, when alone, replaced.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def content_text(content: Any, place: str) -> str:
    """Return the text of a message that is sent to a model: a text, `null`, or parts, those without text as
    `[image]`.
    """
    return "\n".join(
        [_kind_of_file(part, at) if text is None else text for part, at, text in _parts_with_text(content, place)]
    )


def reply_text(content: Any, place: str) -> str:
    """Return the text of a message of a model: a text, `null`, or parts, of which one sentence may need several."""
    return "".join([text or "" for _, _, text in _parts_with_text(content, place)])


def _parts_with_text(content: Any, place: str) -> list[tuple[Any, str, str | None]]:
    """Yield every part of a message, its place, and its text; `None` for a part that has none."""
    if content is None or isinstance(content, str):
        return [(content, place, content or "")]
    parts = [(part, f"{place}[{number}]") for number, part in enumerate(sequence(content, place))]
    return [(part, at, _part_text(part, at)) for part, at in parts]


def _part_text(part: Any, place: str) -> str | None:
    if isinstance(part, str):
        return part
    fields = mapping(part, place)
    key = next((key for key in ("text", "refusal") if fields.get(key) is not None), None)
    return None if key is None else text(fields[key], f"{place}.{key}")


def _kind_of_file(part: dict[str, Any], place: str) -> str:
    kind = text_or_empty(part.get("type"), f"{place}.type")
    return f"[{_SHORT_NAMES.get(kind, kind)}]"


def characters(value: Any) -> int:
    """Return how many characters of text a JSON value holds, with the keys of objects, without images and files."""
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, dict) and block_type(one) not in _FILES:
            total += sum(map(len, one))
            waiting.extend(held for key, held in one.items() if key not in _OPAQUE)
    return total


def parse_arguments(given: Any) -> Mapping[str, Any]:
    """Return the arguments of a tool call from their JSON text, or from the object itself. No text is no arguments."""
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
