"""Show the progress of a run from its journal: bars on a terminal, plain lines elsewhere."""

import json
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from passgate.tasks.errors import StorageError
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.reports.figures import count, dollars, duration
from passgate.tasks.reports.messages import write_line

_LIVE_SECONDS = 0.2
_PLAIN_SECONDS, _MOST_PLAIN_SECONDS = 5.0, 60.0  # Between lines: longer and longer, for the log of a run of hours
_CONFIRMING = "confirming"
_ALL = "all"
_COSTS = ("player_cost", "unmeasured_cost")
_LEAST_ENDED, _LEAST_SECONDS = 3, 5.0  # Before them nothing is said of the time left


class JournalFollower:
    """Counts the trials in a growing journal."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._seen: dict[str, int] = {}
        self._statuses: dict[tuple[str, str, int], str] = {}
        self._costs: dict[tuple[str, str, int], float] = {}

    @property
    def cost(self) -> float:
        """US dollars that the trials are known to have cost, as of the last count."""
        return sum(self._costs.values())

    def counts(self) -> dict[str, Counter[str]]:
        """Count the trials that the journal contains now, by suite: planned ones by status, and confirming ones."""
        # The run itself reports a journal that it cannot read.
        with suppress(StorageError):
            for line in self._store.new_lines(self._seen):
                with suppress(ValueError, LookupError, TypeError):
                    trial = json.loads(line)["trial"]
                    status = trial["status"] if trial["trial"] < trial["k"] else _CONFIRMING
                    key = trial["suite"], trial["task_id"], trial["trial"]
                    self._statuses[key] = status
                    # Of the agent and of the judge
                    grades = [one["usage"].get("cost_usd") for one in trial.get("grades", ()) if one.get("usage")]
                    costs = (trial.get("metrics", {}).get("cost"), *map(trial.get, _COSTS), *grades)
                    self._costs[key] = sum(float(cost) for cost in costs if cost)
        counts: dict[str, Counter[str]] = {}
        for (suite, _, _), status in self._statuses.items():
            counts.setdefault(suite, Counter())[status] += 1
        return counts


def cost_and_time(cost: float, ended: int, seconds: float, missing: int) -> str:
    """Return the cost, and the time left at the pace of `ended` trials, as far as known: `$1.25, about 3m05s left`."""
    parts = [dollars(cost)] if cost else []
    if ended >= _LEAST_ENDED and seconds >= _LEAST_SECONDS and missing:
        parts.append(f"about {duration(seconds * missing / ended)} left")
    return ", ".join(parts)


def _ended_count(counts: Counter[str]) -> int:
    """Return the number of planned trials that have ended."""
    return counts.total() - counts[_CONFIRMING]


def _outcome(counts: Counter[str]) -> str:
    shown = (TrialStatus.FAILED, TrialStatus.ERROR, _CONFIRMING)
    return ", ".join(f"{counts[status]} {status}" for status in shown if counts[status])


class Progress:
    """Shows the progress of a run while the `with` block runs."""

    def __init__(self, plan: Plan, store: RunStore) -> None:
        self._totals = sum((Counter({str(task.suite): task.k}) for task in plan.tasks), Counter[str]())
        self._total = self._totals.total()
        self._follower = JournalFollower(store)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._bars if sys.stderr.isatty() else self._lines, daemon=True)
        self._begun = time.monotonic()
        self._done_before: int | None = None
        planned = f"{count(len(plan.tasks), 'task')}, {count(self._total, 'trial')}"
        confirming = plan.gate_policy.most_confirming(self._total)
        price = f", at most {count(confirming, 'confirming trial')} more" if confirming else ""
        self._headline = f"{plan.run_id}: {plan.agent}, {planned}{price}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=5)

    def _summary(self, counts: dict[str, Counter[str]]) -> tuple[int, str]:
        """Return how many planned trials have ended, and cost and time left at the pace of this command."""
        done = sum(map(_ended_count, counts.values()))
        if self._done_before is None:
            self._done_before, self._begun = done, time.monotonic()
        ended, seconds = done - self._done_before, time.monotonic() - self._begun
        return done, cost_and_time(self._follower.cost, ended, seconds, self._total - done)

    def _bars(self) -> None:
        console = Console(stderr=True)
        console.print(self._headline, markup=False, highlight=False)
        columns = (
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[outcome]}"),
            TimeElapsedColumn(),
        )
        with Bars(*columns, console=console) as bars:
            rows = {suite: bars.add_task(suite, total=total, outcome="") for suite, total in self._totals.items()}
            all_row = bars.add_task(_ALL, total=self._total, outcome="")
            # After the run has stopped, once more: trials may have ended since the last look.
            last = False
            while not last:
                last = self._stopped.wait(_LIVE_SECONDS)
                counts = self._follower.counts()
                for suite, counted in counts.items():
                    bars.update(rows[suite], completed=_ended_count(counted), outcome=_outcome(counted))
                done, summary = self._summary(counts)
                bars.update(all_row, completed=done, outcome=summary)

    def _lines(self) -> None:
        write_line(self._headline)
        shown: dict[str, Counter[str]] = {}
        shown_summary, pause = "", _PLAIN_SECONDS
        next_line = time.monotonic()
        last = False
        while not last:
            last = self._stopped.wait(_LIVE_SECONDS)
            due = last or time.monotonic() >= next_line
            counts = self._follower.counts()
            for suite, counted in counts.items():
                before, total = shown.get(suite), self._totals[suite]
                # The end of a suite gets its line at once, whenever the next lines are due.
                has_ended = _ended_count(counted) == total and (before is None or _ended_count(before) < total)
                if counted != before and (due or has_ended):
                    outcome = f", {_outcome(counted)}" if _outcome(counted) else ""
                    write_line(f"{suite}: {_ended_count(counted)}/{total} trials{outcome}")
                    shown[suite] = counted
            done, summary = self._summary(counts)
            text = f"{_ALL}: {done}/{self._total} trials, {summary}"
            if due and summary and text != shown_summary:
                write_line(text)
                shown_summary = text
            if due:
                next_line = time.monotonic() + pause
                pause = min(pause * 1.5, _MOST_PLAIN_SECONDS)
