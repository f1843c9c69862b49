"""Which trials begin first."""

import pytest

from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.planning.order import Urgency, run_order, task_urgency
from tests.builders import a_baseline_task, a_task, in_two_runs

NOTHING = Baseline(branch="main")


def named(name: str, **changes: object) -> EvalTask:
    return a_task(**({"task_id": name, "k": 1} | changes))


def known(**entries: BaselineTask) -> Baseline:
    return Baseline(branch="main", tasks={f"golden/{name}": entry for name, entry in entries.items()})


def names(tasks: list[EvalTask], baseline: Baseline = NOTHING) -> list[str]:
    return [name for name, _ in run_order(tasks, baseline)]


def test_vetoes_go_first_then_what_was_red_then_what_has_changed() -> None:
    tasks = [
        named("green"),
        named("changed"),
        named("new"),
        named("red"),
        named("vetoes", graders=[{"type": "policy_check", "secrets": True}]),
        named("adversarial", suite=Suite.ADVERSARIAL),
    ]
    baseline = known(
        green=a_baseline_task(),
        changed=BaselineTask(state=BaselineState.NONE),
        red=a_baseline_task(state=BaselineState.RED),
    )
    assert names(tasks, baseline) == ["vetoes", "adversarial", "red", "changed", "new", "green"]


@pytest.mark.parametrize(
    ("entry", "urgency"),
    [
        (BaselineTask(state=BaselineState.NEW), Urgency.CHANGED),
        (BaselineTask(state=BaselineState.NONE), Urgency.CHANGED),
        (a_baseline_task(state=BaselineState.RED), Urgency.RED),
        (a_baseline_task(state=BaselineState.UNRELIABLE), Urgency.RED),
        (a_baseline_task(state=BaselineState.GREEN, green_in_a_row=0), Urgency.RED),
        (a_baseline_task(state=BaselineState.GREEN, green_in_a_row=1), Urgency.REST),
        (a_baseline_task(state=BaselineState.NONE, runs=(), green_in_a_row=0), Urgency.CHANGED),
    ],
)
def test_how_urgent_a_task_is(entry: BaselineTask, urgency: Urgency) -> None:
    assert task_urgency(named("a"), entry) is urgency
    assert task_urgency(named("a", suite=Suite.ADVERSARIAL), entry) is Urgency.SAFETY


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
