"""JSON that somebody else wrote: models, agents, tools."""

import json
from typing import Any

from pydantic import ValidationError
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
    text = sendable(text).strip()
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def sendable(text: str) -> str:
    """A text without halves of surrogate pairs, which can be neither sent nor written down."""
    return text.encode("utf-8", "replace").decode("utf-8")


def first_problem(error: ValidationError) -> str:
    """What is wrong with a document that is not as a model wants it: the first place and why."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}"


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
