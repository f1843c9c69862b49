"""Task runners that break while batches are handed out."""

import asyncio
import multiprocessing
import re
import sys
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
from prefect.context import serialize_context
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.task_runners import ProcessPoolTaskRunner, ThreadPoolTaskRunner

from passgate.flows import batch_task, executors
from passgate.tasks.errors import UsageError, WorkerLostError
from passgate.tasks.model.names import RunnerName
from passgate.tasks.model.run import BatchResult, RemoteBatch, RunRequest
from passgate.tasks.planning import requirements
from passgate.tasks.sandboxes.processes import in_daemon_thread
from tests.waiting import until

BATCH = RemoteBatch(
    name="b",
    trials=(("golden/a", 0),),
    location="store",
    plan_digest="digest",
    coordinator="c",
    passgate_version="1",
    trials_at_once=1,
)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"workers": 2}, "--workers is for a task runner of Prefect: add --runner process, dask or ray"),
        ({"runner_address": "tcp://a:1"}, "--runner-address is for a task runner of Prefect"),
        ({"runner": "dask"}, "--runner dask is not installed: pip install 'passgate[dask]'"),
        ({"runner": "ray"}, "--runner ray is not installed: pip install 'passgate[ray]'"),
        ({"runner": "process", "runner_address": "tcp://a:1"}, "--runner process has no address"),
    ],
)
def test_a_task_runner_that_is_not_there_or_not_fully_named_is_refused(
    asked: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=re.escape(said)):
        requirements.refuse_runner(RunRequest.model_validate(asked))
    requirements.refuse_runner(RunRequest(runner=RunnerName.PROCESS, workers=2))


async def test_a_closed_task_runner_takes_no_batch() -> None:
    runner = executors._Runner(RunRequest(runner=RunnerName.PROCESS))
    with pytest.raises(WorkerLostError, match="the task runner is closed"):
        await runner.run(BATCH)
    await runner.close()


class Runner:
    """A task runner, of which the first one is broken, and ends when it may."""

    def __init__(self, number: int) -> None:
        self.number, self.is_ending, self.may_end = number, False, threading.Event()

    def __exit__(self, *_: object) -> None:
        self.is_ending = True
        self.may_end.wait()


async def test_a_batch_that_comes_while_a_broken_task_runner_ends_goes_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runners: list[Runner] = []

    def started(_: RunRequest) -> Runner:
        runners.append(Runner(len(runners)))
        return runners[-1]

    def submit(runner: Runner, _: RemoteBatch) -> "Future[str]":
        if runner.is_ending:
            raise RuntimeError("Task runner is not started")
        future: Future[str] = Future()
        if runner.number:
            future.set_result(BatchResult(seconds=1.0).model_dump_json())
        else:
            future.set_exception(BrokenProcessPool("a process has ended"))
        return future

    monkeypatch.setattr(executors, "_start", started)
    monkeypatch.setattr(executors, "submit", submit)
    runner: Any = executors._Runner(RunRequest(runner=RunnerName.PROCESS))
    await runner.open()
    lost = asyncio.create_task(runner.run(BATCH))
    await until(lambda: runners[0].is_ending)
    next_one = asyncio.create_task(runner.run(BATCH))
    await asyncio.sleep(0)
    runners[0].may_end.set()
    assert (await next_one).seconds == 1.0
    with pytest.raises(WorkerLostError, match="a process has ended"):
        await lost


async def test_a_library_that_would_end_the_process_only_fails() -> None:
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        await in_daemon_thread(lambda: sys.exit(3))


ELSEWHERE = "http://127.0.0.1:9/api"


def settings_here() -> tuple[str, int]:
    return str(PREFECT_API_URL.value()), PREFECT_CLIENT_MAX_RETRIES.value()


def test_a_process_has_the_settings_of_the_coordinator_before_its_first_task() -> None:
    with temporary_settings({PREFECT_API_URL: ELSEWHERE, PREFECT_CLIENT_MAX_RETRIES: 2}):
        runner = batch_task.process_task_runner()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, runner._initializer, runner._initargs) as processes:
        assert processes.submit(settings_here).result() == (ELSEWHERE, 2)


def test_only_tasks_of_such_processes_bring_no_settings() -> None:
    class Processes(ProcessPoolTaskRunner):
        def submit(self, *_: Any) -> Any:
            return serialize_context()["settings_context"]

    class Threads(ThreadPoolTaskRunner):
        submit: Any = Processes.submit

    assert not batch_task.submit(Processes(), BATCH)
    assert batch_task.submit(Threads(), BATCH)
