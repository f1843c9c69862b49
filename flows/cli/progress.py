"""Shows the progress of a run from its journal: bars on a terminal, plain lines elsewhere."""

import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import TrialStatus

_LIVE_SECONDS = 0.2
_PLAIN_SECONDS = 5.0


@dataclass(frozen=True)
class Counts:
    """The finished trials of a suite: planned trials by status, and the number of confirming trials."""

    planned: Counter[str]
    confirming: int

    @property
    def done(self) -> int:
        """The number of planned trials that have ended."""
        return self.planned.total()

    @property
    def outcome(self) -> str:
        """The counts to show beside the number of trials: failed, error, confirming."""
        bad = (TrialStatus.FAILED, TrialStatus.ERROR)
        parts = [f"{self.planned[status]} {status}" for status in bad if self.planned[status]]
        return ", ".join([*parts, *([f"{self.confirming} confirming"] if self.confirming else [])])


class JournalFollower:
    """Counts the trials in a growing journal by suite."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._seen: dict[str, int] = {}
        self._planned: dict[tuple[str, str, int], str] = {}
        self._confirming: set[tuple[str, str, int]] = set()

    def counts(self) -> dict[str, Counts]:
        """Count the trials that the journal contains now."""
        self._read()
        planned: dict[str, Counter[str]] = {}
        for (suite, _, _), status in self._planned.items():
            planned.setdefault(suite, Counter())[status] += 1
        confirming = Counter(suite for suite, _, _ in self._confirming)
        return {suite: Counts(statuses, confirming[suite]) for suite, statuses in planned.items()}

    def _read(self) -> None:
        for line in self._store.new_lines(self._seen):
            trial = json.loads(line)["trial"]
            key = trial["suite"], trial["task_id"], trial["trial"]
            if trial["trial"] < trial["k"]:
                self._planned[key] = trial["status"]
            else:
                self._confirming.add(key)


class Progress:
    """Shows the progress of a run while the `with` block runs."""

    def __init__(self, plan: Plan, store: RunStore) -> None:
        self._totals = Counter[str]()
        for task in plan.tasks:
            self._totals[str(task.suite)] += task.k
        self._follower = JournalFollower(store)
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
            rows = {suite: bars.add_task(suite, total=total, outcome="") for suite, total in self._totals.items()}
            last = False
            while not last:
                last = self._stopped.wait(_LIVE_SECONDS)
                for suite, counts in self._follower.counts().items():
                    bars.update(rows[suite], completed=counts.done, outcome=counts.outcome)

    def _lines(self) -> None:
        _line(self._headline)
        shown: dict[str, Counts] = {}
        next_line = time.monotonic()
        last = False
        while not last:
            last = self._stopped.wait(_LIVE_SECONDS)
            due = last or time.monotonic() >= next_line
            for suite, counts in self._follower.counts().items():
                before = shown.get(suite)
                if counts != before and (due or self._has_ended(suite, counts, before)):
                    said = f", {counts.outcome}" if counts.outcome else ""
                    _line(f"{suite}: {counts.done}/{self._totals[suite]} trials{said}")
                    shown[suite] = counts
            if due:
                next_line = time.monotonic() + _PLAIN_SECONDS

    def _has_ended(self, suite: str, counts: Counts, before: Counts | None) -> bool:
        """Whether the last planned trial of a suite has ended since the last line about the suite."""
        total = self._totals[suite]
        return counts.done == total and (before is None or before.done < total)


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
