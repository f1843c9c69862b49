"""Tasks whose failures are reported without blocking: not admitted yet, or in quarantine. Vetoes are never exempt."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from passgate.tasks.gates.guards import is_guarded
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.measurement import Measurement, TaskMeasurement
from passgate.tasks.model.policy import Admission, GatePolicy, QuarantineEntry, QuarantineFile
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Exemption

_LONGEST_TEXT = 300


class Exemptions(NamedTuple):
    """The tasks of a run that do not block."""

    not_admitted: tuple[Exemption, ...]
    quarantined: tuple[Exemption, ...]
    guarded: frozenset[str] = frozenset()
    """Of those that are not admitted, by their `suite/task_id`, the ones that block when they fall below their rate."""

    @property
    def tasks(self) -> dict[str, Exemption]:
        """Return all of them by their `suite/task_id`."""
        return {exempt.task: exempt for exempt in (*self.not_admitted, *self.quarantined)}

    @property
    def settled(self) -> frozenset[str]:
        """Return those that block by nothing but a veto."""
        quarantined = {exempt.task for exempt in self.quarantined}
        return frozenset(name for name in self.tasks if name in quarantined or name not in self.guarded)


def exemptions(
    policy: GatePolicy, quarantine: QuarantineFile, measurement: Measurement, baseline: Baseline, today: date
) -> Exemptions:
    """Return which tasks do not block, and why."""
    entries = quarantined(quarantine, today)
    new = tuple(exempt for task in measurement.tasks if (exempt := not_admitted(policy, task, baseline)) is not None)
    guarded = (one.name for one in measurement.tasks if is_guarded(policy, one, baseline))
    return Exemptions(
        not_admitted=new,
        guarded=frozenset(guarded) & {exempt.task for exempt in new},
        quarantined=tuple(exempt_by_quarantine(entries[one.name]) for one in measurement.tasks if one.name in entries),
    )


def not_admitted(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> Exemption | None:
    """Return what a verdict says of a task that may not block by a failure yet; `None` for one that may.

    A task is admitted when enough of its newest measured trials at the baseline passed. Without a policy for it, and
    while admission is not in force, every task is. One that is not may still be guarded: it blocks when it falls.
    """
    if policy.admission is False or not admission_in_force(policy.admission, baseline, task.suite):
        return None
    wanted = policy.admission
    newest = baseline.of(task.name).newest[: wanted.of]
    if _has_shown_itself(wanted, newest):
        return None
    shown = f"{sum(newest)} of {len(newest)} trials passed" if newest else "no trial was measured"
    why = f"not admitted yet: {shown} on {baseline.branch}, {wanted.passes} of {wanted.of} are required"
    return Exemption(task=task.name, why=why + _until_then(policy, task, baseline))


def _until_then(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> str:
    """Return whether a task that is not admitted is guarded, and why its runs before its edit do not guard it."""
    before = baseline.of(task.name)
    if is_guarded(policy, task, baseline):
        return "; it blocks if it falls below its own rate" + (" before its edit" if before.before_edit else "")
    return f"; {before.restart}" if before.restart is not None else ""


def admission_in_force(wanted: Admission, baseline: Baseline, suite: Suite) -> bool:
    """Return whether any task of the suite is admitted. In a history that has just begun none can be, and a gate that
    asked for it would not block on the suite at all.
    """
    entries = (entry for name, entry in baseline.tasks.items() if name.startswith(f"{suite}/"))
    return any(_has_shown_itself(wanted, entry.newest) for entry in entries)


def _has_shown_itself(wanted: Admission, newest: Sequence[bool]) -> bool:
    counted = newest[: wanted.of]
    return len(counted) == wanted.of and sum(counted) >= wanted.passes


def quarantined(file: QuarantineFile, today: date) -> dict[str, QuarantineEntry]:
    """Return the entries in force by their tasks: up to and with the day on which they expire."""
    return {entry.task: entry for entry in file.tasks if today <= entry.expires}


def expired(file: QuarantineFile, today: date) -> tuple[QuarantineEntry, ...]:
    """Return the entries whose tasks block again."""
    return tuple(entry for entry in file.tasks if entry.expires < today)


def exempt_by_quarantine(entry: QuarantineEntry) -> Exemption:
    """Return what a verdict says of a task in quarantine."""
    return Exemption(task=entry.task, why=f"quarantined until {entry.expires} by {_whose(entry)}")


def quarantine_notes(file: QuarantineFile, baseline: Baseline, today: date) -> Iterator[str]:
    """Yield notes on the quarantine itself: entries that have expired, and tasks that need none any more."""
    for entry in expired(file, today):
        since = entry.expires + timedelta(days=1)
        yield (
            f"the quarantine of {entry.task} has expired and the task blocks again since {since}: repair the "
            f"task, or remove its entry from quarantine.yaml ({_whose(entry)})"
        )
    for task, entry in quarantined(file, today).items():
        green = baseline.of(task).green_in_a_row
        if green >= file.release_after:
            yield (
                f"{task} was green in the last {green} runs on {baseline.branch}: remove its entry from "
                f"quarantine.yaml ({_whose(entry)})"
            )


def _whose(entry: QuarantineEntry) -> str:
    # These texts may have several lines and any length; a note is one line.
    texts = [" ".join(text.split()) for text in (entry.owner, entry.reason, entry.issue)]
    owner, reason, issue = (text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..." for text in texts)
    return f"{owner}: {reason} ({issue})"
