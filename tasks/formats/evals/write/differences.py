"""Where two tasks differ."""

from collections.abc import Iterator
from typing import Any

from passgate.tasks.model.json_values import strictly_equal


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """The paths of what one of two documents says and the other does not, or says otherwise."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in dict.fromkeys((*left, *right)):
            inner = f"{path}.{key}" if path else str(key)
            yield from _of_key(left, right, key, inner)
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif not strictly_equal(left, right):
        yield path


def _of_key(left: dict[str, Any], right: dict[str, Any], key: str, path: str) -> Iterator[str]:
    if key in left and key in right:
        yield from differences(left[key], right[key], path)
        return
    only = left[key] if key in left else right[key]
    # What is said of an environment that the other lacks altogether is told key by key.
    inner = list(differences(only, {}, path)) if isinstance(only, dict) else []
    yield from inner or [path]
