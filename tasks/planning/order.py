"""Order the trials of a run."""

from collections.abc import Iterable
from enum import IntEnum
from statistics import fmean

from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, all_figures
from passgate.tasks.model.task import EvalTask, guards_safety


class Urgency(IntEnum):
    """The priority of a task: lower values run first."""

    SAFETY = 0
    """One violation decides the gate."""
    RED = 1
    """Red in the last run, so probably red again."""
    CHANGED = 2
    """New or edited, so without a baseline."""
    REST = 3


def run_order(tasks: Iterable[EvalTask], baseline: Baseline) -> list[TrialKey]:
    """Return all trials of some tasks, in the order in which an interrupted run has decided the most.

    Urgent tasks come first, see `Urgency`. Within an urgency, the first trial of every task comes before the second of
    any, because that shows a failing task soonest. Among these, cheap tasks come before expensive ones, and tasks with
    unknown cost last. Ties keep the order of the tasks.
    """
    keys: list[tuple[tuple[Urgency, int, tuple[int, float]], TrialKey]] = []
    for task in tasks:
        entry = baseline.of(task.name)
        urgency, expense = task_urgency(task, entry), _expense(entry)
        keys += [((urgency, trial, expense), (task.task_id, trial)) for trial in range(task.k)]
    return [key for _, key in sorted(keys, key=lambda pair: pair[0])]


def task_urgency(task: EvalTask, entry: BaselineTask) -> Urgency:
    """Return the urgency of a task, given its baseline."""
    if guards_safety(task):
        return Urgency.SAFETY
    was_red_last = bool(entry.runs) and entry.green_in_a_row == 0
    if was_red_last or entry.state in {BaselineState.RED, BaselineState.UNRELIABLE}:
        return Urgency.RED
    if entry.state in {BaselineState.NEW, BaselineState.NONE} or entry.before_edit:
        return Urgency.CHANGED
    return Urgency.REST


def _expense(entry: BaselineTask) -> tuple[int, float]:
    """Return a sort key: by the mean cost of a trial at the baseline, then by the mean time if no cost is known."""
    costs, times = all_figures(entry.costs), all_figures(entry.wall_times)
    if costs:
        return 0, fmean(costs)
    return (1, fmean(times)) if times else (2, 0.0)
