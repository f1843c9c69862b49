"""The trials of a journal as they are stored, each held against the digest of its transcript."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from passgate.tasks.errors import StorageError
from passgate.tasks.model.json_values import digest_of
from passgate.tasks.model.trial import MEASURED


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
