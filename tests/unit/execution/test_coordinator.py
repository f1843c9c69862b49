"""The rounds of a run, its batches, the order of its trials, and the numbers of the confirming ones."""

from collections.abc import Sequence
from typing import Any

import pytest

from passgate.tasks.execution.coordinator import (
    MOST_BATCHES,
    Round,
    RunState,
    confirming_trials,
    coordinate,
    planned_batches,
    run_order,
)
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision, Finding
from passgate.tasks.stats.measurement import measure_trials
from tests.builders import (
    a_baseline,
    a_baseline_task,
    a_finished,
    a_grade,
    a_plan,
    a_policy,
    a_task,
    a_trial,
    a_violation,
    in_two_runs,
    trials_of,
)

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
    ruling = rule_on(plan, plan.gate_policy, measure_trials(plan.tasks, trials), baseline)
    assert ruling.decision is Decision.PASS
    assert Finding.UNDECIDED in {one.finding for one in ruling.confirmations}
    assert any("`regression.max_confirming: 0.6`" in reason.message for reason in ruling.reasons)


def test_batches_hold_every_task_once_and_one_suite_each() -> None:
    tasks = [
        a_task(task_id=f"t{number}", suite=suite)
        for number, suite in enumerate([Suite.GOLDEN, Suite.ADVERSARIAL, Suite.GOLDEN])
    ]
    made = planned_batches(tasks)
    assert [one.name for one in made] == ["golden/t0", "golden/t2", "adversarial/t1"]
    suites = {task.task_id: task.suite for task in tasks}
    assert all(len({suites[task_id] for task_id, _ in one.trials}) == 1 for one in made)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 500, 2000])
def test_there_are_never_very_many_batches(count: int) -> None:
    suites, plain = list(Suite), a_task()
    tasks = [plain.model_copy(update={"task_id": f"t{number}", "suite": suites[number % 4]}) for number in range(count)]
    made = planned_batches(tasks)
    wanted = [(task.task_id, trial) for task in tasks for trial in range(task.k)]
    assert sorted(key for one in made for key in one.trials) == sorted(wanted)
    assert len(made) <= MOST_BATCHES + len(suites)
    if count > 100:
        assert made[0].name.endswith(f"and {len(made[0].trials) // 3 - 1} more")


NOTHING = Baseline(branch="main")


def named(name: str, **changes: object) -> EvalTask:
    return a_task(**({"task_id": name, "k": 1} | changes))


def known(**entries: BaselineTask) -> Baseline:
    return Baseline(branch="main", tasks={f"golden/{name}": entry for name, entry in entries.items()})


def names(tasks: list[EvalTask], baseline: Baseline = NOTHING) -> list[str]:
    return [name for name, _ in run_order(tasks, baseline)]


def test_vetoes_go_first_then_what_was_red_then_what_has_changed() -> None:
    entries = {
        "green": a_baseline_task(green_in_a_row=1),
        "changed": BaselineTask(state=BaselineState.NONE),
        "edited": a_baseline_task(before_edit=3),
        "new": BaselineTask(state=BaselineState.NEW),
        "red": a_baseline_task(state=BaselineState.RED),
        "unreliable": a_baseline_task(state=BaselineState.UNRELIABLE),
        "red_last": a_baseline_task(state=BaselineState.GREEN, green_in_a_row=0),
    }
    tasks = [
        *(named(name) for name in entries),
        named("vetoes", graders=[{"type": "policy_check", "secrets": True}]),
        named("adversarial", suite=Suite.ADVERSARIAL),
    ]
    expected = ["vetoes", "adversarial", "red", "unreliable", "red_last", "changed", "edited", "new", "green"]
    assert names(tasks, known(**entries)) == expected


def test_the_first_trial_of_each_task_goes_before_the_second_of_any_that_is_not_more_urgent() -> None:
    tasks = [named("b", k=2), named("a", k=3), named("urgent", k=2, suite=Suite.ADVERSARIAL)]
    assert run_order(tasks, NOTHING) == [
        *(("urgent", 0), ("urgent", 1)),
        *(("b", 0), ("a", 0), ("b", 1), ("a", 1), ("a", 2)),
    ]


def test_the_cheap_go_before_the_dear_and_the_unknown_last() -> None:
    tasks = [named(name) for name in ("unknown", "slow", "quick", "dear", "cheap")]
    baseline = known(
        unknown=a_baseline_task(),
        slow=a_baseline_task(wall_times=in_two_runs(90.0, 110.0)),
        quick=a_baseline_task(wall_times=in_two_runs(5.0)),
        dear=a_baseline_task(costs=in_two_runs(0.1, 0.5), wall_times=in_two_runs(1.0)),
        cheap=a_baseline_task(costs=in_two_runs(0.0, 0.3), wall_times=in_two_runs(200.0)),
    )
    assert names(tasks, baseline) == ["cheap", "dear", "quick", "slow", "unknown"]


def test_trials_that_another_run_has_paid_for_cost_nothing() -> None:
    own, reused = a_finished(TASK, 0, player_cost=0.25), a_finished(TASK, 1, player_cost=4.0, reused_from="earlier")
    assert RunState([own.trial, reused.trial]).spent == 0.25
