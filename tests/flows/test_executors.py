"""Task runners that break while batches are handed out."""

import asyncio
import threading
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from passgate.flows import batch_task, executors
from passgate.tasks.errors import WorkerLostError
from passgate.tasks.model.run import Batch, BatchOutcome, RunRequest
from passgate.tasks.model.runner import RunnerName
from tests.waiting import until


class Runner:
    """A task runner, of which the first one is broken, and ends when it may."""

    def __init__(self, number: int) -> None:
        self.number, self.is_ending = number, False


async def test_a_batch_that_comes_while_a_broken_task_runner_ends_goes_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runners: list[Runner] = []
    may_end = threading.Event()

    def started(_: RunRequest) -> Runner:
        runners.append(Runner(len(runners)))
        return runners[-1]

    def ended(runner: Runner) -> None:
        runner.is_ending = True
        may_end.wait()

    def submitted(runner: Runner, _: str, batch: Batch) -> "Future[str]":
        if runner.is_ending:
            raise RuntimeError("Task runner is not started")
        future: Future[str] = Future()
        if runner.number:
            future.set_result(BatchOutcome(name=batch.name).model_dump_json())
        else:
            future.set_exception(BrokenProcessPool("a process has ended"))
        return future

    monkeypatch.setattr(executors, "_started", started)
    monkeypatch.setattr(executors, "_ended", ended)
    monkeypatch.setattr(batch_task, "submitted", submitted)
    cluster: Any = executors._Cluster(RunRequest(runner=RunnerName.PROCESS), lambda: None)
    await cluster.open()
    batch = Batch(name="b", trials=(("t", 0),))
    lost = asyncio.create_task(cluster.run("store", "digest", batch))
    await until(lambda: runners[0].is_ending)
    next_one = asyncio.create_task(cluster.run("store", "digest", batch))
    await asyncio.sleep(0)
    may_end.set()
    assert (await next_one).name == "b"
    with pytest.raises(WorkerLostError, match="a process has ended"):
        await lost
