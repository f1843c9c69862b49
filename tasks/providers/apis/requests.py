"""What is changed in a request of any API before it is sent on."""

from typing import Any


def changes_of(body: dict[str, Any], *, model: str | None, limits: tuple[str, ...], most: int | None) -> dict[str, Any]:
    """The keys that are set anew: the model, and each of `limits` that the request sets higher than `most`."""
    changes: dict[str, Any] = {}
    if model is not None and body.get("model") != model:
        changes["model"] = model
    for key in limits:
        value = body.get(key)
        if most is not None and isinstance(value, int) and value > most:
            changes[key] = most
    return changes


def with_changes(body: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The request with these keys set; the same object when there are none."""
    return {**body, **changes} if changes else body
