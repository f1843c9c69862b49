"""Distributed batches: how many at once, and how the money of a run is shared among them."""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.errors import EngineError, UsageError, WorkerLostError
from passgate.tasks.execution.batches import batches_of
from passgate.tasks.execution.coordinator import Round
from passgate.tasks.execution.distributed.batch import part_of
from passgate.tasks.execution.distributed.executor import RunBatch, distributed_executor
from passgate.tasks.execution.distributed.orders import read_orders, write_released
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Batch, BatchOutcome, Released
from passgate.tasks.model.trial import TrialStatus
from tests.builders import a_finished, a_task, a_trial
from tests.waiting import until

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
    run_one: RunBatch,
    *names: str,
    workers: int = 2,
    at_once: int = 4,
    money: float | None = None,
    folder: str = "",
    k: int = 3,
) -> list[BatchOutcome]:
    outcomes: list[BatchOutcome] = []

    async def execute(store: RunStore) -> None:
        settings = {"workers": workers, "trials_at_once": at_once, "cost_left": money}
        async with distributed_executor(run_one, store, **settings) as executor:
            await executor(Round(batches_of([a_task(task_id=name, k=k) for name in names])), outcomes.append)

    with tempfile.TemporaryDirectory() as new:
        asyncio.run(execute(RunStore(folder or new)))
    return outcomes


def each(cost: float) -> Costs:
    return lambda task_id, number: cost


@pytest.mark.parametrize(
    ("workers", "at_once", "slots"), [(2, 4, [2, 2]), (4, 10, [3, 3, 2, 2]), (8, 3, [1, 1, 1]), (1, 4, [4])]
)
def test_concurrency_holds_over_all_batches(workers: int, at_once: int, slots: list[int]) -> None:
    machines = Machines(each(0.0))
    run(machines.run_one, *"abcdefgh", workers=workers, at_once=at_once)
    assert machines.most == len(slots)
    first = machines.handed_out[: len(slots)]
    assert [batch.trials_at_once for batch in first] == slots


def test_what_one_batch_does_not_spend_pays_for_another() -> None:
    """The dear trials of `b` find no room in their share, and find it in what `a` gives back."""
    machines = Machines(lambda task_id, number: 0.0 if task_id == "a" else 1.0)
    run(machines.run_one, "a", "b", money=3.0)
    assert sorted(machines.ran) == [(name, number) for name in "ab" for number in range(3)]


@pytest.mark.parametrize(
    ("names", "cost", "money", "workers", "ran", "shares"),
    [
        ("abc", 1.0, None, 3, 9, [None] * 3),
        ("ab", 1.0, 4.0, 2, 4, None),  # When the money is spent nothing more is handed out
        ("ab", 10.0, 1.0, 2, 0, [0.5, 0.5, 1.0]),  # Both have had a half of it, and then one batch has had all of it
        ("abcd", 4.0, 5.0, 4, 1, None),  # A call that only all of the money pays for is made
    ],
)
def test_all_of_the_money_is_spent_and_no_more(
    names: str, cost: float, money: float | None, workers: int, ran: int, shares: list[float | None] | None
) -> None:
    machines = Machines(each(cost))
    outcomes = run(machines.run_one, *names, workers=workers, money=money)
    handed_out = [batch.max_cost for batch in machines.handed_out]
    assert (len(machines.ran), len(outcomes), handed_out) == (ran, len(handed_out), shares or handed_out)


@given(
    costs=st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=3, max_size=15),
    money=st.sampled_from([0.0, 0.5, 2.0, 10.0, 100.0]),
    workers=st.integers(1, 4),
)
def test_never_more_than_the_cap_and_no_trial_twice(costs: list[float], money: float, workers: int) -> None:
    names = [f"t{number}" for number in range(len(costs))]
    price = dict(zip(names, costs, strict=True))
    machines = Machines(lambda task_id, number: price[task_id])
    outcomes = run(machines.run_one, *names, workers=workers, money=money)
    assert sum(outcome.spent for outcome in outcomes) <= money + 1e-6
    assert len(set(machines.ran)) == len(machines.ran)
    if sum(costs) * 3 <= money / len(names):  # every share alone would do
        assert len(machines.ran) == 3 * len(names)


@pytest.mark.parametrize(("times", "error"), [(2, None), (3, r"the batch 'a' lost its worker 3 times: killed")])
def test_a_batch_that_is_lost_is_run_again_but_not_for_ever(times: int, error: str | None) -> None:
    machines, lost = Machines(each(0.0)), list[str]()

    async def losing(batch: Batch) -> BatchOutcome:
        lost.append(part_of(batch))
        if len(lost) <= times:
            raise WorkerLostError("killed")
        return await machines.run_one(batch)

    with pytest.raises(EngineError, match=error) if error else nullcontext():
        assert len(run(losing, "a")) == 1
    assert (len(lost), len(set(lost))) == (3, 1)


def test_a_batch_of_which_trials_end_is_run_again_however_often_it_is_lost(tmp_path: Path) -> None:
    machines, lost = Machines(each(0.0)), list[str]()

    async def losing(batch: Batch) -> BatchOutcome:
        if len(lost) == 4:
            return await machines.run_one(batch)
        lost.append(part_of(batch))
        with RunStore(str(tmp_path)).open_journal(f"attempt-{len(lost)}") as journal:
            await journal.append(a_finished(a_task(task_id="a", k=5), len(lost)))
        raise WorkerLostError("killed")

    assert len(run(losing, "a", folder=str(tmp_path), k=5)) == 1


def test_an_error_of_one_batch_ends_the_others() -> None:
    cancelled = []

    async def failing(batch: Batch) -> BatchOutcome:
        if batch.name == "a":
            raise UsageError("no")
        try:
            return await asyncio.Future()
        except asyncio.CancelledError:
            cancelled.append(batch.name)
            raise

    with pytest.raises(UsageError):
        run(failing, "a", "b")
    assert cancelled == ["b"]


def test_batches_that_still_run_anywhere_are_told_to_end(tmp_path: Path) -> None:
    store, during = RunStore(str(tmp_path)), list[Any]()

    async def look(batch: Batch) -> BatchOutcome:
        during.append(read_orders(store))
        return BatchOutcome(name=batch.name)

    run(look, "a", folder=str(tmp_path))
    after = read_orders(store)
    assert during[0].coordinator == after.coordinator
    assert (during[0].ended, after.ended) == (False, True)


class SlowAndDivisible(Machines):
    """The batch with `a` goes on until it is told to give back some of its trials, and gives back all but the first."""

    def __init__(self, folder: Path) -> None:
        super().__init__(each(0.0))
        self.store = RunStore(str(folder))

    async def run_one(self, batch: Batch) -> BatchOutcome:
        if batch.number > 1:
            return await super().run_one(batch)
        self.handed_out.append(batch)
        await until(lambda: (orders := read_orders(self.store)) is not None and batch.number in orders.divide)
        released = Released(trials=batch.trials[1:], cost=(batch.max_cost or 0.0) / 2)
        write_released(self.store, part_of(batch), released)
        await until(lambda: len(self.ran) >= 5)
        self.ran.append(batch.trials[0])
        trial = a_trial(a_task(task_id="a"), 0, TrialStatus.PASSED)
        return BatchOutcome(name=batch.name, trials=(trial,), released=batch.trials[1:])


def test_idle_workers_get_trials_of_a_batch_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_WORTH_SECONDS", 0.0), ("POLL_SECONDS", 0.02)):
        monkeypatch.setattr(f"passgate.tasks.execution.distributed.executor.{name}", seconds)
    machines = SlowAndDivisible(tmp_path)
    run(machines.run_one, "a", "b", workers=2, at_once=2, money=6.0, folder=str(tmp_path))
    assert sorted(machines.ran) == [(name, number) for name in "ab" for number in range(3)]
    (divided,) = [batch for batch in machines.handed_out if batch.number == 3]
    assert divided.trials == (("a", 1), ("a", 2))
    assert divided.continued, "it has to look for what the first batch has come to"
    assert divided.max_cost == pytest.approx(4.5), "what `b` had and half of what `a` had"
