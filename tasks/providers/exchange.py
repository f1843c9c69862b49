"""What a model call asks and answers, of one shape for every API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from passgate.tasks.model.price import NO_CHARGES, Charges
from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.refusals import Refusal

NOTHING_KNOWN: Final = Usage()


@dataclass(frozen=True, slots=True)
class InputMessage:
    """A message of the context that is not a model's: what the system or the user said, as text."""

    role: Literal["system", "user"]
    text: str


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came of a tool call, as the next request tells the model."""

    call_id: str
    result: Any
    is_error: bool | None  # `None` where the API has no way to say it


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call that a model asks for."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]  # Arguments that are not a JSON object are `{"unparsed": TEXT}`


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model."""

    model: str
    stream: bool
    max_tokens_out: int | None  # The most tokens that the request lets the model write; `None` when it does not say
    said: tuple[InputMessage, ...]
    """Every system and user message of the context, in order. Messages of the model are left out."""
    answers: tuple[ToolAnswer, ...]  # Every tool result of the context, in order
    continues: bool
    """Whether the provider holds the earlier context (`previous_response_id`), so that this one is all new."""
    characters: int
    """Of all texts, tool descriptions and arguments that are sent; images and other files are not counted."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model answered. Of a stream: as far as it came."""

    text: str = ""
    calls: tuple[AskedCall, ...] = ()
    usage: Usage = NOTHING_KNOWN  # `None` where the reply does not say; the cost is never in it
    model: str = ""
    charges: Charges = NO_CHARGES


class ApiFormatError(Exception):
    """A request or reply that is not of its API's shape; the text says what is wrong."""


class ReplyError(ApiFormatError):
    """An error that a provider puts into a reply with status 200."""

    def __init__(self, message: str, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(message)
