"""The order in which trials begin."""

from collections.abc import Iterable
from enum import IntEnum
from statistics import fmean

from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, pooled
from passgate.tasks.model.task import EvalTask, guards_safety


class Urgency(IntEnum):
    """What is run first."""

    SAFETY = 0
    """One violation decides the gate."""
    RED = 1
    """Red lately: likely to be so again."""
    CHANGED = 2
    """New, or not known as it is now."""
    REST = 3


def run_order(tasks: Iterable[EvalTask], baseline: Baseline) -> list[TrialKey]:
    """All trials of some tasks, in an order in which a run that is cut off has said the most that it could.

    The more urgent tasks go first, see `Urgency`. Among equals the first trial of each task goes before the second of
    any, for a task that fails shows it soonest so; of these the cheap ones before the dear ones, and last those of
    which nothing is known. What is still equal stays in the order of the tasks.
    """
    ranked = [(task, urgency_of(task, entry), _dearness(entry)) for task, entry in _with_entries(tasks, baseline)]
    keyed = [
        ((urgency, trial, dearness), (task.task_id, trial))
        for task, urgency, dearness in ranked
        for trial in range(task.k)
    ]
    return [key for _, key in sorted(keyed, key=lambda pair: pair[0])]


def urgency_of(task: EvalTask, entry: BaselineTask) -> Urgency:
    """How urgent a task is, by what the baseline says of it."""
    if guards_safety(task):
        return Urgency.SAFETY
    was_red_last = bool(entry.runs) and entry.green_in_a_row == 0
    if was_red_last or entry.state in {BaselineState.RED, BaselineState.UNRELIABLE}:
        return Urgency.RED
    if entry.state in {BaselineState.NEW, BaselineState.NONE} or entry.before_edit:
        return Urgency.CHANGED
    return Urgency.REST


def _with_entries(tasks: Iterable[EvalTask], baseline: Baseline) -> Iterable[tuple[EvalTask, BaselineTask]]:
    return ((task, baseline.of(task.name)) for task in tasks)


def _dearness(entry: BaselineTask) -> tuple[int, float]:
    """By the mean cost of a trial at the baseline; where that is not known, after all those, by its mean time."""
    costs, times = pooled(entry.costs), pooled(entry.wall_times)
    if costs:
        return 0, fmean(costs)
    return (1, fmean(times)) if times else (2, 0.0)
