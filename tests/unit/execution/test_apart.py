"""Batches that run apart: how many at once, and how the money of a run is shared among them."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passgate.tasks.execution.apart import apart
from passgate.tasks.execution.batch import batches_of
from passgate.tasks.execution.coordinator import Round
from passgate.tasks.model.run import Batch, BatchOutcome
from passgate.tasks.model.trial import TrialStatus
from tests.builders import a_task, a_trial

Costs = Callable[[str, int], float]


class Machines:
    """Runs batches whose trials cost what is known before: a trial that the share cannot pay is not run."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.handed_out: list[Batch] = []
        self.ran: list[tuple[str, int]] = []
        self.running = self.most = 0

    async def run_one(self, batch: Batch) -> BatchOutcome:
        self.handed_out.append(batch)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        spent, trials = 0.0, []
        for task_id, number in batch.trials:
            cost = self.costs(task_id, number)
            paid = batch.max_cost is None or spent + cost <= batch.max_cost + 1e-9
            spent += cost if paid else 0.0
            status = TrialStatus.PASSED if paid else TrialStatus.NOT_RUN
            trials.append(a_trial(a_task(task_id=task_id), number, status))
            if paid:
                self.ran.append((task_id, number))
        return BatchOutcome(name=batch.name, trials=tuple(trials), spent=spent)


def run(
    machines: Machines, *names: str, workers: int = 2, at_once: int = 4, money: float | None = None
) -> list[BatchOutcome]:
    outcomes: list[BatchOutcome] = []
    execute = apart(machines.run_one, workers=workers, trials_at_once=at_once, cost_left=money)
    current = Round(batches_of([a_task(task_id=name) for name in names]))
    asyncio.run(execute(current, outcomes.append))
    return outcomes


def each(cost: float) -> Costs:
    return lambda task_id, number: cost


@pytest.mark.parametrize(("workers", "at_once", "most", "each_has"), [(2, 4, 2, 2), (8, 3, 3, 1), (1, 4, 1, 4)])
def test_concurrency_holds_over_all_batches(workers: int, at_once: int, most: int, each_has: int) -> None:
    machines = Machines(each(0.0))
    run(machines, *"abcdefgh", workers=workers, at_once=at_once)
    assert machines.most == most
    assert {batch.trials_at_once for batch in machines.handed_out} == {each_has}
    assert most * each_has <= at_once


def test_without_a_cost_cap_every_batch_is_handed_out_once() -> None:
    machines = Machines(each(1.0))
    assert len(run(machines, "a", "b", "c")) == 3
    assert [batch.max_cost for batch in machines.handed_out] == [None] * 3
    assert len(machines.ran) == 9


def test_what_one_batch_does_not_spend_pays_for_another() -> None:
    """The dear trials of `b` find no room in their share, and find it in what `a` gives back."""
    machines = Machines(lambda task_id, number: 0.0 if task_id == "a" else 1.0)
    run(machines, "a", "b", money=3.0)
    assert sorted(machines.ran) == [(name, number) for name in "ab" for number in range(3)]


def test_when_the_money_is_spent_nothing_more_is_handed_out() -> None:
    machines = Machines(each(1.0))
    run(machines, "a", "b", money=4.0)
    assert len(machines.ran) == 4


def test_shares_that_pay_for_no_trial_end_the_run() -> None:
    machines = Machines(each(10.0))
    outcomes = run(machines, "a", "b", money=1.0)
    assert (machines.ran, len(outcomes)) == ([], 2)


@settings(deadline=None)
@given(
    costs=st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=3, max_size=15),
    money=st.sampled_from([0.0, 0.5, 2.0, 10.0, 100.0]),
    workers=st.integers(1, 4),
)
def test_never_more_than_the_cap_and_no_trial_twice(costs: list[float], money: float, workers: int) -> None:
    names = [f"t{number}" for number in range(len(costs))]
    price = dict(zip(names, costs, strict=True))
    machines = Machines(lambda task_id, number: price[task_id])
    outcomes = run(machines, *names, workers=workers, money=money)
    assert sum(outcome.spent for outcome in outcomes) <= money + 1e-6
    assert len(set(machines.ran)) == len(machines.ran)
    if sum(costs) * 3 <= money / len(names):  # every share alone would do
        assert len(machines.ran) == 3 * len(names)
