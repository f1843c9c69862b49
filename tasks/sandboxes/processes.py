"""Run one command with a time limit and bounded output; afterwards no process of it is left."""

import asyncio
import contextvars
import os
import signal
import threading
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.quotes import CUT
from passgate.tasks.model.sandbox import ProcessResult

KEPT_BYTES = 1024 * 1024  # How much of each output stream is kept: half of it from the beginning, half from the end
_HALF = KEPT_BYTES // 2
MAX_OUTPUT_BYTES = 64 * 1024 * 1024  # A command that prints more than this is ended
# Of waiting for the pipes to close: a process that inherited them and cannot be killed may hold them open.
_DRAIN_SECONDS = 5
_MARK = "PASSGATE_PROCESS"

_Result = TypeVar("_Result")


async def run_process(
    command: Sequence[str],
    *,
    working_folder: Path,
    environment: Mapping[str, str],
    mark: str | None,
    seconds: float,
    stdin: bytes = b"",
    options: Sequence[str] = (),
    pipes: tuple[int, int] | None = None,
) -> ProcessResult:
    """Run a command to its end, its time limit or its output limit, whichever comes first. `mark` is a unique text:
    every process with it in its environment is killed at the end, even one that has left its session. Give none if the
    command's processes end with the first one; then some may go on for a few milliseconds. `options` are further words
    that the program reads with `--args`, unlike its arguments seen by nobody else. `pipes` are
    its standard input and output, if the caller has its own. Raise `MeasurementError` if the command cannot be
    started.
    """
    started = time.monotonic()
    variables = {**environment, _MARK: mark} if mark else dict(environment)
    starting = asyncio.ensure_future(
        _start(command, working_folder, variables, options, pipes or (PIPE if stdin else DEVNULL, PIPE))
    )
    try:
        process = await finish(starting)
    except asyncio.CancelledError:
        # The process may have been started all the same, and nobody else knows of it.
        if not starting.cancelled() and starting.exception() is None:
            await finish(asyncio.ensure_future(_end(starting.result(), mark, None)))
        raise
    streams = _Streams(process, stdin)
    reading = asyncio.ensure_future(streams.read_all())
    timed_out = False
    try:
        async with asyncio.timeout(seconds):
            await _wait_for_exit(process)
    except TimeoutError:
        timed_out = True
    finally:
        await finish(asyncio.ensure_future(_end(process, mark, reading)))
    stdout, stderr = (kept.text() for kept in streams.kept)
    return ProcessResult(
        exit_code=process.returncode if process.returncode is not None else -signal.SIGKILL,
        stdout=stdout,
        stderr=stderr,
        timed_out=timed_out,
        output_limit_hit=streams.limit_hit,
        wall_time_seconds=time.monotonic() - started,
    )


async def _start(
    command: Sequence[str],
    working_folder: Path,
    environment: dict[str, str],
    options: Sequence[str],
    pipes: tuple[int, int],
) -> asyncio.subprocess.Process:
    start = partial(asyncio.create_subprocess_exec, cwd=working_folder, env=environment, start_new_session=True)
    start = partial(start, stdin=pipes[0], stdout=pipes[1], stderr=PIPE)
    try:
        if not options:
            return await start(*command)
        with os.fdopen(os.memfd_create("options"), "w+b", buffering=0) as file:
            file.write(b"".join(os.fsencode(option) + b"\0" for option in options))
            file.seek(0)
            descriptor = file.fileno()
            return await start(command[0], "--args", str(descriptor), *command[1:], pass_fds=(descriptor,))
    except (OSError, ValueError) as error:
        raise MeasurementError(f"cannot start {command[0]}: {error}") from error


async def finish(task: "asyncio.Future[_Result]") -> _Result:
    """Return the result of a task that must run to its end, however often the caller is cancelled."""
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


async def in_daemon_thread(
    work: Callable[[], _Result], context: contextvars.Context | None = None, *, keeps_thread: bool = False
) -> _Result:
    """Call a function that can block for ever, in a thread that does not delay the end of the process.

    Inside of an asynchronous flow run, functions of Prefect that wait look for the event loop that calls them: without
    the context of the flow run they do not.
    """
    ended: futures.Future[_Result] = futures.Future()

    def run() -> None:
        # Processes that begin here do not receive ^C of the terminal: the coordinator ends them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            result = (context or contextvars.Context()).run(work)
        except BaseException as error:  # noqa: BLE001 - the future is the only way out of the thread
            # While Ray ends, it raises SystemExit in a thread that waits for a result. asyncio would end its loop.
            failure = error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
            with suppress(futures.InvalidStateError):
                ended.set_exception(failure)
        else:
            with suppress(futures.InvalidStateError):
                ended.set_result(result)
        if keeps_thread:
            threading.Event().wait()

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(ended)


class _Kept:
    """The beginning and the end of what comes. What lies between is counted: agents say their answer at the end."""

    def __init__(self) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._seen = 0

    def add(self, chunk: bytes) -> None:
        self._seen += len(chunk)
        room = _HALF - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > KEPT_BYTES:
            del self._tail[:-_HALF]

    def text(self) -> str:
        if self._seen <= KEPT_BYTES:
            return (self._head + self._tail).decode("utf-8", "replace")
        head, tail = self._head.decode("utf-8", "ignore"), self._tail[-_HALF:].decode("utf-8", "ignore")
        left_out = self._seen - len(head.encode()) - len(tail.encode())
        return f"{head}{CUT}\n(passgate left out {left_out} bytes here)\n{CUT}{tail}"


class _Streams:
    """Feeds a process and keeps the beginning and the end of what it prints."""

    def __init__(self, process: asyncio.subprocess.Process, stdin: bytes) -> None:
        self._process = process
        self._stdin = stdin
        self.kept = (_Kept(), _Kept())  # Of standard output, of standard error
        self._seen = 0
        self.limit_hit = False

    async def read_all(self) -> None:
        """Wait until both streams are closed or the output limit is hit."""
        # All at once: a process that waits for one pipe to be emptied does not read from another.
        await asyncio.gather(self._feed(), self._read(self._process.stdout, 0), self._read(self._process.stderr, 1))

    async def _feed(self) -> None:
        if self._process.stdin is None:
            return
        try:
            self._process.stdin.write(self._stdin)
            await self._process.stdin.drain()
            self._process.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            return  # it ended without reading all of it, which is its right

    async def _read(self, stream: asyncio.StreamReader | None, index: int) -> None:
        while stream is not None and (chunk := await stream.read(256 * 1024)):
            self.kept[index].add(chunk)
            self._seen += len(chunk)
            if self._seen > MAX_OUTPUT_BYTES:
                self.limit_hit = True
                _kill_group(self._process.pid)
                return


async def _wait_for_exit(process: asyncio.subprocess.Process) -> None:
    """Wait for the process itself. `Process.wait` would also wait for processes that inherited its pipes."""
    pause = 0.001  # most commands of graders are short: looked for often at first, then every 20 ms
    while process.returncode is None:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.02)


async def _end(process: asyncio.subprocess.Process, mark: str | None, reading: "asyncio.Future[None] | None") -> None:
    """Kill the session of the process and whatever else carries the mark, then take in what was printed."""
    _kill_group(process.pid)
    if mark:
        await asyncio.to_thread(_kill_marked, mark)
    await _wait_for_exit(process)
    if reading is not None:
        await asyncio.wait([reading], timeout=_DRAIN_SECONDS)
        reading.cancel()
    # asyncio closes it only when all pipes are, and a process that inherited one may hold it open.
    transport: asyncio.SubprocessTransport | None = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


def _kill_group(process_id: int) -> None:
    """Kill the processes of a session and the children of its leader. Those of bubblewrap have a session of their own,
    and in their first moments they do not hear of its end.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process_id, signal.SIGSTOP)  # From here on there are no new children
        with suppress(OSError):
            for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        os.killpg(process_id, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """Kill every process whose environment carries the mark, until none is found (Linux only)."""
    needle = f"{_MARK}={mark}".encode()
    # Between a look and its kills a process may have forked: the next look finds its children.
    for _ in range(20):
        found = False
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - hot, and only names
            with suppress(OSError):  # Processes end meanwhile, and those of others cannot be read
                if needle in Path(f"/proc/{name}/environ").read_bytes():
                    found = True
                    os.kill(int(name), signal.SIGKILL)
        if not found:
            return
        time.sleep(0.01)
