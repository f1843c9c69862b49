"""Transcripts as agents write them: JSON with `messages`, or only a text."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from passgate.tasks.agents.foreign import first_problem, sendable
from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.transcript import Message, Transcript

MAX_TRANSCRIPT_BYTES = 32 * 1024 * 1024


def read_transcript_file(file: Path) -> Transcript | None:
    """The transcript of a file; `None` when there is no file. Raises `MeasurementError` for one that is unusable."""
    content = read_left_file(file)
    if content is None:
        return None
    try:
        return transcript_of(json.loads(content.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise MeasurementError(f"the transcript {file.name} cannot be read: {error}") from error


def read_left_file(file: Path) -> bytes | None:
    """What an agent wrote to a file; `None` when there is no regular file. Raises `MeasurementError` for too much."""
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


def transcript_of(value: Any) -> Transcript:
    """A transcript from what an agent gave: a `Transcript`, its JSON, or the answer as text.

    Raises `MeasurementError` for anything else, and for a transcript that cannot be recorded.
    """
    if isinstance(value, Transcript):
        return _recordable(value)
    if isinstance(value, str):
        answer = sendable(value)
        return Transcript(messages=(Message(role="assistant", content=answer),), output=answer, complete=False)
    if not isinstance(value, dict):
        raise MeasurementError(f"the agent gave {type(value).__name__}, not a text or a transcript")
    try:
        transcript = Transcript.model_validate(value)
    except ValidationError as error:
        raise MeasurementError(f"not a transcript: {first_problem(error)}") from error
    _recordable(transcript)
    return transcript if transcript.output else transcript.model_copy(update={"output": _last_words(transcript)})


def _recordable(transcript: Transcript) -> Transcript:
    """The same transcript, once it is sure that JSON can hold it: no half characters, no endless nesting."""
    try:
        # The journal nests it deeper.
        from_json(f"[[{transcript.model_dump_json()}]]")
    except (ValueError, RecursionError) as error:
        raise MeasurementError(f"the transcript cannot be recorded: {error}") from error
    return transcript


def _last_words(transcript: Transcript) -> str:
    return next((step.content for step in reversed(transcript.steps) if step.content), "")
