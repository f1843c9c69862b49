"""What OpenAI's two APIs have in common."""

from typing import Any

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.errors import provider_error


def raise_error(body: dict[str, Any]) -> None:
    """Raise `ApiFormatError` with the provider's message when a reply or an event is an error."""
    if body.get("error"):
        raise provider_error(body["error"])


def usage_of(given: Any, *, tokens_in: str, tokens_out: str) -> Usage:
    """The usage of a reply; the two names are those of its API."""
    fields = values.mapping_or_empty(given, "usage")
    name = f"{tokens_in}_details"
    details = values.mapping_or_empty(fields.get(name), f"usage.{name}")
    return Usage(
        tokens_in=values.count_or_none(fields.get(tokens_in), f"usage.{tokens_in}"),
        tokens_out=values.count_or_none(fields.get(tokens_out), f"usage.{tokens_out}"),
        tokens_cached=values.count_or_none(details.get("cached_tokens"), f"usage.{name}.cached_tokens"),
        tokens_cache_write=values.count_or_none(details.get("cache_write_tokens"), f"usage.{name}.cache_write_tokens"),
    )


def error_fields(status: int, code: str, message: str) -> dict[str, Any]:
    """An error as OpenAI words it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"message": message, "type": kind, "param": None, "code": code}
