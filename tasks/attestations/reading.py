"""Files from outside: read up to a bound, and so that no two readers can take them for different things."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Never

from passgate.tasks.errors import StorageError
from passgate.tasks.model.json_values import digest_of
from passgate.tasks.model.trial import MEASURED


class UnreadableError(Exception):
    """A file that is not what it should be. Its text goes on behind the file's name, as in "is no JSON"."""


def read_bounded(file: Path, most: int) -> bytes:
    """The content of a file. Raises `UnreadableError` if it has more than `most` bytes or cannot be read."""
    try:
        if file.exists() and not file.is_file():  # a pipe may never end
            raise UnreadableError("is no regular file")
        with file.open("rb") as stream:
            content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > most:
        raise UnreadableError(f"is larger than {most // 1024} KiB")
    return content


def strict_json(content: bytes) -> Any:
    """The value of a JSON document in UTF-8. Raises `UnreadableError`, also for a key that stands twice in one object,
    NaN, infinity and what is nested too deep.
    """
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise UnreadableError("is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"is no JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, member in pairs:
        if name in value:
            raise UnreadableError(f"says the key {name!r} twice in one object")
        value[name] = member
    return value


def _refuse_constant(name: str) -> Never:
    raise UnreadableError(f"is no JSON: {name} is no number")


def recorded_trials(parts: Iterable[bytes]) -> list[dict[str, Any]]:
    """The trials in the parts of a journal, as any version of passgate wrote them. If a part has a trial twice, the
    later line counts; if several parts have it, the one that was measured, and the later one of these. Raises
    `StorageError` for a line that is not a journal's and for a transcript that is not the one its trial names.
    """
    merged: dict[tuple[str, int], dict[str, Any]] = {}
    for part in parts:
        for key, trial in _trials_of(part).items():
            if key not in merged or _weight(trial) >= _weight(merged[key]):
                merged[key] = trial
    return list(merged.values())


def _weight(trial: Mapping[str, Any]) -> tuple[bool, str]:
    return trial.get("status") in MEASURED, str(trial.get("started_at", ""))


def _trials_of(part: bytes) -> dict[tuple[str, int], dict[str, Any]]:
    trials: dict[tuple[str, int], dict[str, Any]] = {}
    for number, line in enumerate(part.split(b"\n")[:-1], start=1):
        try:
            finished = json.loads(line)
            trial, transcript = finished["trial"], finished["transcript"]
            task, which, digest = str(trial["task_id"]), int(trial["trial"]), str(trial["transcript_digest"])
            # The transcript of a trial of an earlier run is kept with that run.
            is_own = not trial.get("reused_from")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(f"line {number} is none of a journal's") from error
        if is_own and digest_of(transcript) != digest:
            whose = f"the transcript of {task}, trial {which},"
            raise StorageError(f"line {number}: {whose} is not the one that was judged")
        trials[task, which] = trial
    return trials
