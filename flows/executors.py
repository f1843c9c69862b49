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
from concurrent.futures import BrokenExecutor, Future, InvalidStateError
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

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
from passgate.tasks.sandboxes.processes import finish

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner

T = TypeVar("T")

_NEW_CLUSTER: Final = "local"  # As an address of Ray
_PACKAGES: Final = {RunnerName.DASK: "prefect_dask", RunnerName.RAY: "prefect_ray"}
_SECONDS_TO_END = 3.0  # How long batches have to stop when the run does; they look every second
_SECONDS_TO_CLOSE = 3.0
_POLL_SECONDS: Final = 0.05
_SECONDS_TO_CONNECT = 15.0


def refuse_runner(request: RunRequest) -> None:
    """Raise `UsageError` for a task runner that this installation does not have, or that is not fully named."""
    runner = request.runner
    if runner is None:
        for option, value in (("--workers", request.workers), ("--runner-address", request.runner_address)):
            if value is not None:
                raise UsageError(f"{option} is for a task runner of Prefect: add --runner process, dask or ray")
    elif runner in _PACKAGES and find_spec(_PACKAGES[runner]) is None:
        raise UsageError(f"--runner {runner!s} is not installed: pip install 'passgate[{runner!s}]'")
    elif runner is RunnerName.PROCESS and request.runner_address is not None:
        raise UsageError("--runner process has no address: leave out --runner-address, or name --runner dask or ray")


def open_executor(
    engine: Engine, handed_out: Callable[[], None], plan: Plan, store: RunStore, run_state: RunState
) -> AbstractAsyncContextManager[Executor]:
    """Open the executor that the request of a plan asks for, inside of a flow run. To enter it raises `UsageError`.

    It calls `handed_out` for each task run of the flow run that is none of the engine's.
    """
    if plan.request.runner is None:
        return in_process(engine, plan, store, run_state, open_limit=shared_limit)
    return _on_task_runners(handed_out, plan, store, run_state)


@asynccontextmanager
async def _on_task_runners(
    handed_out: Callable[[], None], plan: Plan, store: RunStore, run_state: RunState
) -> AsyncIterator[Executor]:
    refuse_runner(plan.request)
    await refuse_missing_limit(plan)
    runners = _TaskRunners(plan.request, handed_out)
    try:
        await runners.open()
        async with remote_executor(runners.run, plan, store, run_state, runners.workers) as executor:
            yield executor
    finally:
        # A second cancellation must not keep the cluster from being ended.
        await finish(asyncio.ensure_future(runners.close()))


class _TaskRunners:
    """The task runners of Prefect on which batches run, one batch for each worker.

    A cluster is one task runner. Processes are one task runner each: a process that is lost breaks its task runner, and
    takes no batch of another process with it.
    """

    def __init__(self, request: RunRequest, handed_out: Callable[[], None]) -> None:
        self._request, self._handed_out = request, handed_out
        self._runners: list[_Runner] = []
        self._idle: asyncio.Queue[_Runner] = asyncio.Queue()
        self.workers = 0
        """How many batches run at once."""

    async def open(self) -> None:
        """Start the task runners, or connect to where they are. Raises `UsageError`."""
        if self._request.runner is RunnerName.PROCESS:
            self.workers = self._request.workers or _processors()
            self._runners = [_Runner(self._request) for _ in range(self.workers)]
        else:
            self._runners = [_Runner(self._request)]
        for runner in self._runners:
            await runner.open()
        if not self.workers:
            self.workers = self._request.workers or await self._runners[0].size()
        for number in range(self.workers):
            self._idle.put_nowait(self._runners[number % len(self._runners)])

    async def run(self, batch: RemoteBatch) -> BatchResult:
        """Have a batch run as a task run. Raises what it raises, and `WorkerLostError`."""
        runner = await self._idle.get()
        self._handed_out()
        try:
            return await runner.run(batch)
        finally:
            self._idle.put_nowait(runner)

    async def close(self) -> None:
        """End the task runners, and the worker processes that they have started.

        Batches that still run stop by themselves: those that are killed before leave their temporary folders behind.
        """
        await asyncio.gather(*(runner.close() for runner in self._runners))
        for child in multiprocessing.active_children():
            child.kill()


class _Runner:
    """A task runner of Prefect. If it breaks, it is opened anew."""

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self._runner: Any = None
        self._opening = asyncio.Lock()
        self._results: set[asyncio.Future[Any]] = set()

    async def open(self) -> None:
        self._runner = await _in_thread(partial(_started, self._request), then=_wait_for_ever)
        if threading.current_thread() is threading.main_thread():
            # Ray has put a handler before it that prints a stack of its own.
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))

    async def size(self) -> int:
        """Return the number of tasks that a cluster runs at once."""
        return int(await _in_thread(partial(_size_of, self._runner)))

    async def run(self, batch: RemoteBatch) -> BatchResult:
        from passgate.flows.batch_task import submit

        async with self._opening:  # A broken one takes no batches while it ends: they would be lost again at once.
            runner = self._runner
        if runner is None:
            raise WorkerLostError("the task runner is closed")
        try:
            future = await _in_thread(partial(submit, runner, batch), contextvars.copy_context())
            return BatchResult.model_validate_json(await self._result(future))
        except PassgateError:
            raise
        except BrokenExecutor as error:
            await self._open_again(runner)
            raise WorkerLostError(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            raise WorkerLostError(f"{type(error).__name__}: {error}") from error

    async def _result(self, future: Any) -> Any:
        """Return the result of a task run. If it is cancelled here, `close` waits for it."""
        result = asyncio.ensure_future(_in_thread(future.result))
        self._results.add(result)
        result.add_done_callback(self._forget)
        return await asyncio.shield(result)

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

    async def _open_again(self, broken: "TaskRunner[Any]") -> None:
        """Once for all batches that were on a task runner which has broken."""
        async with self._opening:
            if self._runner is broken:
                await _end(broken, None)
                await self.open()


def _started(request: RunRequest) -> Any:
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


async def _end(runner: Any, seconds: float | None) -> None:
    """End a task runner and the Ray cluster that it has started.

    Wait at most `seconds` for the task runner, or as long as it takes where they are `None`. Then kill and remove what
    is left of the cluster: Ray's own end can hang or fail.
    """
    session = _session_of(runner)
    ending = asyncio.ensure_future(_in_thread(partial(runner.__exit__, None, None, None)))
    await asyncio.wait([ending], timeout=seconds)
    if session is not None:
        await asyncio.to_thread(_remove_session, session)


def _session_of(runner: Any) -> Path | None:
    """Return the folder of the sockets and logs of a Ray cluster that a task runner started."""
    if type(runner).__name__ != "RayTaskRunner" or runner.address != _NEW_CLUSTER:
        return None
    return Path(runner._ray_context.address_info["session_dir"])  # noqa: SLF001 - no public attribute has it


def _remove_session(folder: Path) -> None:
    """Kill what is left of a Ray cluster and remove its folder, again until it stays away: a process that ends still
    writes into it, and one that begins makes it anew.
    """
    deadline = time.monotonic() + _SECONDS_TO_CLOSE
    while folder.exists() and time.monotonic() < deadline:
        left = _processes_with(folder.name)
        for process_id in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        if not left:
            remove_tree(folder)
        time.sleep(_POLL_SECONDS)


def _processes_with(value: str) -> list[int]:
    """Return the processes with this text in an option. A program that reads the cluster's files has it elsewhere."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            arguments = file.read_bytes().split(b"\0")
            if any(one.startswith(b"--") and value.encode() in one for one in arguments):
                found.append(int(file.parent.name))
    return found


def _task_runner(request: RunRequest) -> Any:
    address, workers = request.runner_address, request.workers or _processors()
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
    from passgate.flows.batch_task import process_task_runner

    return process_task_runner()


def _size_of(runner: Any) -> Any:
    """Return the number of tasks that a cluster runs at once."""
    if hasattr(runner, "client"):
        return max(1, sum(runner.client.ncores().values()))
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _wait_for_ever() -> None:
    """Keep a thread: Ray has the kernel kill the processes of a cluster when the thread that started them ends."""
    threading.Event().wait()


async def _in_thread(
    work: Callable[[], T], context: contextvars.Context | None = None, then: Callable[[], None] = lambda: None
) -> T:
    """Call a function that can block for ever. Its thread then calls `then`; at the end of the process nobody
    waits for it.

    Inside of an asynchronous flow run, functions of Prefect that wait look for the event loop that calls them: without
    the context of the flow run they do not.
    """
    ended: Future[T] = Future()

    def run() -> None:
        # Processes that begin here do not hear ^C of the terminal: the coordinator ends them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            result = (context or contextvars.Context()).run(work)
        except BaseException as error:  # noqa: BLE001 - the future is the only way out of the thread
            # While Ray ends, it raises SystemExit in a thread that waits for a result. asyncio would end its loop.
            failure = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
            with suppress(InvalidStateError):
                ended.set_exception(failure)
        else:
            with suppress(InvalidStateError):
                ended.set_result(result)
        then()

    threading.Thread(target=run, name="passgate-batch", daemon=True).start()
    return await asyncio.wrap_future(ended)
