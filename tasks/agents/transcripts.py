"""What agents, models and tools wrote: JSON, and transcripts as agents write them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from passgate.tasks.agents.openai_messages import has_api_messages, transcript_messages
from passgate.tasks.errors import MeasurementError
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


def read_transcript_file(file: Path) -> Transcript | None:
    """Return the transcript of a file; `None` if there is no file. Raises `MeasurementError` for an unusable one."""
    content = read_agent_file(file)
    if content is None:
        return None
    try:
        refuse_endless(content)
        return read_transcript(json.loads(content.decode("utf-8")))
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
        if has_api_messages(value.get("messages")):
            value = {**value, "messages": transcript_messages(value["messages"])}
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
    return sendable(text).strip()[:LONGEST_DETAIL]


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
