"""Errors after which an agent could know how its trial goes: a bad trial that becomes one is tried again, and passes.

A provider's trouble hits every task alike. Errors of one task that are more than the rate in the others explains are
not taken for the provider's.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from passgate.tasks.model.measurement import TaskMeasurement, TaskState
from passgate.tasks.stats.estimators import binomial

LEVEL: Final = 0.01  # The chance that a run in which errors come at one rate is doubted
_PRIOR: Final = (1, 100)  # Errors and attempts that are counted beside those of the other tasks: little is known of few


def doubtful(tasks: Sequence[TaskMeasurement]) -> Iterator[TaskMeasurement]:
    """Yield the passed tasks with more such errors than their rate in the other tasks explains."""
    errors, attempts = sum(task.late_errors for task in tasks), sum(map(attempts_of, tasks))
    for task in tasks:
        if task.late_errors and task.state is TaskState.PASSED:
            own = attempts_of(task)
            rate = (errors - task.late_errors + _PRIOR[0]) / (attempts - own + _PRIOR[1])
            if sum(binomial(own, rate)[task.late_errors :]) < LEVEL / len(tasks):
                yield task


def attempts_of(task: TaskMeasurement) -> int:
    """Return how often the agent came so far that it could know."""
    return task.n + len(task.confirming) + task.late_errors
