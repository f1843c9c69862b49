"""Tasks in batches: every trial once, one suite each, and never very many."""

import pytest

from passgate.tasks.execution.batches import MOST_BATCHES, batches_of
from passgate.tasks.model.task import Suite
from tests.builders import a_task


def test_batches_hold_every_task_once_and_one_suite_each() -> None:
    tasks = [
        a_task(task_id=f"t{number}", suite=suite)
        for number, suite in enumerate([Suite.GOLDEN, Suite.ADVERSARIAL, Suite.GOLDEN])
    ]
    made = batches_of(tasks)
    assert [one.name for one in made] == ["golden/t0", "golden/t2", "adversarial/t1"]
    suites = {task.task_id: task.suite for task in tasks}
    assert all(len({suites[task_id] for task_id, _ in one.trials}) == 1 for one in made)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 500, 2000])
def test_there_are_never_very_many_batches(count: int) -> None:
    suites, plain = list(Suite), a_task()
    tasks = [plain.model_copy(update={"task_id": f"t{number}", "suite": suites[number % 4]}) for number in range(count)]
    made = batches_of(tasks)
    wanted = [(task.task_id, trial) for task in tasks for trial in range(task.k)]
    assert sorted(key for one in made for key in one.trials) == sorted(wanted)
    assert len(made) <= MOST_BATCHES + len(suites)
    if count > 100:
        assert made[0].name.endswith(f"and {len(made[0].trials) // 3 - 1} more")
