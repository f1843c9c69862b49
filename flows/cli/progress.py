"""Live progress of a run, read from its journal: bars on a terminal, plain lines elsewhere."""

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import TrialStatus

_LIVE_SECONDS = 0.2
_PLAIN_SECONDS = 5.0


class JournalFollower:
    """Counts the trials that a growing journal holds, by suite and status."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0
        self._statuses: dict[tuple[str, str, int], str] = {}

    def counts(self) -> dict[str, Counter[str]]:
        """What has been written so far."""
        self._read()
        counts: dict[str, Counter[str]] = {}
        for (suite, _, _), status in self._statuses.items():
            counts.setdefault(suite, Counter())[status] += 1
        return counts

    def _read(self) -> None:
        if not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in whole.splitlines():
            trial = json.loads(line)["trial"]
            self._statuses[trial["suite"], trial["task_id"], trial["trial"]] = trial["status"]


class Progress:
    """Shows how far a run is while the block runs."""

    def __init__(self, plan: Plan, journal: Path) -> None:
        self._totals = Counter[str]()
        for task in plan.tasks:
            self._totals[str(task.suite)] += task.k
        self._follower = JournalFollower(journal)
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
                for suite, statuses in self._follower.counts().items():
                    bars.update(rows[suite], completed=statuses.total(), outcome=_outcome(statuses))

    def _lines(self) -> None:
        _line(self._headline)
        shown: dict[str, Counter[str]] = {}
        next_line = time.monotonic()
        last = False
        while not last:
            last = self._stopped.wait(_LIVE_SECONDS)
            counts = self._follower.counts()
            due = last or time.monotonic() >= next_line
            for suite, statuses in counts.items():
                finished = statuses.total() == self._totals[suite]
                if statuses != shown.get(suite) and (due or finished):
                    _line(f"{suite}: {statuses.total()}/{self._totals[suite]} trials{_outcome(statuses)}")
                    shown[suite] = statuses
            if due:
                next_line = time.monotonic() + _PLAIN_SECONDS


def _outcome(statuses: Counter[str]) -> str:
    parts = [f"{statuses[status]} {status}" for status in (TrialStatus.FAILED, TrialStatus.ERROR) if statuses[status]]
    return f" {', '.join(parts)}" if parts else ""


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
