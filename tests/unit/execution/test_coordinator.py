"""The rounds of a run, whoever runs its batches, and the numbers of the confirming trials."""

from collections.abc import Sequence
from typing import Any

import pytest

from passgate.tasks.execution.coordinator import Round, confirming_trials, coordinate
from passgate.tasks.execution.run_state import RunState
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision, Finding
from passgate.tasks.stats.measurement import measurement_of
from tests.builders import a_baseline, a_finished, a_grade, a_plan, a_policy, a_task, a_trial, a_violation, trials_of

TASK, OTHER = a_task(), a_task(task_id="other")
STATUSES = (TrialStatus.PASSED, TrialStatus.FAILED)
PLAN = a_plan(TASK, OTHER, policy=a_policy(admission=False))
BASELINE = a_baseline(TASK, OTHER, passed=60, n=60, newest=(True,) * 60)


@pytest.mark.parametrize(("finished", "handed_out"), [(0, [0, 1, 2]), (2, [2]), (3, [])])
async def test_what_has_finished_is_handed_out_no_more(finished: int, handed_out: list[int]) -> None:
    rounds: list[Round] = []

    class Executor:
        async def run(self, current: Round) -> None:
            rounds.append(current)

    state = RunState(a_finished(TASK, trial).trial for trial in range(finished))
    await coordinate(a_plan(TASK), lambda _: Baseline(branch="main"), state, Executor())
    assert [key for one in rounds for key in one.order] == [("say-yes", trial) for trial in handed_out]
    assert (len(state.finished), bool(rounds)) == (finished, bool(handed_out))


def wanted(trials: Sequence[Trial], **plan: Any) -> dict[str, list[int]]:
    changed = PLAN.model_copy(update=plan)
    return {task.task_id: numbers for task, numbers in confirming_trials(changed, trials, BASELINE)}


def test_the_numbers_go_on_after_k() -> None:
    asked = wanted([*trials_of(TASK, "ppf"), *trials_of(OTHER, "ppp")])
    assert list(asked) == ["say-yes"]
    assert asked["say-yes"] == list(range(3, 3 + len(asked["say-yes"])))


def test_numbers_that_a_run_has_left_out_when_it_was_cut_off_are_taken_first() -> None:
    (numbers,) = wanted([*trials_of(TASK, "ppf"), a_trial(TASK, 5), a_trial(TASK, 3, TrialStatus.ERROR)]).values()
    assert numbers[:2] == [4, 6]


def test_a_task_in_quarantine_is_not_confirmed() -> None:
    entry = QuarantineEntry(
        task="golden/say-yes", owner="Ann", reason="it flakes", issue="https://h/1", expires=PLAN.created_at.date()
    )
    trials = [*trials_of(TASK, "ppf"), *trials_of(OTHER, "fpp")]
    assert wanted(trials, quarantine=QuarantineFile(tasks=(entry,))).keys() == {"other"}


@pytest.mark.parametrize("other", ["fff", "p"])
def test_nothing_is_confirmed_once_the_gate_is_fail(other: str) -> None:
    veto = a_grade(violations=(a_violation(),))
    trials = [*trials_of(TASK, "ppf"), *trials_of(OTHER, other)]
    violated = trials[0].model_copy(update={"grades": (veto,)})
    assert not wanted([violated, *trials[1:]] if other == "p" else trials)


def test_a_run_has_at_most_as_many_confirming_trials_as_the_policy_says() -> None:
    tasks = [a_task(task_id=f"t{number:02}") for number in range(12)]
    regression = {"mode": "evidence", "max_confirming": 0.6}
    gate = a_policy(
        suites=["golden"], admission=False, regression=regression, blocks_on=["golden_regression"], limits={}
    )
    plan = a_plan(*tasks, policy=gate)
    baseline = a_baseline(*tasks, passed=54, n=60, newest=(True,) * 60)
    trials = [trial for task in tasks for trial in trials_of(task, "ppf")]
    rounds = 0
    while more := confirming_trials(plan, trials, baseline):
        trials += [a_trial(task, number, STATUSES[number % 2]) for task, numbers in more for number in numbers]
        rounds += 1
    assert len(trials) == 36 + 21
    assert rounds < 20
    ruling = rule_on(plan, plan.gate_policy, measurement_of(plan.tasks, trials), baseline)
    assert ruling.decision is Decision.PASS
    assert Finding.UNDECIDED in {one.finding for one in ruling.confirmations}
    assert any("`regression.max_confirming: 0.6`" in reason.message for reason in ruling.reasons)
