"""Where batches of trials run: in this process, or on a task runner of Prefect."""

import asyncio
import contextvars
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import BrokenExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from passgate.flows.batch_task import process_task_runner, submit
from passgate.flows.concurrency_limit import refuse_missing_limit, shared_limit
from passgate.tasks.errors import PassgateError, UsageError, WorkerLostError
from passgate.tasks.execution.coordinator import Executor, RunState
from passgate.tasks.execution.engine import Engine
from passgate.tasks.execution.remote import remote_executor
from passgate.tasks.execution.worker import in_process
from passgate.tasks.files.removal import remove_tree
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.names import RunnerName
from passgate.tasks.model.run import BatchResult, Plan, RemoteBatch, RunRequest
from passgate.tasks.planning.requirements import refuse_runner
from passgate.tasks.sandboxes.processes import finish, in_daemon_thread

_NEW_CLUSTER: Final = "local"  # As an address of Ray
_SECONDS_TO_END = 3.0  # How long batches have to stop when the run does; they look every second
_SECONDS_TO_CLOSE = 3.0
_POLL_SECONDS: Final = 0.05
_SECONDS_TO_CONNECT = 15.0


def open_executor(
    engine: Engine, count_batch: Callable[[], None], plan: Plan, store: RunStore, run_state: RunState
) -> AbstractAsyncContextManager[Executor]:
    """Open what a plan's request asks for, in a flow run; count its task runs. To enter raises `UsageError`."""
    if plan.request.runner is None:
        return in_process(engine, plan, store, run_state, open_limit=shared_limit)
    return _open_task_runners(count_batch, plan, store, run_state)


@asynccontextmanager
async def _open_task_runners(
    count_batch: Callable[[], None], plan: Plan, store: RunStore, run_state: RunState
) -> AsyncIterator[Executor]:
    """Open the task runners of Prefect, on which one batch runs for each worker.

    Each process is one: if it is lost, it breaks its task runner. Batches end by themselves, and remove their folders.
    """
    request = plan.request
    refuse_runner(request)
    await refuse_missing_limit(plan)
    workers = request.workers or len(os.sched_getaffinity(0))
    runners = [_Runner(request) for _ in range(workers if request.runner is RunnerName.PROCESS else 1)]
    idle: asyncio.Queue[_Runner] = asyncio.Queue()

    async def run(batch: RemoteBatch) -> BatchResult:
        runner = await idle.get()
        count_batch()
        try:
            return await runner.run(batch)
        finally:
            idle.put_nowait(runner)

    async def close() -> None:
        await asyncio.gather(*(runner.close() for runner in runners))
        for child in multiprocessing.active_children():
            child.kill()

    try:
        for runner in runners:
            await runner.open()
        if request.workers is None and request.runner is not RunnerName.PROCESS:
            workers = await runners[0].size()
        for number in range(workers):
            idle.put_nowait(runners[number % len(runners)])
        async with remote_executor(run, plan, store, run_state, workers) as executor:
            yield executor
    finally:
        # A second cancellation must not keep the cluster from being ended.
        await finish(asyncio.ensure_future(close()))


class _Runner:
    """A task runner of Prefect. If it breaks, it is opened anew."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._runner: Any = None
        self._opening = asyncio.Lock()
        self._results: set[asyncio.Future[Any]] = set()

    async def open(self) -> None:
        # Ray has the kernel kill the processes of a cluster when the thread that started them ends.
        self._runner = await in_daemon_thread(partial(_start, self._request), keeps_thread=True)
        if threading.current_thread() is threading.main_thread():
            # Ray has put a handler before it that prints a stack of its own.
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))

    async def size(self) -> int:
        """Return the number of tasks that a cluster runs at once."""

        def size() -> Any:
            if hasattr(self._runner, "client"):
                return sum(self._runner.client.ncores().values())
            import ray

            return ray.cluster_resources().get("CPU", 1)  # type: ignore[no-untyped-call]

        return max(1, int(await in_daemon_thread(size)))

    async def run(self, batch: RemoteBatch) -> BatchResult:
        """Run a batch as a task run. Raise what it raises, and `WorkerLostError`."""
        async with self._opening:  # A broken one takes no batches while it ends: they would be lost again at once.
            runner = self._runner
        if runner is None:
            raise WorkerLostError("the task runner is closed")
        try:
            future = await in_daemon_thread(partial(submit, runner, batch), contextvars.copy_context())
            result = asyncio.ensure_future(in_daemon_thread(future.result))
            self._results.add(result)
            result.add_done_callback(self._forget)
            # If this is cancelled, `close` waits for the result.
            return BatchResult.model_validate_json(await asyncio.shield(result))
        except PassgateError:
            raise
        except Exception as error:
            if isinstance(error, BrokenExecutor):
                # Once for all batches that were on this task runner.
                async with self._opening:
                    if self._runner is runner:
                        await _end(runner, None)
                        await self.open()
            raise WorkerLostError(f"{type(error).__name__}: {error}") from error

    def _forget(self, result: "asyncio.Future[Any]") -> None:
        self._results.discard(result)
        if not result.cancelled():
            result.exception()  # asyncio complains of one that nobody has looked at

    async def close(self) -> None:
        runner, self._runner = self._runner, None
        if self._results:
            await asyncio.wait(self._results, timeout=_SECONDS_TO_END)
        if runner is not None:
            await _end(runner, _SECONDS_TO_CLOSE)


def _start(request: RunRequest) -> Any:
    """Start a task runner, or connect to its cluster. Raise `UsageError`."""
    runner = _task_runner(request)
    try:
        runner.__enter__()
        if request.runner is RunnerName.DASK:
            runner.client  # noqa: B018 - it connects when it is asked for the first time
    except Exception as error:
        where = f" at {request.runner_address}" if request.runner_address else ""
        remedy = "start it, or correct --runner-address" if where else "see the message of the task runner"
        what = f"--runner {request.runner!s}{where} cannot be used"
        raise UsageError(f"{what} ({type(error).__name__}: {error}): {remedy}") from error
    return runner


def _task_runner(request: RunRequest) -> Any:
    address, workers = request.runner_address, request.workers or len(os.sched_getaffinity(0))
    if request.runner is RunnerName.DASK:
        from prefect_dask.task_runners import DaskTaskRunner

        local = {
            "n_workers": workers,
            "threads_per_worker": 1,
            "dashboard_address": None,
            "memory_limit": 0,
            "silence_logs": logging.CRITICAL,
        }
        client: dict[str, Any] = {"timeout": _SECONDS_TO_CONNECT}
        return DaskTaskRunner(address=address, cluster_kwargs=None if address else local, client_kwargs=client)
    if request.runner is RunnerName.RAY:
        # Ray reads them when it is imported. By its defaults it has 30 s to start, and ends when it answers its own
        # health checks late: a busy machine needs longer for both.
        os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")
        os.environ.setdefault("RAY_health_check_failure_threshold", "100")
        from prefect_ray.task_runners import RayTaskRunner

        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL"}
        local = {"num_cpus": workers, "include_dashboard": False}
        # Without an address Ray would take a cluster that it finds on this machine.
        return RayTaskRunner(address=address or _NEW_CLUSTER, init_kwargs=quiet if address else quiet | local)
    return process_task_runner()


async def _end(runner: Any, seconds: float | None) -> None:
    """End a task runner, within `seconds` if given, and kill what is left of its Ray cluster, whose end can hang."""
    folder = None
    if type(runner).__name__ == "RayTaskRunner" and runner.address == _NEW_CLUSTER:
        folder = Path(runner._ray_context.address_info["session_dir"])  # noqa: SLF001 - nothing else says it
    ending = asyncio.ensure_future(in_daemon_thread(partial(runner.__exit__, None, None, None)))
    await asyncio.wait([ending], timeout=seconds)
    if folder is not None:
        await asyncio.to_thread(_remove_ray_session, folder)


def _remove_ray_session(folder: Path) -> None:
    """Kill the rest of a Ray cluster and remove its folder, again and again: its processes make it anew."""
    deadline = time.monotonic() + _SECONDS_TO_CLOSE
    while folder.exists() and time.monotonic() < deadline:
        is_alive = False
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                options = [one for one in file.read_bytes().split(b"\0") if one.startswith(b"--")]
                # A program that reads the cluster's files has its name elsewhere than in an option.
                if any(folder.name.encode() in one for one in options):
                    is_alive = True
                    os.kill(int(file.parent.name), signal.SIGKILL)
        if not is_alive:
            remove_tree(folder)
        time.sleep(_POLL_SECONDS)
