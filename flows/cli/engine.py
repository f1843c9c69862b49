"""The engine of `passgate run`: Prefect, on a server or embedded, or none. When Prefect fails the run goes on."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from passgate.flows.cli.engine_name import EngineName
from passgate.flows.evaluate import evaluate
from passgate.tasks.errors import EngineError, PassgateError, UsageError
from passgate.tasks.execution.engine import NoEngine
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.messages import warn

if TYPE_CHECKING:
    from passgate.flows.embedded.server import EmbeddedServer


SECONDS_TO_END = 20.0
"""So long Prefect may take, once there is a verdict, to take it in."""
_SECONDS_OF_SILENCE = 2.0
_SECONDS_TO_DRAIN = 5.0
_POLL_SECONDS = 0.2
_API_URL = "PREFECT_API_URL"

_START_TIMEOUT = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
_SETTINGS = {
    # An engine that takes longer to start is done without.
    _START_TIMEOUT: "20",
    # One by one, the embedded server loses most task runs of a flow that ends quickly.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    # Prefect's own limits are minutes, and each request has them anew.
    "PREFECT_API_REQUEST_TIMEOUT": "10",
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # Logs go to Prefect; on the terminal the verdict says what they would.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
}


async def run_gate(folder: RunFolder, gate: GateName, request: RunRequest, engine: EngineName) -> None:
    """Carry a run from its plan to its verdict in its folder, in a flow run of Prefect or without.

    Raises what keeps the gate from a verdict. Trouble with Prefect is told, and does not.
    """
    if engine is EngineName.PREFECT:
        try:
            await _run_in_flow(gate, request, folder)
        except EngineError as error:
            warn(f"{error}; {'the verdict stands' if folder.verdict.exists() else 'the run goes on without it'}")
        else:
            return
    if not folder.verdict.exists():
        await evaluate(gate, request, NoEngine())


async def _run_in_flow(gate: GateName, request: RunRequest, folder: RunFolder) -> None:
    """Run a gate's flow. Raises what the gate has raised, and `EngineError` where Prefect has not done its part."""
    async with _prefect():
        from passgate.flows.prefect_engine import WITHOUT_VERDICT

        state = await _ended(gate, request, folder)
    if folder.verdict.exists():
        return
    if state.name not in WITHOUT_VERDICT:
        raise EngineError(f"Prefect{_at_server()} has ended the flow run as {state.name}")
    raise await state.aresult(raise_on_failure=False)


async def _ended(gate: GateName, request: RunRequest, folder: RunFolder) -> Any:
    """The state that a gate's flow ends in. It has a while to begin, and a while to end once there is a verdict."""
    begun = asyncio.Event()

    def begin(*_: object) -> None:
        begun.set()

    flow = _flow(gate).with_options(on_running=[begin])
    running = asyncio.create_task(flow(request, return_state=True))
    try:
        await _first_of(running, begun.wait(), _seconds_to_start())
        if not running.done() and not begun.is_set():
            raise EngineError(f"Prefect{_at_server()} has not begun the flow run within {_seconds_to_start():g} s")
        await _first_of(running, _until_there(folder.verdict), None)
        await asyncio.wait([running], timeout=SECONDS_TO_END)
        if not running.done():
            raise EngineError(f"Prefect{_at_server()} has not taken the verdict in within {SECONDS_TO_END:g} s")
        return running.result()
    except (PassgateError, asyncio.CancelledError):
        raise
    except Exception as error:
        # What the flow itself raises is in its state, so this is Prefect's.
        raise EngineError(f"Prefect{_at_server()} broke down: {type(error).__name__}: {error}") from error
    finally:
        running.cancel()
        await asyncio.wait([running], timeout=1)


async def _first_of(running: "asyncio.Task[Any]", other: Coroutine[Any, Any, object], seconds: float | None) -> None:
    """Wait until one of them has ended, or for so many seconds."""
    waiting = asyncio.create_task(other)
    try:
        await asyncio.wait([running, waiting], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _until_there(file: Path) -> None:
    while not file.exists():  # noqa: ASYNC110, ASYNC240 - one look at a local file, which has no event
        await asyncio.sleep(_POLL_SECONDS)


@asynccontextmanager
async def _prefect() -> AsyncIterator[None]:
    """Prefect, imported and with an API that answers, for as long as the context lasts. Raises `EngineError`."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    embedded = await _connected()
    yield
    if embedded is not None:
        from prefect.events.worker import EventsWorker

        await EventsWorker.drain_all(timeout=_SECONDS_TO_DRAIN)  # type: ignore[misc]
        await asyncio.to_thread(embedded.stop)


async def _connected() -> "EmbeddedServer | None":
    """Import Prefect and start its API where no server is named, in a thread: both take seconds, and can hang."""
    connecting: Future[EmbeddedServer | None] = Future()
    Thread(target=_connect, args=(connecting,), name="prefect-start", daemon=True).start()
    waiting = asyncio.wrap_future(connecting)
    await asyncio.wait([waiting], timeout=_SECONDS_OF_SILENCE)
    if not waiting.done():
        sys.stderr.write("starting Prefect\n")
        sys.stderr.flush()
        await asyncio.wait([waiting], timeout=_seconds_to_start() - _SECONDS_OF_SILENCE)
    if not waiting.done():
        raise EngineError(f"Prefect has not started within {_seconds_to_start():g} s")
    try:
        return waiting.result()
    except Exception as error:
        raise EngineError(f"Prefect does not start: {error}") from error


def _connect(connecting: "Future[EmbeddedServer | None]") -> None:
    try:
        connecting.set_result(_embedded_unless_named())
    except BaseException as error:  # noqa: BLE001 - a thread has nobody else to tell
        connecting.set_exception(error)


def _embedded_unless_named() -> "EmbeddedServer | None":
    """Prefect's API in this process, unless its settings name a server."""
    from prefect.context import refresh_global_settings_context
    from prefect.settings import PREFECT_API_URL

    if PREFECT_API_URL.value():
        return None
    from passgate.flows.embedded.server import EmbeddedServer

    server = EmbeddedServer()
    # For this process alone: an agent that uses Prefect has nothing to do with this server.
    os.environ[_API_URL] = server.start().result()
    try:
        refresh_global_settings_context()
    finally:
        del os.environ[_API_URL]
    return server


def _seconds_to_start() -> float:
    try:
        return max(_SECONDS_OF_SILENCE, float(os.environ[_START_TIMEOUT]))
    except ValueError as error:
        raise UsageError(f"{_START_TIMEOUT} is no number: {os.environ[_START_TIMEOUT]}") from error


def _at_server() -> str:
    """Where Prefect is, for users who have named a server."""
    url = os.environ.get(_API_URL)
    return f" at {url} ({_API_URL})" if url else ""


def _flow(gate: GateName) -> Any:
    match gate:
        case GateName.CI_MERGE:
            from passgate.flows.ci_merge import ci_merge

            return ci_merge
        case GateName.NIGHTLY:
            from passgate.flows.nightly import nightly

            return nightly
        case GateName.RELEASE_CANDIDATE:
            from passgate.flows.release_candidate import release_candidate

            return release_candidate
