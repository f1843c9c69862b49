"""The transcripts of a journal, held against the digests that its trials name."""

import json
from typing import Any

from passgate.tasks.errors import StorageError
from passgate.tasks.model.digest import digest_of


def recorded_trials(journal: bytes) -> list[dict[str, Any]]:
    """The trials of a journal as it has them, whichever version of passgate has written it. Of a trial that stands
    twice the later line counts.

    Raises `StorageError` for a line that is none of a journal's, and for a transcript that is not the one its trial
    names.
    """
    trials: dict[tuple[str, int], dict[str, Any]] = {}
    for number, line in enumerate(journal.split(b"\n")[:-1], start=1):
        try:
            finished = json.loads(line)
            trial, transcript = finished["trial"], finished["transcript"]
            task, which, digest = str(trial["task_id"]), int(trial["trial"]), str(trial["transcript_digest"])
            # The transcript of a trial of an earlier run is kept with that run.
            is_own = not trial.get("reused_from")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(f"line {number} is none of a journal's") from error
        if is_own and digest_of(transcript) != digest:
            raise StorageError(
                f"line {number}: the transcript of {task}, trial {which}, is not the one that was judged"
            )
        trials[task, which] = trial
    return list(trials.values())
