"""The AND and the OR rule."""

import pytest

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import Metric
from passgate.tasks.stats.decision import decide

PASSED, FAILED, UNDECIDED = TaskState.PASSED, TaskState.FAILED, TaskState.UNDECIDED


@pytest.mark.parametrize(
    ("passed", "failed", "planned", "all_must", "one_is_enough"),
    [
        (3, 0, 3, PASSED, PASSED),
        (2, 1, 3, FAILED, PASSED),
        (1, 2, 3, FAILED, PASSED),
        (0, 3, 3, FAILED, FAILED),
        (2, 0, 3, UNDECIDED, PASSED),
        (0, 2, 3, FAILED, UNDECIDED),
        (0, 1, 3, FAILED, UNDECIDED),
        (1, 1, 3, FAILED, PASSED),
        (0, 0, 3, UNDECIDED, UNDECIDED),
        (1, 0, 1, PASSED, PASSED),
        (0, 1, 1, FAILED, FAILED),
        (0, 0, 0, UNDECIDED, UNDECIDED),
    ],
)
def test_what_the_trials_say_of_a_task(
    passed: int, failed: int, planned: int, all_must: TaskState, one_is_enough: TaskState
) -> None:
    assert decide(Metric.PASS_HAT_K, passed=passed, failed=failed, planned=planned) is all_must
    assert decide(Metric.PASS_AT_K, passed=passed, failed=failed, planned=planned) is one_is_enough
