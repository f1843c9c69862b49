"""What breaks first when a run outgrows these machines: 100,000 trials on 50 workers, in simulated time.

    python -m bench.scale_simulation [--trials 100000] [--workers 50]

The coordinator, the sizes of the batches, the executor and the journal are the product's own. Simulated are the clock
and the workers. The load on Prefect's server, on a run store and on providers is computed from what the run asks of
them.
"""

import argparse
import asyncio
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, TypeVar
from unittest.mock import patch

from tests.builders import a_plan, a_task

from passgate.tasks.execution.coordinator import RunState, coordinate
from passgate.tasks.execution.remote import remote_executor
from passgate.tasks.execution.remote_batch import LOOK_SECONDS_AT_URL
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import BatchResult, Plan, RemoteBatch, RunRequest
from passgate.tasks.model.transcript import Message, Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialStatus

T = TypeVar("T")

TRIAL_SECONDS, STEPS, TOKENS_OF_STEP = 40.0, 8, 3000
TRIALS_OF_WORKER = 8
DISPATCH_SECONDS = 0.2  # From a batch that is handed out until its first trial
CALLS_OF_TASK_RUN = 6  # Of Prefect's API: made, and its states
SERVER_CPU_OF_CALL = 0.008  # Seconds, measured for recorded states
PASS_RATE = 0.98


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer, and whose threads take no time."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            done.set_exception(error)
        return done


class Workers:
    """Workers that run batches: each so many trials at once."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._tasks = {task.task_id: task for task in plan.tasks}
        self._random = random.Random(seed)
        self.batches, self.running, self.most = 0, 0, 0

    async def run(self, batch: RemoteBatch) -> BatchResult:
        """As of `RunRemotely`."""
        await asyncio.sleep(DISPATCH_SECONDS * self._random.uniform(0.5, 1.5))
        self.batches += 1
        slots = asyncio.Semaphore(batch.trials_at_once)
        trials: list[FinishedTrial] = []
        began = asyncio.get_running_loop().time()

        async def one(key: tuple[str, int]) -> None:
            async with slots:
                self.running += 1
                self.most = max(self.most, self.running)
                await asyncio.sleep(self._random.lognormvariate(0, 0.5) * TRIAL_SECONDS)
                self.running -= 1
                trials.append(self._finished(*key))

        async with asyncio.TaskGroup() as group:
            for key in batch.trials:
                group.create_task(one(key))
        return BatchResult(trials=tuple(trials), seconds=asyncio.get_running_loop().time() - began)

    def _finished(self, task_id: str, number: int) -> FinishedTrial:
        task = self._tasks[task_id]
        passed = self._random.random() < PASS_RATE
        trial = Trial(
            suite=task.suite,
            task_id=task_id,
            trial=number,
            k=task.k,
            metric=task.metric,
            status=TrialStatus.PASSED if passed else TrialStatus.FAILED,
            reason="" if passed else "it failed",
            isolation="bubblewrap",
            started_at=datetime.now(UTC),
            task_digest=task.task_digest,
            grader_digest=task.grader_digest,
            transcript_digest=f"{task_id}-{number}",
            file=task.file,
            line=1,
        )
        return FinishedTrial(trial=trial, transcript=Transcript(messages=(Message(role="user", content="x" * 200),)))


async def _simulated(trials: int, workers: int, folder: str) -> dict[str, Any]:
    tasks = [a_task(task_id=f"task-{number}", k=5) for number in range(trials // 5)]
    plan = a_plan(*tasks, run_id="simulation", request=RunRequest(agent="nop", jobs=workers * TRIALS_OF_WORKER))
    store, crew = RunStore(folder), Workers(plan, seed=1)
    store.write_plan(plan, run_masker(plan))
    pool = lambda _: Baseline(branch="main")  # noqa: E731
    with store.open_journal() as journal:
        state = RunState(journal=journal)
        async with remote_executor(crew.run, plan, store, state, workers) as executor:
            await coordinate(plan, pool, state, executor)
    return {
        "trials": len(store.read_trials()),
        "finished": len(state.finished),
        "batches": crew.batches,
        "most at once": crew.most,
        "hours": asyncio.get_running_loop().time() / 3600,
        "ideal hours": trials * TRIAL_SECONDS * 1.133 / (workers * TRIALS_OF_WORKER) / 3600,
        "journal MiB": store.journal.stat().st_size / 2**20,
    }


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner, ExitStack() as stack:
        # What measures how long batches take has to read the same clock.
        stack.enter_context(patch("time.monotonic", runner.get_loop().time))
        return runner.run(work)


def main() -> None:
    """Simulate, and print what the run asks of Prefect's server, of a run store at a URL and of providers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=50)
    options = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = _run(_simulated(options.trials, options.workers, folder))
    seconds = found["hours"] * 3600
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found, indent=2))
    print(f"simulated in {time.perf_counter() - begun:.0f} s, {memory:.0f} MiB")
    print(f"run store: {options.workers / LOOK_SECONDS_AT_URL:.0f} requests/s of {options.workers} batches")
    calls = found["batches"] * CALLS_OF_TASK_RUN / seconds
    print(f"Prefect's server: {calls:.1f} calls/s, {calls * SERVER_CPU_OF_CALL:.1%} of a core")
    per_minute = found["finished"] * STEPS / (seconds / 60)
    print(f"provider: {per_minute:.0f} calls/minute, {per_minute * TOKENS_OF_STEP / 1e6:.1f} M tokens/minute")


if __name__ == "__main__":
    main()
