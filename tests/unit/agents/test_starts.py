"""When an agent's command counts as wrong, and when a trial that could not be started has failed."""

from collections.abc import Sequence

import pytest
from tests.builders import a_task, a_trial

from passgate.tasks.agents.starts import ENOUGH, Starts, counted_trials
from passgate.tasks.errors import UsageError
from passgate.tasks.model.transcript import EndReason, Transcript
from passgate.tasks.model.trial import FinishedTrial, TrialStatus


def finished(end: EndReason, status: TrialStatus = TrialStatus.FAILED, **changes: object) -> FinishedTrial:
    detail = "exit code 127: not found" if end is EndReason.NOT_STARTED else ""
    trial = a_trial(a_task(), status=status, **changes)
    return FinishedTrial(trial=trial, transcript=Transcript(end=end, detail=detail))


NOT_STARTED = finished(EndReason.NOT_STARTED)
STARTED = finished(EndReason.CRASHED)
NOT_MEASURED = finished(EndReason.COMPLETED, TrialStatus.ERROR)
OF_ANOTHER_RUN = finished(EndReason.COMPLETED, TrialStatus.PASSED, reused_from="earlier")


def starts_of(trials: Sequence[FinishedTrial], earlier: Sequence[FinishedTrial] = ()) -> Starts:
    starts = Starts()
    starts.resume(earlier)
    for trial in trials:
        starts.add(trial)
    return starts


def test_enough_trials_show_that_a_command_is_wrong() -> None:
    starts = starts_of([NOT_STARTED, NOT_MEASURED] * (ENOUGH - 1))
    with pytest.raises(UsageError, match="could not be started in any of 3 trials: exit code 127: not found; check"):
        starts.add(NOT_STARTED)


@pytest.mark.parametrize("earlier", [[], [OF_ANOTHER_RUN]], ids=["no others", "of another run"])
def test_fewer_do_when_no_other_trial_says_anything_of_this_machine(earlier: list[FinishedTrial]) -> None:
    starts_of([], earlier).refuse_wrong_command()
    with pytest.raises(UsageError, match="could not be started in the one trial"):
        starts_of([NOT_STARTED], earlier).refuse_wrong_command()


@pytest.mark.parametrize("place", range(ENOUGH))
def test_once_a_trial_has_started_the_others_are_the_agents_fault(place: int) -> None:
    starts_of([NOT_STARTED] * place + [STARTED] + [NOT_STARTED] * ENOUGH).refuse_wrong_command()


def test_a_run_that_is_carried_on_knows_that_its_agent_has_started() -> None:
    starts_of([NOT_STARTED] * ENOUGH, earlier=[STARTED])


UNPRICED = finished(
    EndReason.CRASHED, TrialStatus.ERROR, unpriced_model="m", reason="the price of 'm' is unknown: add it"
)


def test_a_run_stops_after_its_first_trials_that_need_an_unknown_price() -> None:
    starts = starts_of([STARTED, *[UNPRICED] * (ENOUGH - 1), STARTED])
    with pytest.raises(UsageError, match=r"the price of 'm' is unknown: add it; the run stops after 3 such trials"):
        starts.add(UNPRICED)


def test_trials_of_a_command_that_was_wrong_do_not_count() -> None:
    assert counted_trials([NOT_STARTED, NOT_MEASURED, NOT_STARTED]) == [NOT_MEASURED]
    assert counted_trials([NOT_STARTED, STARTED]) == [NOT_STARTED, STARTED]
