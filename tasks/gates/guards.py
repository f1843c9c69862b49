"""Which tasks may block a gate: guarded by their baseline, young, not admitted yet, in quarantine.

Vetoes are never exempt.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, Young
from passgate.tasks.model.measurement import Measurement, TaskMeasurement
from passgate.tasks.model.policy import Admission, GatePolicy, QuarantineEntry, QuarantineFile, Rule
from passgate.tasks.model.task import BY_TRIALS, Suite
from passgate.tasks.model.verdict import Exemption
from passgate.tasks.stats.expected_rates import (
    Counts,
    Drift,
    drift_between_runs,
    newest_if_worse,
    other_tasks,
)
from passgate.tasks.stats.regression import ENOUGH, Before

_LONGEST_TEXT = 300


def is_weighed(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Return whether a failure of the task is held against its baseline by evidence rather than strictly."""
    return policy.regression.mode == "evidence" and task.suite in policy.regression.suites and task.metric in BY_TRIALS


def blocks_on_falls(policy: GatePolicy, task: TaskMeasurement) -> bool:
    """Return whether the gate blocks on a task of this suite that has fallen."""
    return (Rule.GOLDEN_REGRESSION if task.suite is Suite.GOLDEN else Rule.TASK_FAILED) in policy.blocks_on


def is_guarded(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> bool:
    """Return whether the task blocks when it falls below its own rate, admitted or not. A young baseline that is
    reported guards too: only what is shown to have fallen blocks then.
    """
    counts = guarding_counts(baseline.of(task.name), baseline.young)
    return is_weighed(policy, task) and counts is not None and (counts.n >= ENOUGH or baseline.young == "report")


def is_young(policy: GatePolicy, task: TaskMeasurement, baseline: Baseline) -> bool:
    """Return whether the policy only reports a failure of the task that is not shown to be a fall, because its baseline
    has too few trials. Another model on a known task is a change of the agent, and no young baseline.
    """
    before = baseline.of(task.name)
    is_new = before.n < ENOUGH and (before.n > 0 or not before.newest)
    return baseline.young == "report" and is_weighed(policy, task) and is_new


def guarding_counts(before: BaselineTask, young: Young) -> Counts | None:
    """Return the trials of the baseline that a task is held against; `None` where it cannot fall, or too little is
    known.

    From `ENOUGH` trials on they are known well enough, whatever the rate is. With fewer the task must have been green
    where it has to clear itself. Of a task whose newest runs are worse than the others only these count: no change is
    to blame for what it was.
    """
    if before.state in {BaselineState.NEW, BaselineState.NONE}:
        return None
    newest = newest_if_worse([Counts(passed, n) for passed, n in before.counts.values()])
    counts = newest or Counts(before.passed, before.n)
    is_known = counts.n >= ENOUGH or (not newest and (young == "report" or before.state is BaselineState.GREEN))
    return counts if counts.passed and is_known else None


def held_against(policy: GatePolicy, tasks: Iterable[TaskMeasurement], baseline: Baseline) -> dict[str, Before]:
    """Return what each task of a run that its baseline guards is held against, by its `suite/task_id`."""
    weighed = [
        (task, guarding_counts(baseline.of(task.name), baseline.young)) for task in tasks if is_weighed(policy, task)
    ]
    guarded = [(task, counts) for task, counts in weighed if counts is not None]
    by_suite: dict[Suite, list[Counts]] = {}
    for task, counts in guarded:
        by_suite.setdefault(task.suite, []).append(counts)
    others = {suite: other_tasks(counts) for suite, counts in by_suite.items()}
    drift, must_clear = run_drift(baseline.of(task.name) for task, _ in guarded), baseline.young == "block"
    return {
        task.name: Before(*others[task.suite].pool(counts), drift.deviation, must_clear) for task, counts in guarded
    }


def drift_in_force(policy: GatePolicy, tasks: Iterable[TaskMeasurement], baseline: Baseline) -> Drift:
    """By how much the whole runs of the baseline differ that the tasks are held against."""
    entries = [baseline.of(task.name) for task in tasks if is_weighed(policy, task)]
    return run_drift(entry for entry in entries if guarding_counts(entry, baseline.young) is not None)


def run_drift(entries: Iterable[BaselineTask]) -> Drift:
    """By how much the pass rates of whole runs of a baseline differ."""
    return drift_between_runs({run: Counts(*pair) for run, pair in entry.counts.items()} for entry in entries)


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
    wanted, before = policy.admission, baseline.of(task.name)
    newest = before.newest[: wanted.of]
    if _has_shown_itself(wanted, newest):
        return None
    shown = f"{sum(newest)} of {len(newest)} trials passed" if newest else "no trial was measured"
    why = f"not admitted yet: {shown} on {baseline.branch}, {wanted.passes} of {wanted.of} are required"
    if is_guarded(policy, task, baseline):
        why += "; it blocks if it falls below its own rate" + (" before its edit" if before.before_edit else "")
    elif before.restart is not None:
        why += f"; {before.restart}"
    return Exemption(task=task.name, why=why)


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
