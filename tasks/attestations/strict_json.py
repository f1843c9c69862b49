"""JSON from outside, read so that no two readers can take it for different things."""

import json
from typing import Any, Never

from passgate.tasks.attestations.errors import UnreadableError


def strict_json(content: bytes) -> Any:
    """The value of a JSON document in UTF-8.

    Raises `UnreadableError` for what is no JSON, for a key that stands twice in one object, for NaN and infinity, and
    for what is nested or long beyond reading.
    """
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise UnreadableError("is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"is no JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, member in pairs:
        if name in value:
            raise UnreadableError(f"says the key {name!r} twice in one object")
        value[name] = member
    return value


def _refuse_constant(name: str) -> Never:
    raise UnreadableError(f"is no JSON: {name} is no number")
