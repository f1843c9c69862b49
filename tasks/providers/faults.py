"""What an attempt can come to when it gives nothing to go on with."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from passgate.tasks.providers.retry_policy import retry_after

TRY_AGAIN: Final = frozenset({408, 425, 429})
"""Beside 5xx: statuses that may be gone at the next attempt."""
OVERLOADED: Final = frozenset({429, 503, 529})
_NEVER_BETTER: Final = frozenset({501, 505})
_SERVER_ERROR: Final = 500
_SUCCESS: Final = range(200, 300)
_CLIENT_ERROR: Final = 400
_EXCERPT: Final = 1200
"""Characters of an answer; messages are shortened later, when keys have been taken out of them."""

_LONGEST: Final = 400


class AttemptError(Exception):
    """One attempt in vain; the text says what the provider did."""

    def __init__(
        self,
        what: str,
        *,
        silence: float = 0.0,
        status: int | None = None,
        asked_pause: float | None = None,
        final: bool = False,
        alive: bool = False,
    ) -> None:
        super().__init__(what)
        self.silence = silence
        """Seconds in which the provider said nothing."""
        self.status = status
        self.asked_pause = asked_pause
        """Seconds that the provider asks to wait."""
        self.final = final
        """Whether another attempt would come to the same."""
        self.alive = alive or status in TRY_AGAIN
        """Whether it does not speak against the provider: one that limits its callers is not down."""

    @property
    def overload(self) -> bool:
        """Whether the provider has too many calls."""
        return self.status in OVERLOADED


def may_pass(status: int) -> bool:
    """Whether another attempt may be answered with another status."""
    return status in TRY_AGAIN or (status >= _SERVER_ERROR and status not in _NEVER_BETTER)


def fault_of_status(status: int, headers: Mapping[str, str], body: bytes) -> AttemptError:
    """The fault of an answer whose status `may_pass`."""
    pause = retry_after(headers, datetime.now(UTC))
    return AttemptError(f"it answered {status}{_excerpt(body)}", status=status, asked_pause=pause)


def check_head(status: int, headers: Mapping[str, str], media_type: str) -> None:
    """Raises `AttemptError` for a redirection, and for a success whose content is not what was asked for."""
    if status >= _CLIENT_ERROR:
        return
    if status not in _SUCCESS:
        raise AttemptError(f"it answered {status}, and redirections are not followed: check the base URL", final=True)
    if headers.get("content-encoding", "identity") != "identity":
        encoding = headers["content-encoding"]
        raise AttemptError(f"it answered in the encoding {encoding!r}, which was not asked for", final=True)
    content_type = headers.get("content-type", "")
    if media_type not in content_type.lower():
        raise AttemptError(f"it answered {status} with the content type {content_type!r}, which is not {media_type}")


def document_of(status: int, body: bytes) -> Any:
    """The JSON document of an answer; `None` where an error has none.

    Raises `AttemptError` where a success has no JSON object.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if status < _CLIENT_ERROR and not isinstance(document, dict):
        raise AttemptError(f"it answered {status} with what is no JSON object{_excerpt(body)}")
    return document


def shortened(text: str) -> str:
    """As much of a text as a message may hold."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _excerpt(body: bytes) -> str:
    words = " ".join(body[:_EXCERPT].decode("utf-8", "replace").split())
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in words)
    return f": {text}" if text else ""
