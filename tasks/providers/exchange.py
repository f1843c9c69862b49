"""What a model call asks and answers, of one shape for every API."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from passgate.tasks.model.transcript import Usage

NOTHING_KNOWN: Final = Usage()


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the context that is not a model's: what the system or the user said, as text."""

    role: Literal["system", "user"]
    text: str


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came of a tool call, as the next request tells the model."""

    call_id: str
    result: Any
    is_error: bool | None
    """`None` where the API has no way to say it."""


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call that a model asks for."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    """Arguments that are no JSON object are `{"unparsed": TEXT}`."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model."""

    model: str
    stream: bool
    max_tokens_out: int | None
    """The most tokens that the request lets the model write; `None` when it does not say."""
    said: tuple[Said, ...]
    """Every system and user message of the context, in order. Messages of the model are left out."""
    answers: tuple[ToolAnswer, ...]
    """Every tool result of the context, in order."""
    continues: bool
    """Whether the provider holds the earlier context (`previous_response_id`), so that this one is all new."""
    characters: int
    """Of all texts, tool descriptions and arguments that are sent; images and other files are not counted."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model answered. Of a stream: as far as it came."""

    text: str = ""
    calls: tuple[AskedCall, ...] = ()
    usage: Usage = NOTHING_KNOWN
    """`None` where the reply does not say; the cost is never in it."""
    model: str = ""


class ApiFormatError(Exception):
    """A request or reply that is not of its API's shape; the text says what is wrong."""


class ReplyStream(Protocol):
    """One streamed reply on its way to the agent. Tool calls are held back until they are whole."""

    @property
    def reply(self) -> ModelReply:
        """What has come so far, withheld calls included."""

    @property
    def characters(self) -> int:
        """How many the model has written so far: text, reasoning that is shown, and arguments of tool calls."""

    @property
    def started(self) -> bool:
        """Whether the model has begun to write: a text or a tool call."""

    @property
    def ended(self) -> bool:
        """Whether the provider has said that the reply is complete."""

    def feed(self, chunk: bytes) -> bytes:
        """What the agent is sent for a piece of the provider's stream, however it was cut.

        Raises `ApiFormatError` for what is no stream of this API, or an error event of the provider.
        """

    def cut(self) -> bytes:
        """The well-formed end of a reply that is cut off here because a limit is reached."""


class Api(Protocol):
    """One provider API: how its requests and replies are read, changed and refused."""

    name: str
    path: str
    """Of its endpoint below the base URL, as in `chat/completions`."""

    def read_request(self, body: dict[str, Any]) -> ModelRequest:
        """What is asked. Raises `ApiFormatError`."""

    def prepared(self, body: dict[str, Any], *, model: str | None, max_tokens_out: int | None) -> dict[str, Any]:
        """The request as it is sent on: with another model, with no more than `max_tokens_out` where it sets a limit
        that is higher, and so that a streamed reply says what it used. The same object when nothing has to be changed.
        """

    def read_reply(self, body: dict[str, Any]) -> ModelReply:
        """What was answered. Raises `ApiFormatError`."""

    def without_calls(self, body: dict[str, Any], call_ids: Collection[str]) -> dict[str, Any]:
        """The reply without some of its tool calls, well-formed: with none left it ends as a reply without any."""

    def stream(self, body: dict[str, Any], withheld: "Withheld") -> ReplyStream:
        """A streamed reply to this request, as the agent sent it; `withheld` is asked once for every tool call."""

    def error_body(self, status: int, code: str, message: str) -> dict[str, Any]:
        """An error as this API words it, which its client libraries raise with the message in it."""

    def error_event(self, code: str, message: str) -> bytes:
        """An error in the middle of a stream, which client libraries raise."""


class Withheld(Protocol):
    """Decides whether a tool call is taken out of the reply."""

    def __call__(self, call: AskedCall) -> bool: ...
