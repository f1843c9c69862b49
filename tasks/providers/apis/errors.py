"""Errors that a provider words."""

from typing import Any

from passgate.tasks.providers.apis.texts import clean
from passgate.tasks.providers.exchange import ApiFormatError


def provider_error(error: Any) -> ApiFormatError:
    """The error to raise for what a reply or an event has as its `error`, of any shape."""
    message = error.get("message") if isinstance(error, dict) else error
    said = clean(message) if isinstance(message, str) and message else "an error without a message"
    return ApiFormatError(f"the provider says: {said}")
