"""Shows the progress of a run from its journal: bars on a terminal, plain lines elsewhere."""

import json
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from passgate.tasks.errors import StorageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.reports.messages import write_line

_LIVE_SECONDS = 0.2
_SECONDS_ELSEWHERE = 2.0  # A look at a run at a URL is a request to a store
_PLAIN_SECONDS = 5.0
_CONFIRMING = "confirming"


class JournalFollower:
    """Counts the trials in a growing journal."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._seen: dict[str, int] = {}
        self._statuses: dict[tuple[str, str, int], str] = {}

    def counts(self) -> dict[str, Counter[str]]:
        """Count the trials that the journal contains now, by suite: planned ones by status, and confirming ones."""
        # The run itself complains of a journal that it cannot read.
        with suppress(StorageError):
            for line in self._store.new_lines(self._seen):
                with suppress(ValueError, LookupError, TypeError):
                    trial = json.loads(line)["trial"]
                    status = trial["status"] if trial["trial"] < trial["k"] else _CONFIRMING
                    self._statuses[trial["suite"], trial["task_id"], trial["trial"]] = status
        counts: dict[str, Counter[str]] = {}
        for (suite, _, _), status in self._statuses.items():
            counts.setdefault(suite, Counter())[status] += 1
        return counts


def _done(counts: Counter[str]) -> int:
    """The number of planned trials that have ended."""
    return counts.total() - counts[_CONFIRMING]


def _outcome(counts: Counter[str]) -> str:
    shown = (TrialStatus.FAILED, TrialStatus.ERROR, _CONFIRMING)
    return ", ".join(f"{counts[status]} {status}" for status in shown if counts[status])


class Progress:
    """Shows the progress of a run while the `with` block runs."""

    def __init__(self, plan: Plan, store: RunStore) -> None:
        self._totals = sum((Counter({str(task.suite): task.k}) for task in plan.tasks), Counter[str]())
        self._follower = JournalFollower(store)
        self._seconds = _SECONDS_ELSEWHERE if store.is_elsewhere else _LIVE_SECONDS
        self._stopped = threading.Event()
        self._show = self._bars if sys.stderr.isatty() else self._lines
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._headline = f"{plan.run_id}: {plan.agent}, {len(plan.tasks)} tasks, {self._totals.total()} trials"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join(timeout=5)

    def _bars(self) -> None:
        console = Console(stderr=True)
        console.print(self._headline, markup=False, highlight=False)
        columns = (
            TextColumn("{task.description:<16}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[outcome]}"),
            TimeElapsedColumn(),
        )
        with Bars(*columns, console=console) as bars:
            # After the run has stopped, once more: trials may have ended since the last look.
            rows = {suite: bars.add_task(suite, total=total, outcome="") for suite, total in self._totals.items()}
            last = False
            while not last:
                last = self._stopped.wait(self._seconds)
                for suite, counts in self._follower.counts().items():
                    bars.update(rows[suite], completed=_done(counts), outcome=_outcome(counts))

    def _lines(self) -> None:
        write_line(self._headline)
        shown: dict[str, Counter[str]] = {}
        next_line = time.monotonic()
        last = False
        while not last:
            last = self._stopped.wait(self._seconds)
            due = last or time.monotonic() >= next_line
            for suite, counts in self._follower.counts().items():
                before, total = shown.get(suite), self._totals[suite]
                # The end of a suite gets its line at once, whenever the next lines are due.
                ended = _done(counts) == total and (before is None or _done(before) < total)
                if counts != before and (due or ended):
                    outcome = f", {_outcome(counts)}" if _outcome(counts) else ""
                    write_line(f"{suite}: {_done(counts)}/{total} trials{outcome}")
                    shown[suite] = counts
            if due:
                next_line = time.monotonic() + _PLAIN_SECONDS
