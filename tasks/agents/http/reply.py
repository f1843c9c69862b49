"""What an HTTP agent answers, read as its options say."""

from typing import Any

from pydantic import ValidationError

from passgate.tasks.agents.foreign import as_text, first_problem, read_json
from passgate.tasks.model.agent import HttpOptions
from passgate.tasks.model.json_values import MISSING, at_path
from passgate.tasks.model.transcript import Message, ToolCall, Transcript, Usage


def read_reply(content: bytes, options: HttpOptions) -> Transcript:
    """One turn of the agent. Raises `ValueError`, which says what is wrong, for a reply of another shape."""
    document = read_json(content)
    output = at_path(document, options.output)
    if output is MISSING or output is None:
        raise ValueError(f"it has no `{options.output}`")
    calls = _calls(document, options.tool_calls)
    working = (Message(role="assistant", tool_calls=calls),) if calls else ()
    return Transcript(
        messages=(*working, Message(role="assistant", content=as_text(output))),
        output=as_text(output),
        usage=_usage(document, options),
        complete=options.complete,
    )


def _calls(document: Any, path: str | None) -> tuple[ToolCall, ...]:
    listed = None if path is None else at_path(document, path)
    if listed is None or listed is MISSING:
        return ()
    if not isinstance(listed, list):
        raise ValueError(f"`{path}` is no list")  # noqa: TRY004 - the type of a document, not of an argument
    return tuple(_call(item, f"{path}.{index}") for index, item in enumerate(listed))


def _call(item: Any, where: str) -> ToolCall:
    if not isinstance(item, dict):
        raise ValueError(f"`{where}` is no object")  # noqa: TRY004
    arguments = item.get("arguments", item.get("input")) or {}
    call = {
        "tool": item.get("tool", item.get("name")),
        "arguments": read_json(arguments) if isinstance(arguments, str) else arguments,
        "result": item.get("result"),
        "is_error": item.get("is_error", False),
        "duration_ms": item.get("duration_ms"),
    }
    try:
        return ToolCall.model_validate(call)
    except ValidationError as error:
        raise _unlike(where, error) from None


def _usage(document: Any, options: HttpOptions) -> Usage:
    paths = {name: getattr(options, name) for name in ("tokens_in", "tokens_out", "cost_usd")}
    found = {name: at_path(document, path) for name, path in paths.items() if path is not None}
    try:
        return Usage.model_validate({name: value for name, value in found.items() if value is not MISSING})
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise _unlike(str(paths[name]), error) from None


def _unlike(where: str, error: ValidationError) -> ValueError:
    return ValueError(f"`{where}` cannot be used: {first_problem(error)}")
