"""The rounds of a run, whoever runs its batches."""

from collections.abc import Callable

from passgate.tasks.execution.coordinator import Round, coordinate
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import BatchOutcome
from tests.builders import a_finished, a_plan, a_task

TASK = a_task(k=3)


async def handed_out(finished: int) -> list[tuple[str, int]]:
    """The trials that an executor may run where some of the planned ones have finished before."""
    rounds: list[Round] = []

    async def execute(current: Round, ended: Callable[[BatchOutcome], None]) -> None:
        rounds.append(current)

    before = [a_finished(TASK, trial) for trial in range(finished)]
    await coordinate(a_plan(TASK), lambda _: Baseline(branch="main"), before, execute)
    return [key for one in rounds for key in one.order]


async def test_what_has_finished_is_in_no_order() -> None:
    assert await handed_out(0) == [("say-yes", 0), ("say-yes", 1), ("say-yes", 2)]
    assert await handed_out(2) == [("say-yes", 2)]


async def test_where_all_have_finished_nothing_is_handed_out() -> None:
    rounds: list[Round] = []

    async def execute(current: Round, ended: Callable[[BatchOutcome], None]) -> None:
        rounds.append(current)

    before = [a_finished(TASK, trial) for trial in range(3)]
    done = await coordinate(a_plan(TASK), lambda _: Baseline(branch="main"), before, execute)
    assert rounds == []
    assert len(done.trials) == 3
