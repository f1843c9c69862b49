"""How k trials decide a task."""

from typing import assert_never

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import Metric


def decide(metric: Metric, *, passed: int, failed: int, planned: int) -> TaskState:
    """The AND rule (pass^k: all planned trials pass) or the OR rule (pass@k: one of them passes).

    Trials that are neither passed nor failed are missing; a task that they could still turn is undecided.
    """
    missing = planned - passed - failed
    match metric:
        case Metric.PASS_HAT_K:
            if failed:
                return TaskState.FAILED
            return TaskState.UNDECIDED if missing or not passed else TaskState.PASSED
        case Metric.PASS_AT_K:
            if passed:
                return TaskState.PASSED
            return TaskState.UNDECIDED if missing or not failed else TaskState.FAILED
        case _:
            assert_never(metric)
