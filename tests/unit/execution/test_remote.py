"""Batches in other processes: how large they are, how many run at once, and how the money of a run is shared."""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.errors import EngineError, UsageError, WorkerLostError
from passgate.tasks.execution.coordinator import Round, RunState, planned_batches
from passgate.tasks.execution.remote import BatchSizes, RunRemotely, remote_executor
from passgate.tasks.execution.remote_batch import CollectedTrials
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import BatchResult, RemoteBatch, RunRequest
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialStatus
from tests.builders import STOPS_EARLY, a_finished, a_plan, a_task, trials_of

Costs = Callable[[str, int], float]


class Machines:
    """Runs batches whose trials cost what is known before: a trial that the share cannot pay is not run."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.handed_out: list[RemoteBatch] = []
        self.ran: list[tuple[str, int]] = []
        self.running = self.most = 0

    async def run_one(self, batch: RemoteBatch) -> BatchResult:
        self.handed_out.append(batch)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        spent, trials = 0.0, list[FinishedTrial]()
        for task_id, number in batch.trials:
            cost = self.costs(task_id, number)
            paid = batch.share is None or spent + cost <= batch.share + 1e-9
            spent += cost if paid else 0.0
            status = TrialStatus.PASSED if paid else TrialStatus.NOT_RUN
            task = a_task(task_id=task_id)
            trials.append(a_finished(task, number, status=status, player_cost=cost if paid else None))
            if paid:
                self.ran.append((task_id, number))
        return BatchResult(trials=tuple(trials), seconds=float(len(trials)))


def run(
    run_one: RunRemotely,
    *names: str,
    workers: int = 2,
    at_once: int = 4,
    money: float | None = None,
    k: int = 3,
    before: Sequence[Trial] = (),
    **plan: Any,
) -> list[Trial]:
    """Run a round of tasks. Return what was recorded."""
    tasks = [a_task(task_id=name, k=k) for name in names]
    made = a_plan(*tasks, request=RunRequest(agent="nop", max_cost=money, jobs=at_once), **plan)
    journal = CollectedTrials()
    state = RunState(before, plan=made, journal=journal)

    async def execute(folder: str) -> None:
        store = RunStore(folder)
        store.write_plan(made, run_masker(made))
        async with remote_executor(run_one, made, store, state, workers) as executor:
            assert store.read_file("coordinator")
            await executor.run(Round(planned_batches(tasks)))
        assert not store.read_file("coordinator"), "batches that still run anywhere stop"

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(execute(folder))
    return [one.trial for one in journal.trials]


def each(cost: float) -> Costs:
    return lambda task_id, number: cost


@pytest.mark.parametrize(
    ("workers", "at_once", "slots"), [(2, 4, [2, 2]), (4, 10, [3, 3, 2, 2]), (8, 3, [1, 1, 1]), (1, 4, [4])]
)
def test_concurrency_holds_over_all_batches(workers: int, at_once: int, slots: list[int]) -> None:
    machines = Machines(each(0.0))
    trials = run(machines.run_one, *"abcdefgh", workers=workers, at_once=at_once)
    assert machines.most == len(slots)
    first = machines.handed_out[: len(slots)]
    assert [batch.trials_at_once for batch in first] == slots
    assert sorted((one.task_id, one.trial) for one in trials) == [(name, n) for name in "abcdefgh" for n in range(3)]


def test_the_coordinator_leaves_out_what_is_not_needed_and_tells_a_batch_what_ended_before() -> None:
    before = [*trials_of(a_task(task_id="a"), "f--"), *trials_of(a_task(task_id="b"), "p--")]
    machines = Machines(each(0.0))
    trials = run(machines.run_one, "a", "b", workers=2, at_once=2, before=before, policy=STOPS_EARLY)
    assert [(one.task_id, one.trial) for one in trials if one.left_out] == [("a", 0), ("a", 1), ("a", 2)]
    first_of_b = next(batch for batch in machines.handed_out if batch.trials[-1][0] == "b")
    assert [(one.task_id, one.trial) for one in first_of_b.earlier if one.task_id == "b"] == [("b", 0)]


def test_what_one_batch_does_not_spend_pays_for_another() -> None:
    """The dear trials of `b` find no room in their share, and find it in what `a` gives back."""
    machines = Machines(lambda task_id, number: 0.0 if task_id == "a" else 1.0)
    run(machines.run_one, "a", "b", money=3.0)
    assert sorted(machines.ran) == [(name, number) for name in "ab" for number in range(3)]


@pytest.mark.parametrize(
    ("names", "cost", "money", "workers", "ran"),
    [
        ("abc", 1.0, None, 3, 9),
        ("ab", 1.0, 4.0, 2, 4),
        ("ab", 10.0, 1.0, 2, 0),
        ("abcd", 4.0, 5.0, 4, 1),  # A call that only all of the money pays for is made
    ],
)
def test_all_of_the_money_is_spent_and_no_more(
    names: str, cost: float, money: float | None, workers: int, ran: int
) -> None:
    machines = Machines(each(cost))
    trials = run(machines.run_one, *names, workers=workers, money=money)
    last = {(one.task_id, one.trial): one.status for one in trials}
    assert (len(machines.ran), len(last)) == (ran, 3 * len(names))
    assert list(last.values()).count(TrialStatus.PASSED) == ran


@given(
    costs=st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=3, max_size=15),
    money=st.sampled_from([0.0, 0.5, 2.0, 10.0, 100.0]),
    workers=st.integers(1, 4),
)
def test_never_more_than_the_cap_and_no_trial_twice(costs: list[float], money: float, workers: int) -> None:
    names = [f"t{number}" for number in range(len(costs))]
    price = dict(zip(names, costs, strict=True))
    machines = Machines(lambda task_id, number: price[task_id])
    trials = run(machines.run_one, *names, workers=workers, money=money)
    assert sum(one.cost for one in trials) <= money + 1e-6
    assert len(set(machines.ran)) == len(machines.ran)
    if sum(costs) * 3 <= money:
        assert len(machines.ran) == 3 * len(names)


@pytest.mark.parametrize(("times", "error"), [(2, None), (3, r"the batch 'a' lost its worker 3 times: killed")])
def test_a_batch_that_is_lost_is_run_again_but_not_for_ever(times: int, error: str | None) -> None:
    machines, lost = Machines(each(0.0)), list[RemoteBatch]()

    async def losing(batch: RemoteBatch) -> BatchResult:
        lost.append(batch)
        if len(lost) <= times:
            raise WorkerLostError("killed")
        return await machines.run_one(batch)

    with pytest.raises(EngineError, match=error) if error else nullcontext():
        assert len(run(losing, "a", workers=1)) == 3
    assert (len(lost), len(set(lost))) == (3, 1)


def test_an_error_of_one_batch_ends_the_others_and_loses_no_result() -> None:
    cancelled, ended = [], asyncio.Event()

    async def failing(batch: RemoteBatch) -> BatchResult:
        if batch.name == "a":
            await ended.wait()
            raise UsageError("no")
        if batch.name == "b":
            ended.set()
            return BatchResult(trials=tuple(a_finished(a_task(task_id="b"), number) for _, number in batch.trials))
        try:
            return await asyncio.Future()
        except asyncio.CancelledError:
            cancelled.append(batch.name)
            raise

    with pytest.raises(UsageError):
        run(failing, "a", "b", "c", workers=3, at_once=3, k=1)
    assert cancelled == ["c"]


def sizes(trials: int, seconds: float, workers: int, at_once: int) -> list[int]:
    """The sizes of the batches of a round whose trials all take so long, one worker after the other."""
    made, waiting, chosen = list[int](), trials, BatchSizes()
    chosen.begin_round(trials, workers)
    batch = RemoteBatch(
        name="b",
        trials=(),
        location="",
        plan_digest="",
        coordinator="",
        passgate_version="",
        trials_at_once=at_once,
    )
    while waiting:
        made.append(chosen.next(waiting, at_once, max(1, workers - len(made))))
        waiting -= made[-1]
        ended = (a_finished(a_task()),) * made[-1]
        took = seconds * -(-made[-1] // at_once)
        keys = tuple(("say-yes", number) for number in range(made[-1]))
        chosen.learn(batch.model_copy(update={"trials": keys}), BatchResult(trials=ended, seconds=took))
    return made


@pytest.mark.parametrize(
    ("trials", "seconds", "workers", "at_once", "expected"),
    [
        (400, 0.5, 2, 4, [4, 32, 80, 80, 80, 62, 31, 16, 8, 4, 3]),  # about ten seconds, fewer towards the end
        (60, 40.0, 2, 4, [4, 8, 8, 8, 8, 8, 8, 4, 4]),  # at least two trials for each slot
        (4, 1.0, 4, 4, [1, 1, 1, 1]),  # every worker has something to do
        (2, 1.0, 4, 1, [1, 1]),
    ],
)
def test_batches_take_about_ten_seconds_and_less_towards_the_end(
    trials: int, seconds: float, workers: int, at_once: int, expected: list[int]
) -> None:
    assert sizes(trials, seconds, workers, at_once) == expected


def test_a_very_long_round_has_not_very_many_batches() -> None:
    made = sizes(100_000, 40.0, 50, 8)
    assert sum(made) == 100_000
    assert len(made) < 350
