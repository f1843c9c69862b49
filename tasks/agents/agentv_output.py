"""What an agent made for AgentV answers: JSON with `output` and what it used, or plain text."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from passgate.tasks.agents.transcripts import as_text, first_problem, read_json, transcript_of
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import EndReason, Tokens, ToolCall, Transcript, Usage

_DETAIL: Final = 2000
_ROLES: Final = ("system", "user", "assistant")
_FAILED: Final = frozenset({"error", "timeout", "cancelled"})


class _ReportedCall(BaseModel):
    tool: str
    input: Any = None
    output: Any = None
    status: Literal["ok", "error", "timeout", "cancelled", "unknown"] | None = None
    duration_ms: float | None = None


class _Message(BaseModel):
    role: str
    content: Any = None
    tool_calls: tuple[_ReportedCall, ...] | None = None
    duration_ms: float | None = None


class _Tokens(BaseModel):
    input: Tokens
    output: Tokens
    cached: Tokens | None = None


class _Answer(BaseModel):
    messages: tuple[_Message, ...] = ()
    text: Any = None
    error: str | None = None
    token_usage: _Tokens | None = None
    cost_usd: float | None = None


def transcript_of_agentv(content: str) -> Transcript:
    """A transcript from what an agent wrote. JSON without messages (`output`, `output_messages`) and without `text` is
    the answer itself, as everything else is.

    An agent that reports an `error` has crashed. Raises `MeasurementError` for messages that are none.
    """
    document = _document(content)
    if document is None:
        return transcript_of(content.strip())
    try:
        answer = _Answer.model_validate(document)
    except ValidationError as error:
        raise MeasurementError(f"not an output of AgentV: {first_problem(error)}") from error
    transcript = _transcript(answer)
    if answer.error:
        return transcript.model_copy(update={"end": EndReason.CRASHED, "detail": answer.error[:_DETAIL]})
    return transcript


def _document(content: str) -> dict[str, Any] | None:
    """The JSON of an answer that is more than a text."""
    try:
        document = read_json(content)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    messages = next((document[key] for key in ("output", "output_messages") if _lists_messages(document.get(key))), ())
    return {**document, "messages": messages} if messages or "text" in document else None


def _lists_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "role" in value[0]


def _transcript(answer: _Answer) -> Transcript:
    used = answer.token_usage
    usage = Usage(
        tokens_in=used.input if used else None,
        tokens_cached=used.cached if used else None,
        tokens_out=used.output if used else None,
        cost_usd=_amount(answer.cost_usd),
    )
    if not answer.messages:
        return transcript_of(as_text(answer.text)).model_copy(update={"usage": usage})
    # What a message of the role `tool` says stands with its call already.
    messages = [_message(message) for message in answer.messages if message.role in _ROLES]
    return transcript_of({"messages": messages, "usage": usage})


def _message(message: _Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": _text(message.content),
        "tool_calls": [_call(call) for call in message.tool_calls or ()],
        "latency_ms": _amount(message.duration_ms),
    }


def _call(call: _ReportedCall) -> ToolCall:
    arguments = {} if call.input is None else call.input
    return ToolCall(
        tool=call.tool,
        arguments=arguments if isinstance(arguments, dict) else {"unparsed": arguments},
        result=call.output,
        is_error=call.status in _FAILED,
        duration_ms=_amount(call.duration_ms),
    )


def _text(content: Any) -> str:
    """The text of a message, or the texts of its blocks."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return as_text(content)
    texts = [block.get("text", block.get("value")) if isinstance(block, dict) else block for block in content]
    return "\n".join(text for text in texts if isinstance(text, str))


def _amount(value: float | None) -> float | None:
    """AgentV takes a negative amount for an unknown one."""
    return None if value is None or value < 0 else value
