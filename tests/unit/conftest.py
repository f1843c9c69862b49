"""What the tests of several rooms need."""

import asyncio
import os
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from passgate.tasks.model.task import EvalTask
from passgate.tasks.sandboxes.isolation import best_isolation
from passgate.tasks.sandboxes.trial_sandbox import TrialSandbox
from passgate.tasks.sandboxes.workbench import Workbench
from tests.builders import a_task
from tests.processes import marked_processes
from tests.waiting import until

NO_BUBBLEWRAP = "bubblewrap does not work on this machine"
LONG = 3600.0
"""Seconds. A limit that is reached when a test puts the clock forward, and never else."""

Result = TypeVar("Result")
OpenSandbox = Callable[..., AbstractAsyncContextManager[TrialSandbox]]


class LoopClock:
    """The clock of a running event loop, which a test can put forward: what is due by then is due at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ahead = 0.0
        real = loop.time
        loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    def forward(self, seconds: float = LONG) -> None:
        self._ahead += seconds

    async def run_out(self, waiting: Awaitable[Result], ready: Callable[[], object], seconds: float = LONG) -> Result:
        """What comes of something whose limit, of so many seconds, is over as soon as it is ready."""
        running = asyncio.ensure_future(waiting)
        await until(lambda: ready() or running.done())
        while not running.done():
            # More than once: on a busy machine something may be ready before its limit is set.
            self.forward(seconds)
            await asyncio.wait([running], timeout=10)
        return await running


async def call_off(waiting: Awaitable[object], when: Callable[[], object]) -> None:
    """Begin something, call it off as soon as something holds, and wait for its end."""
    running = asyncio.ensure_future(waiting)
    await until(when)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.fixture
async def clock() -> LoopClock:
    return LoopClock(asyncio.get_running_loop())


class Marked:
    """The processes that have a word on their command line."""

    def __init__(self) -> None:
        self.word = f"passgate-test-{secrets.token_hex(8)}"

    @property
    def running(self) -> list[int]:
        return marked_processes(self.word)

    async def are_gone(self) -> None:
        await until(lambda: not self.running)


@pytest.fixture
def marked() -> Marked:
    return Marked()


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    return folder


@pytest.fixture
def workbench_of(suites: Path) -> Callable[..., Workbench]:
    def _workbench(**changes: object) -> Workbench:
        return Workbench(suites, **{"processes": 4, **changes})

    return _workbench


@pytest.fixture
def sandbox_of(workbench_of: Callable[..., Workbench]) -> OpenSandbox:
    """The sandbox of one trial, on a workbench of its own that has these options."""

    @asynccontextmanager
    async def _sandbox(task: EvalTask | None = None, **options: object) -> AsyncIterator[TrialSandbox]:
        async with workbench_of(**options) as workbench, workbench.sandbox(task or a_task()) as sandbox:
            yield sandbox

    return _sandbox


@pytest.fixture(scope="session")
def bubblewrap_works(tmp_path_factory: pytest.TempPathFactory) -> bool:
    return bool(best_isolation([], run_folder=tmp_path_factory.mktemp("probe").resolve()).bubblewrap)


@pytest.fixture
def needs_bubblewrap(bubblewrap_works: bool) -> None:
    if not bubblewrap_works:
        pytest.skip(NO_BUBBLEWRAP)


@pytest.fixture
def without_bubblewrap(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which bubblewrap is there and does not work, as in many containers."""
    folder: Path = tmp_path_factory.mktemp("bin")
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
