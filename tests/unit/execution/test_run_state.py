"""How the tasks of a run stand."""

from collections.abc import Sequence

from passgate.tasks.execution.run_state import RunState
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial
from tests.builders import a_finished, a_task, trials_of

TASK, OTHER = a_task(k=5), a_task(task_id="other")


def told(task: EvalTask, trials: Sequence[Trial]) -> str | None:
    return f"{task.task_id} {sorted(trial.trial for trial in trials)}"


def test_what_was_measured_is_done_and_told() -> None:
    run_state = RunState(trials_of(TASK, "pfenl"), told)
    assert [run_state.has(("say-yes", trial)) for trial in range(6)] == [True, True, False, False, False, False]
    assert run_state.needless(TASK) == "say-yes [0, 1]"
    assert RunState(trials_of(TASK, "fff")).needless(TASK) is None, "without a rule every trial is needed"


def test_each_task_stands_for_itself_and_a_trial_that_is_tried_again_is_told_once() -> None:
    run_state = RunState(trials_of(TASK, "p"), told)
    run_state.add(trials_of(OTHER, "pp")[1])
    run_state.add(trials_of(TASK, "f")[0])
    assert (run_state.needless(TASK), run_state.needless(OTHER)) == ("say-yes [0]", "other [1]")
    assert not run_state.has(("other", 0))


def test_trials_that_another_run_has_paid_for_cost_nothing() -> None:
    own, reused = a_finished(TASK, 0, player_cost=0.25), a_finished(TASK, 1, player_cost=4.0, reused_from="earlier")
    assert RunState([own.trial, reused.trial]).spent == 0.25
