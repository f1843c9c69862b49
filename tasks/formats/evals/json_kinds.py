"""The kinds of JSON values, by what files are told of them."""

import json
from collections.abc import Sequence
from enum import StrEnum
from types import UnionType
from typing import Any


class Kind(StrEnum):
    """What a value can be; as a text, what problems call it."""

    TEXT = "a text"
    NUMBER = "a number"
    WHOLE = "a whole number"
    TRUTH = "true or false"
    LIST = "a list"
    MAPPING = "a mapping"


JSON_TYPES = {
    Kind.TEXT: "string",
    Kind.NUMBER: "number",
    Kind.WHOLE: "integer",
    Kind.TRUTH: "boolean",
    Kind.LIST: "array",
    Kind.MAPPING: "object",
}
"""What JSON Schema calls them."""


_PYTHON_TYPES: dict[Kind, type | UnionType] = {
    Kind.TEXT: str,
    Kind.NUMBER: int | float,
    Kind.WHOLE: int,
    Kind.TRUTH: bool,
    Kind.LIST: list,
    Kind.MAPPING: dict,
}


def is_kind(value: Any, kind: Kind) -> bool:
    """Whether a JSON value is of a kind; `true` is no number, and 2.0 is a whole one."""
    if isinstance(value, bool):
        return kind is Kind.TRUTH
    if isinstance(value, float) and kind is Kind.WHOLE:
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES[kind])


def wrong_kind(value: Any, kinds: Sequence[Kind]) -> str | None:
    """What to say of a value that is of none of the kinds; `None` where it is of one, or where any will do."""
    for kind in kinds:
        if is_kind(value, kind):
            return None
    return None if not kinds else f"expected {' or '.join(kinds)}, not {shown(value)}"


def shown(value: Any) -> str:
    """A value as problems show it: JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
