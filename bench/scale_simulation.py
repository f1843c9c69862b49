"""What breaks first when a run outgrows these machines: 100,000 trials on 50 workers, in simulated time.

    python -m bench.scale_simulation [--trials 100000] [--workers 50]

The coordinator, the division into batches, the executor of distributed batches, the run store and its journal are
the product's own. Simulated are the clock, the object store below the run store, which counts its requests, and the
workers: a trial of theirs takes a time and is then appended to the journal. What Prefect's server and providers have to
stand is computed from what the run asks of them.
"""

import argparse
import asyncio
import json
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, TypeVar
from unittest.mock import patch

import fsspec
from fsspec.spec import AbstractFileSystem
from tests.builders import a_plan, a_task

from passgate.tasks.execution.coordinator import coordinate
from passgate.tasks.execution.distributed.batch import part_of
from passgate.tasks.execution.distributed.executor import distributed_executor
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Batch, BatchOutcome, Plan
from passgate.tasks.model.transcript import Message, Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialStatus

T = TypeVar("T")

TRIAL_SECONDS, STEPS, TOKENS_OF_STEP = 40.0, 8, 3000
TRIALS_OF_WORKER = 8
DISPATCH_SECONDS = 10.0  # From a flow run that is made until a worker of the pool has started it
POLL_SECONDS = 2.0
WORKER_POLL_SECONDS = 15.0  # How often a worker of Prefect asks for flow runs
CALLS_OF_FLOW_RUN = 12  # Of Prefect's API: made, its states, its heartbeats, its parameters and deployment read
SERVER_CPU_OF_CALL = 0.008  # Seconds, measured for recorded states
PASS_RATE = 0.98
_PAGE = 1000  # Names that S3 lists in one request


class CountedStore(AbstractFileSystem):  # type: ignore[misc]
    """An object store in memory that counts requests, by what S3 bills."""

    protocol = "counted"
    cachable = False
    folders: dict[str, dict[str, bytes]] = {}
    inner: dict[str, set[str]] = {}
    requests: Counter[str] = Counter()
    bytes_read = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("counted://").rstrip("/")

    def _place(self, path: str) -> tuple[str, str]:
        folder, _, name = self._strip_protocol(path).rpartition("/")
        return folder, name

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        self.requests["PUT"] += 1
        folder, name = self._place(path)
        if mode == "create" and name in self.folders.get(folder, {}):
            raise FileExistsError(path)
        if folder not in self.folders:
            parts = folder.rpartition("/")
            self.inner.setdefault(parts[0], set()).add(parts[2])
        self.folders.setdefault(folder, {})[name] = value

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        self.requests["GET"] += 1
        folder, name = self._place(path)
        try:
            content = self.folders[folder][name][start:end]
        except KeyError:
            raise FileNotFoundError(path) from None
        type(self).bytes_read += len(content)
        return content

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **_: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for one in path:
            try:
                found[one] = self.cat_file(one)
            except FileNotFoundError as error:
                found[one] = error
        return found

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        self.requests["HEAD"] += 1
        folder, name = self._place(path)
        if name not in self.folders.get(folder, {}):
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.folders[folder][name]), "type": "file"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        place = self._strip_protocol(path)
        files = self.folders.get(place, {})
        inner = {one for one in self.inner.get(place, ()) if self.folders.get(f"{place}/{one}")}
        self.requests["LIST"] += 1 + (len(files) + len(inner)) // _PAGE
        found = [{"name": f"{place}/{name}", "size": len(content), "type": "file"} for name, content in files.items()]
        return found + [{"name": f"{place}/{name}", "size": 0, "type": "directory"} for name in inner]

    def rm(self, path: Any, **_: Any) -> None:
        self.requests["DELETE"] += 1
        for one in path if isinstance(path, list) else [path]:
            folder, name = self._place(one)
            self.folders.get(folder, {}).pop(name, None)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Folders of an object store need not be made."""


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
    """Workers that run batches: each so many trials at once, each trial appended to the journal as it ends."""

    def __init__(self, plan: Plan, store: RunStore, seed: int) -> None:
        self._tasks = {task.task_id: task for task in plan.tasks}
        self._store, self._random = store, random.Random(seed)
        self.batches, self.running, self.most = 0, 0, 0

    async def run(self, batch: Batch) -> BatchOutcome:
        """As of `RunBatch`."""
        await asyncio.sleep(DISPATCH_SECONDS * self._random.uniform(0.3, 1.7))
        self.batches += 1
        slots = asyncio.Semaphore(batch.trials_at_once or 1)
        trials: list[Trial] = []
        with self._store.open_journal(part_of(batch)) as journal:

            async def one(key: tuple[str, int]) -> None:
                async with slots:
                    self.running += 1
                    self.most = max(self.most, self.running)
                    await asyncio.sleep(self._random.lognormvariate(0, 0.5) * TRIAL_SECONDS)
                    self.running -= 1
                    finished = self._finished(*key)
                    await journal.append(finished)
                    trials.append(finished.trial)

            async with asyncio.TaskGroup() as group:
                for key in batch.trials:
                    group.create_task(one(key))
        return BatchOutcome(name=batch.name, trials=tuple(trials))

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


async def _followed(store: RunStore, ended: asyncio.Event) -> int:
    """Look for new trials every two seconds, as the progress of a run does; gives the number of looks."""
    seen, looks = dict[str, int](), 0
    while not ended.is_set():
        await asyncio.sleep(POLL_SECONDS)
        for line in store.new_lines(seen):
            json.loads(line)
        looks += 1
    return looks


async def _simulated(trials: int, workers: int) -> dict[str, Any]:
    tasks = [a_task(task_id=f"task-{number}", k=5) for number in range(trials // 5)]
    plan = a_plan(*tasks, run_id="simulation")
    store = RunStore("counted://bucket/runs/simulation")
    crew, ended = Workers(plan, store, seed=1), asyncio.Event()
    following = asyncio.create_task(_followed(store, ended))
    pool = lambda _: Baseline(branch="main")  # noqa: E731
    async with distributed_executor(
        crew.run, store, workers=workers, trials_at_once=workers * TRIALS_OF_WORKER, cost_left=None
    ) as execute:
        done = await coordinate(plan, pool, [], execute)
    seconds = asyncio.get_running_loop().time()
    ended.set()
    looks = await following
    kept = store.read_trials()
    return {
        "trials": len(kept),
        "finished": len(done.trials),
        "batches": crew.batches,
        "most at once": crew.most,
        "hours": seconds / 3600,
        "looks": looks,
        "ideal hours": trials * TRIAL_SECONDS * 1.133 / (workers * TRIALS_OF_WORKER) / 3600,
    }


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner, ExitStack() as stack:
        # What measures how long batches take has to read the same clock.
        stack.enter_context(patch("time.monotonic", runner.get_loop().time))
        return runner.run(work)


def main() -> None:
    """Simulate, and print what the run asks of the store, of Prefect's server and of providers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=50)
    options = parser.parse_args()
    fsspec.register_implementation("counted", CountedStore, clobber=True)
    begun = time.perf_counter()
    found = _run(_simulated(options.trials, options.workers))
    seconds = found["hours"] * 3600
    requests = CountedStore.requests
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found | dict(requests), indent=2, default=float))
    print(f"simulated in {time.perf_counter() - begun:.0f} s, {memory:.0f} MiB")
    read = CountedStore.bytes_read / seconds / 1e6
    print(f"object store: {sum(requests.values()) / seconds:.1f} requests/s, {read:.2f} MB/s read")
    polls = seconds / POLL_SECONDS + options.workers * seconds / WORKER_POLL_SECONDS
    calls = found["batches"] * CALLS_OF_FLOW_RUN + polls
    print(f"Prefect's server: {calls / seconds:.1f} calls/s, {calls * SERVER_CPU_OF_CALL / seconds:.1%} of a core")
    per_minute = found["finished"] * STEPS / (seconds / 60)
    print(f"provider: {per_minute:.0f} calls/minute, {per_minute * TOKENS_OF_STEP / 1e6:.1f} M tokens/minute")


if __name__ == "__main__":
    main()
