"""What a run in this process may spend."""

import pytest

from passgate.tasks.execution.in_process import cost_left
from passgate.tasks.model.run import RunRequest
from tests.builders import a_finished, a_plan, a_task


@pytest.mark.parametrize(("cap", "left"), [(None, None), (1.0, 0.75), (0.125, 0.0)])
def test_reused_trials_have_been_paid_for(cap: float | None, left: float | None) -> None:
    task = a_task()
    plan = a_plan(task, request=RunRequest(agent="nop", max_cost=cap))
    finished = [
        a_finished(task, 0, player_cost=0.25),
        a_finished(task, 1, player_cost=4.0, reused_from="an-earlier-run"),
    ]
    assert cost_left(plan, finished) == left
