"""JSON that somebody else wrote: models, agents, tools."""

import json
from typing import Any

from pydantic_core import from_json

_EXCERPT = 300


def read_json(content: str | bytes) -> Any:
    """The value of a JSON document.

    Raises `ValueError` when there is none, and when it holds what could not be written down again: NaN and numbers
    without a value, half characters, endless nesting.
    """
    value = from_json(content, allow_inf_nan=False)
    json.dumps(value, allow_nan=False)
    return value


def excerpt(content: str | bytes) -> str:
    """The beginning of a text, for a message."""
    text = content if isinstance(content, str) else content[: _EXCERPT * 4].decode("utf-8", "replace")
    text = text.encode("utf-8", "replace").decode("utf-8").strip()
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
