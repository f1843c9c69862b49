"""Hand out batches to other processes and machines. The coordinator decides what runs, and alone writes the journal."""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final, Literal

from passgate import __version__
from passgate.tasks.errors import EngineError, StorageError, WorkerLostError
from passgate.tasks.execution.coordinator import Round, RunState, batch_name
from passgate.tasks.execution.scheduler import TrialKey
from passgate.tasks.execution.trial import left_out
from passgate.tasks.execution.worker import trials_at_once
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import BatchResult, Plan, RemoteBatch
from passgate.tasks.model.trial import TrialStatus

RunRemotely = Callable[[RemoteBatch], Awaitable[BatchResult]]
"""Runs a batch somewhere by `run_batch`. Raises `WorkerLostError` if its process has ended before the batch."""

MOST_TASK_RUNS: Final = 200  # Of a flow run, about: each costs time on Prefect's server
_BATCH_SECONDS: Final = 10.0
_MOST_TRIALS: Final = 300  # A result with their transcripts is one message
_MOST_BATCHES: Final = 120  # Of a round with very many trials
_FEWEST_WAVES: Final = 2  # With one trial for each slot, all slots wait for the slowest trial
_MOST_GROWTH: Final = 8  # The trials seen so far may have been the short ones
_MOST_LOSSES: Final = 3


@asynccontextmanager
async def remote_executor(
    run_remotely: RunRemotely, plan: Plan, store: RunStore, run_state: RunState, workers: int
) -> AsyncIterator["RemoteExecutor"]:
    """Open an executor that runs up to `workers` batches at once while the context lasts.

    All together run as many trials at once as the plan says, and spend no more than its cost cap. When the context
    ends, batches that still run anywhere stop within seconds. Raises `StorageError`.
    """
    blank = RemoteBatch(
        name="",
        trials=(),
        location=store.location,
        plan_digest=await asyncio.to_thread(store.plan_digest),
        coordinator=secrets.token_hex(8),
        passgate_version=__version__,
        trials_at_once=1,
        cost_cap=plan.request.max_cost,
    )
    await asyncio.to_thread(store.write_coordinator, blank.coordinator)
    try:
        yield RemoteExecutor(run_remotely, plan, blank, run_state, workers)
    finally:
        with suppress(StorageError):
            await asyncio.to_thread(store.write_coordinator, "")


class RemoteExecutor:
    """Divide the trials of a round into batches, hand out a batch whenever a worker is idle, and record the results.

    Each batch gets a share of the money that is left. What it does not spend goes back, and pays for trials whose share
    was too small, until no money is left or none of them can be paid with all of it.
    """

    def __init__(
        self, run_remotely: RunRemotely, plan: Plan, blank: RemoteBatch, run_state: RunState, workers: int
    ) -> None:
        """Hand out batches that are like `blank` but for their trials."""
        self._run_remotely, self._plan, self._blank, self._run_state = run_remotely, plan, blank, run_state
        self._workers = min(workers, trials_at_once(plan))
        self._tasks = {task.task_id: task for task in plan.tasks}
        self._masker = run_masker(plan)
        cap = plan.request.max_cost
        self._money = None if cap is None else max(0.0, cap - run_state.spent)
        self._call_cost = 0.0
        self._sizes = BatchSizes()

    async def run(self, current: Round) -> None:
        """Run a round. Raises what a batch raises, and `EngineError` if a batch loses its worker too often."""
        wanted = current.order or [key for batch in current.batches for key in batch.trials]
        workers, step = self._workers, current.batches[0].step
        while wanted:
            before = self._money
            wanted = await self._run_all(wanted, workers, step)
            # A batch that runs alone has had all the money.
            if workers == 1 or not self._money:
                return
            # If nothing was spent, half as many shares would not help either.
            workers = max(1, workers // 2) if self._money < (before or 0.0) else 1

    async def _run_all(
        self, wanted: Sequence[TrialKey], workers: int, step: Literal["run", "confirm"]
    ) -> list[TrialKey]:
        """Run trials in batches. Return those for which the share of their batch was too small."""
        waiting, unpaid = deque(wanted), list[TrialKey]()
        idle = slots(trials_at_once(self._plan), min(workers, len(wanted)))
        running: dict[asyncio.Task[BatchResult], RemoteBatch] = {}
        self._sizes.begin_round(len(wanted), len(idle))
        try:
            while waiting or running:
                while waiting and idle:
                    batch = await self._next_batch(waiting, idle[0], len(idle), step, is_alone=workers == 1)
                    if batch is not None:
                        idle.pop(0)
                        running[asyncio.create_task(self._run_batch(batch))] = batch
                if running:
                    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    # What has ended is recorded before an error of another batch ends the run.
                    for task in sorted(done, key=lambda one: one.exception() is not None):
                        batch, result = running.pop(task), task.result()
                        idle.append(batch.trials_at_once)
                        unpaid += await self._record(batch, result)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return unpaid

    async def _next_batch(
        self,
        waiting: deque[TrialKey],
        at_once: int,
        idle: int,
        step: Literal["run", "confirm"],
        *,
        is_alone: bool,
    ) -> RemoteBatch | None:
        """Take the trials of the next batch from those that wait. Record those that are not needed any more."""
        every, keys = len(waiting), list[TrialKey]()
        size = self._sizes.next(every, at_once, idle)
        while waiting and len(keys) < size:
            key = waiting.popleft()
            task = self._tasks[key[0]]
            reason = self._run_state.needless(task)
            if reason is None:
                keys.append(key)
            else:
                paid = self._run_state.paid_for(key)
                await self._run_state.record(left_out(task, key[1], reason, self._masker, paid_before=paid))
        if not keys:
            return None
        share = self._money
        if share is not None and self._money is not None:
            share = share if is_alone else share * len(keys) / every
            self._money -= share
        tasks = list(dict.fromkeys(task_id for task_id, _ in keys))
        return self._blank.model_copy(
            update={
                "name": f"{'confirm ' if step == 'confirm' else ''}{batch_name(tasks)}",
                "step": step,
                "trials": tuple(keys),
                "trials_at_once": at_once,
                "share": share,
                "call_cost": self._call_cost,
                "earlier": tuple(trial for trial in self._run_state.finished if trial.task_id in tasks),
            }
        )

    async def _run_batch(self, batch: RemoteBatch) -> BatchResult:
        """Have a batch run, and run again if its worker is lost."""
        for losses in count(1):
            try:
                return await self._run_remotely(batch)
            except WorkerLostError as error:
                if losses == _MOST_LOSSES:
                    raise EngineError(f"the batch {batch.name!r} lost its worker {losses} times: {error}") from error
        raise AssertionError

    async def _record(self, batch: RemoteBatch, result: BatchResult) -> list[TrialKey]:
        """Record what a batch has come to. Return its trials that were not paid for."""
        spent = sum(
            one.trial.cost - self._run_state.paid_for((one.trial.task_id, one.trial.trial)) for one in result.trials
        )
        if self._money is not None:
            self._money = max(0.0, self._money + (batch.share or 0.0) - spent)
        self._call_cost = result.call_cost or self._call_cost
        self._sizes.learn(batch, result)
        self._run_state.warnings.update(dict.fromkeys(result.warnings))
        # Side by side, so that they share the waits for the disk.
        await asyncio.gather(*(self._run_state.record(finished) for finished in result.trials))
        unpaid = [one.trial for one in result.trials if one.trial.status is TrialStatus.NOT_RUN]
        return [(trial.task_id, trial.trial) for trial in unpaid if not trial.left_out]


class BatchSizes:
    """How many trials the next batch gets: those of about ten seconds, at the pace of the batch that ended last."""

    def __init__(self) -> None:
        self._trial_seconds: float | None = None
        self._largest = 0
        self._workers = 1
        self._least = 0

    def begin_round(self, trials: int, workers: int) -> None:
        """Begin to divide the trials of a round among workers."""
        self._workers = max(1, workers)
        self._least = -(-trials // _MOST_BATCHES)

    def learn(self, batch: RemoteBatch, result: BatchResult) -> None:
        """Learn the pace from a batch that has ended."""
        ran = sum(not one.trial.left_out for one in result.trials)
        if ran:
            self._trial_seconds = result.seconds * min(batch.trials_at_once, ran) / ran
            self._largest = max(self._largest, len(batch.trials))

    def next(self, waiting: int, at_once: int, idle: int) -> int:
        """Return the size of a batch for a worker that runs `at_once` trials.

        `waiting` trials have no batch yet, and `idle` workers have none either. Towards the end batches get smaller,
        so that all workers end at about the same time.
        """
        wanted = at_once
        if self._trial_seconds is not None:
            in_time = int(_BATCH_SECONDS * at_once / max(self._trial_seconds, 1e-3))
            wanted = max(in_time, _FEWEST_WAVES * at_once, self._least // _MOST_GROWTH)
            wanted = min(wanted, _MOST_TRIALS, _MOST_GROWTH * self._largest)
        wanted = max(wanted, min(self._least, -(-waiting // self._workers)))
        fair = max(-(-waiting // self._workers), min(at_once, -(-waiting // idle)))
        return max(1, min(wanted, fair))


def slots(trials_at_once: int, workers: int) -> list[int]:
    """Return the number of trials that each worker runs at once, the largest first. The sum is at most
    `trials_at_once`.
    """
    used = max(1, min(workers, trials_at_once))
    return [trials_at_once // used + (place < trials_at_once % used) for place in range(used)]
