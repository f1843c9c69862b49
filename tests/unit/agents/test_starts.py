"""When an agent's command counts as wrong, and when a trial that could not be started has failed."""

import pytest
from tests.builders import a_task, a_trial

from passgate.tasks.agents.starts import ENOUGH, Starts, that_count
from passgate.tasks.errors import UsageError
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.model.trial import FinishedTrial, TrialStatus


def finished(end: EndReason, status: TrialStatus = TrialStatus.FAILED, **changes: object) -> FinishedTrial:
    detail = "exit code 127: not found" if end is EndReason.NOT_STARTED else ""
    return FinishedTrial(
        trial=a_trial(a_task(), status=status, **changes), transcript=Transcript(end=end, detail=detail)
    )


NOT_STARTED = finished(EndReason.NOT_STARTED)
STARTED = finished(EndReason.CRASHED)
NOT_MEASURED = finished(EndReason.COMPLETED, TrialStatus.ERROR)


def test_enough_trials_show_that_a_command_is_wrong() -> None:
    starts = Starts()
    for one in [NOT_STARTED, NOT_MEASURED] * (ENOUGH - 1):
        starts.add(one)
    with pytest.raises(UsageError, match="could not be started in any of 3 trials: exit code 127: not found; check"):
        starts.add(NOT_STARTED)


def test_fewer_do_when_there_are_no_others() -> None:
    starts = Starts()
    starts.refuse_wrong_command()
    starts.add(NOT_STARTED)
    with pytest.raises(UsageError, match="could not be started in the one trial"):
        starts.refuse_wrong_command()


@pytest.mark.parametrize("place", range(ENOUGH))
def test_once_a_trial_has_started_the_others_are_the_agents_fault(place: int) -> None:
    starts = Starts()
    for one in [NOT_STARTED] * place + [STARTED] + [NOT_STARTED] * ENOUGH:
        starts.add(one)
    starts.refuse_wrong_command()


def test_a_run_that_is_carried_on_knows_that_its_agent_has_started() -> None:
    starts = Starts()
    starts.carry_on([STARTED])
    for _ in range(ENOUGH):
        starts.add(NOT_STARTED)


def test_trials_of_another_run_say_nothing_of_this_machine() -> None:
    starts = Starts()
    starts.carry_on([finished(EndReason.COMPLETED, TrialStatus.PASSED, reused_from="earlier")])
    starts.add(NOT_STARTED)
    with pytest.raises(UsageError):
        starts.refuse_wrong_command()


def test_trials_of_a_command_that_was_wrong_do_not_count() -> None:
    assert that_count([NOT_STARTED, NOT_MEASURED, NOT_STARTED]) == [NOT_MEASURED]
    assert that_count([NOT_STARTED, STARTED]) == [NOT_STARTED, STARTED]
