"""What agents, models and tools wrote: JSON, and transcripts as agents or their harnesses write them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.quotes import beginning
from passgate.tasks.model.transcript import EndReason, Message, Transcript

PRINTED_BYTES: Final = 64 * 1024  # How much of what an agent prints is kept: its end
MAX_TRANSCRIPT_BYTES = 32 * 1024 * 1024
_MOST_BRACKETS = 500_000
"""Lists and objects of one document, and brackets in its texts. A transcript of so many messages takes 1 GB of memory
and 10 s to read; 32 MiB of nothing else would take seven times as much."""
LONGEST_DETAIL: Final = 16_000  # Characters of why a turn gave no answer: they are cut where secrets are masked
_KEY: Final = r"([A-Z][A-Z0-9_]*_(?:KEY|TOKEN))"
_MISSING_KEY: Final = re.compile(
    rf"KeyError: ['\"]{_KEY}['\"]"
    rf"|\b{_KEY}\b[^\n]{{0,80}}?(?:not set|unset|unbound|missing|required|must be set|not found|(?:un|not )defined)"
    rf"|(?:set|setting|missing|export|provide|define)\b[^\n]{{0,80}}?\b{_KEY}\b"
)  # How programs say at their end that they lack a key
# Messages in the shape of OpenAI's or Anthropic's, which the harnesses of most agents log anyway
_ROLES: Final = {"developer": "system", "system": "system", "user": "user", "assistant": "assistant"}
_ANSWERS: Final = frozenset({"tool", "function"})
_TEXTS: Final = ("text", "refusal")
_ASKING, _ANSWERING = "tool_use", "tool_result"  # how the types of Anthropic's blocks end
_Document = Mapping[str, Any]


def read_transcript_file(file: Path) -> Transcript | None:
    """Return the transcript of a file; `None` if there is no file. Raises `MeasurementError` for an unusable one."""
    content = read_agent_file(file)
    if content is None:
        return None
    try:
        refuse_endless(content)
        return read_transcript(json.loads(content.decode("utf-8-sig")))
    except (ValueError, RecursionError) as error:
        raise MeasurementError(f"the transcript {file.name} cannot be read: {error}") from error


def refuse_endless(content: str | bytes) -> None:
    """Raise `ValueError` for a JSON document of so many parts that reading it would use the machine up."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    if data.count(b"{") + data.count(b"[") > _MOST_BRACKETS:
        raise ValueError(f"it has more than {_MOST_BRACKETS} lists and objects")


def read_agent_file(file: Path) -> bytes | None:
    """Return what an agent wrote to a file; `None` if there is no regular file. Raises `MeasurementError` for a large
    one.
    """
    if file.is_symlink() or not file.is_file():
        return None
    try:
        if file.stat().st_size > MAX_TRANSCRIPT_BYTES:
            raise MeasurementError(
                f"{file.name} cannot be read: larger than {MAX_TRANSCRIPT_BYTES // 1024 // 1024} MiB"
            )
        return file.read_bytes()
    except OSError as error:
        raise MeasurementError(f"{file.name} cannot be read: {error}") from error


def read_transcript(value: Any) -> Transcript:
    """Return a transcript from what an agent returned: a `Transcript`, its JSON, or the answer as text.

    Raises `MeasurementError` for anything else, and for a transcript that cannot be recorded.
    """
    if isinstance(value, Transcript):
        return _recordable(value)
    if isinstance(value, str):
        answer = sendable(value)
        return Transcript(messages=(Message(role="assistant", content=answer),), output=answer, complete=False)
    if isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value):
        value = {"messages": value}
    if not isinstance(value, dict):
        raise MeasurementError(f"the agent returned {type(value).__name__}, not a text or a transcript")
    try:
        if _has_api_messages(value.get("messages")):
            value = {**value, "messages": _transcript_messages(value["messages"])}
        transcript = Transcript.model_validate(value)
    except ValidationError as error:
        raise MeasurementError(f"not a transcript: {first_problem(error)}") from error
    except ValueError as error:
        raise MeasurementError(f"not a transcript: {error}") from error
    return _recordable(transcript)


def _recordable(transcript: Transcript) -> Transcript:
    """Return the transcript with its output, which is what was said last unless it is given. Raise `MeasurementError`
    if it cannot be JSON: half characters, endless nesting.
    """
    try:
        # The journal nests it deeper.
        from_json(f"[[{transcript.model_dump_json()}]]")
    except (ValueError, RecursionError) as error:
        raise MeasurementError(f"the transcript cannot be recorded: {error}") from error
    return transcript.model_copy(update={"output": transcript.output or transcript.last_words})


def no_answer(end: EndReason, detail: str = "", said: tuple[Message, ...] = ()) -> Transcript:
    """Return the transcript of a turn without an answer; `said` is what is known of it."""
    return Transcript(messages=said, complete=False, end=end, detail=detail)


def read_json(content: str | bytes) -> Any:
    """Return the value of a JSON document.

    Raises `ValueError` if there is none, and if it holds what could not be written again: NaN and numbers without a
    value, half characters, endless nesting.
    """
    refuse_endless(content)
    value = from_json(content, allow_inf_nan=False)
    json.dumps(value, allow_nan=False)
    return value


def excerpt(content: str | bytes) -> str:
    """Return the beginning of a text, for the detail of a transcript."""
    text = content if isinstance(content, str) else content[: LONGEST_DETAIL * 4].decode("utf-8", "replace")
    return beginning(sendable(text).strip(), LONGEST_DETAIL)


def sendable(text: str) -> str:
    """Replace the halves of surrogate pairs in a text, which can be neither sent nor written."""
    return text.encode("utf-8", "replace").decode("utf-8")


def first_problem(error: ValidationError) -> str:
    """Return the first place at which a document does not fit its model, and why."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}"


def as_text(value: Any) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def missing_key(detail: str, environment: Mapping[str, str]) -> str:
    """Say in one line which key is not set that a program names at its end; empty if it names none."""
    names = (next(filter(None, match.groups())) for match in _MISSING_KEY.finditer(detail))
    return next((f"{name} is not set" for name in names if not environment.get(name)), "")


def _has_api_messages(messages: object) -> bool:
    """Return whether these are messages as an API has them, and could be none of a transcript."""
    documents = [one for one in messages if isinstance(one, Mapping)] if isinstance(messages, list) else []
    return any(
        one.get("role") in {"developer", *_ANSWERS}
        or not isinstance(one.get("content", ""), str)
        or any("tool" not in call for call in _calls(one))
        for one in documents
    )


def _transcript_messages(messages: Sequence[Any]) -> list[Any]:
    """Return the messages of a transcript, in which the answer of a tool is the result of the call that it names.

    What is not a message stays as it is, for the reader of transcripts to refuse. Raises `ValueError` for an answer to
    no call, and for a call of no tool.
    """
    made: list[Any] = []
    waiting: dict[str, dict[str, Any]] = {}
    for one in messages:
        if not isinstance(one, Mapping) or one.get("role") not in {*_ROLES, *_ANSWERS}:
            made.append(one)
            continue
        calls = {str(call.get("id") or _function(call).get("name")): _call(call) for call in _calls(one)}
        waiting |= calls
        answers = list(_answers(one))
        for key, result, is_error in answers:
            if key not in waiting:
                raise ValueError(f"a tool answers {key!r}, which is the id of no call before it")
            waiting[key] |= {"result": result, "is_error": is_error}
        text = _text(one.get("content"))
        if one["role"] in _ROLES and (text or calls or not answers):
            made.append({"role": _ROLES[one["role"]], "content": text, "tool_calls": [*calls.values()]})
    return made


def _calls(message: _Document) -> list[_Document]:
    calls = message.get("tool_calls")
    legacy = message.get("function_call")
    every = [*(calls if isinstance(calls, list) else []), *([{"function": legacy}] if legacy else [])]
    blocks = [block for block in _blocks(message) if str(block.get("type")).endswith(_ASKING)]
    return [call for call in [*every, *blocks] if isinstance(call, Mapping)]


def _function(call: _Document) -> _Document:
    function = call.get("function") or call.get("custom") or call
    return function if isinstance(function, Mapping) else {}


def _call(call: _Document) -> dict[str, Any]:
    if "tool" in call:
        return dict(call)
    function = _function(call)
    if not isinstance(function.get("name"), str):
        raise ValueError("a tool call names no tool")  # noqa: TRY004 - as whatever else is no message
    given = function.get("arguments", function.get("input"))
    if isinstance(given, str):
        with suppress(ValueError):
            given = json.loads(given or "{}")
    arguments = given if isinstance(given, dict) else {} if given is None else {"unparsed": given}
    return {"tool": function["name"], "arguments": arguments, "is_error": None}


def _answers(message: _Document) -> Iterator[tuple[str, Any, bool | None]]:
    """Yield the calls that a message answers, each with its result and whether that is an error, if known."""
    if message["role"] in _ANSWERS:
        yield str(message.get("tool_call_id") or message.get("name")), _text(message.get("content")), None
    for block in _blocks(message):
        if str(block.get("type")).endswith(_ANSWERING):
            yield str(block.get("tool_use_id")), _text(block.get("content")), bool(block.get("is_error"))


def _blocks(message: _Document) -> list[_Document]:
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


def _text(content: Any) -> Any:
    """Return the text of a content, which is a text, nothing, or blocks of which some are texts."""
    if not isinstance(content, list):
        return "" if content is None else content
    parts = [block.get(key) for block in _blocks({"content": content}) for key in _TEXTS]
    return "\n".join(part for part in parts if isinstance(part, str))
