"""Which trials of a run have ended so far, wherever they run, as its journal shows."""

import asyncio
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from passgate.tasks.errors import StorageError
from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.trial import TrialStatus

_SECONDS_ELSEWHERE: Final = 2.0  # Between two looks at a run at a URL: each takes a request for each batch that runs


class EndedTrials:
    """Follows the journal of a run."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._seen: dict[str, int] = {}
        self._keys: set[TrialKey] = set()
        self._next_look = 0.0

    async def count(self, keys: Iterable[TrialKey]) -> int:
        """How many of these trials have ended by now. A journal that cannot be read now is read the next time."""
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + (_SECONDS_ELSEWHERE if self._store.is_elsewhere else 0.0)
            with suppress(StorageError):
                await asyncio.to_thread(self._read_on)
        return len(self._keys.intersection(keys))

    def _read_on(self) -> None:
        for line in self._store.new_lines(self._seen):
            with suppress(ValueError, LookupError, TypeError):
                trial = json.loads(line)["trial"]
                # For a trial that its batch could not pay, another batch may be able to.
                if trial["status"] != TrialStatus.NOT_RUN or trial["left_out"]:
                    self._keys.add((trial["task_id"], trial["trial"]))
