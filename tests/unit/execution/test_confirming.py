"""From the trials so far to the numbers of the confirming ones."""

from passgate.tasks.execution.coordinator import confirming_trials
from passgate.tasks.model.policy import Policy, QuarantineEntry, QuarantineFile
from passgate.tasks.model.trial import Trial, TrialStatus
from tests.builders import a_baseline, a_plan, a_policy, a_task, a_trial, trials_of

TASK, OTHER = a_task(), a_task(task_id="other")
POLICY: Policy = a_policy(admission=False)
PLAN = a_plan(TASK, OTHER, policy=POLICY)
BASELINE = a_baseline(TASK, OTHER, passed=60, n=60, newest=(True,) * 60)


def wanted(trials: list[Trial], plan: object = PLAN) -> dict[str, list[int]]:
    return {task.task_id: numbers for task, numbers in confirming_trials(plan, trials, BASELINE)}  # type: ignore[arg-type]


def test_the_numbers_go_on_after_k() -> None:
    asked = wanted([*trials_of(TASK, "ppf"), *trials_of(OTHER, "ppp")])
    assert list(asked) == ["say-yes"]
    assert asked["say-yes"] == list(range(3, 3 + len(asked["say-yes"])))


def test_numbers_that_a_run_has_left_out_when_it_was_cut_off_are_taken_first() -> None:
    trials = [*trials_of(TASK, "ppf"), a_trial(TASK, 5), a_trial(TASK, 3, TrialStatus.ERROR)]
    (numbers,) = wanted(trials).values()
    assert numbers[:2] == [4, 6]


def test_a_task_in_quarantine_is_not_confirmed() -> None:
    entry = QuarantineEntry(
        task="golden/say-yes", owner="Ann", reason="it flakes", issue="https://h/1", expires=PLAN.created_at.date()
    )
    plan = PLAN.model_copy(update={"quarantine": QuarantineFile(tasks=(entry,))})
    assert wanted([*trials_of(TASK, "ppf"), *trials_of(OTHER, "fpp")], plan).keys() == {"other"}
