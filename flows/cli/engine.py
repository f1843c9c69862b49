"""The engine of `passgate run`: Prefect on a server, embedded Prefect, or none. If Prefect fails, the run continues."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from passgate.flows.cli.options import EngineName
from passgate.flows.evaluate import evaluate
from passgate.tasks.errors import EngineError, PassgateError, UsageError
from passgate.tasks.execution.engine import Engine
from passgate.tasks.files.environment import SET_FOR_PREFECT
from passgate.tasks.files.proxies import via_proxy
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.run import Plan, RunRequest
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.messages import warn, write_line

if TYPE_CHECKING:
    from passgate.flows.embedded.server import EmbeddedServer

_SECONDS_TO_END = 15.0  # The most seconds that Prefect may take to end the flow run after it has been told the verdict
_SECONDS_OF_SILENCE = 2.0
_SECONDS_TO_DRAIN = 20.0
_POLL_SECONDS = 0.2
_LEAST_SPACE = 1_000_000  # Bytes: with less of them SQLite fails
_API_URL = "PREFECT_API_URL"
_CERTIFICATES = "PREFECT_API_SSL_CERT_FILE"

_START_TIMEOUT = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
_SETTINGS = {
    # If Prefect takes longer to start, the run continues without it.
    _START_TIMEOUT: "20",
    # With a batch size of 1, the embedded server loses most task runs of a flow that ends quickly.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    # Prefect's own limits are minutes, and they apply to each request anew.
    "PREFECT_API_REQUEST_TIMEOUT": "10",
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    # Prefect stores the logs. On the terminal, the verdict contains the same information.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
}


async def run_gate(store: RunStore, plan: Plan, request: RunRequest, engine: EngineName) -> None:
    """Run a planned gate until its verdict is in the run's folder, in a flow run of Prefect or without Prefect.

    Raise every error that prevents a verdict. Print a warning if Prefect fails, and continue.
    """
    if engine is EngineName.PREFECT:
        try:
            async with _prefect(plan):
                from passgate.flows.states import WITHOUT_VERDICT

                state = await _run_flow(plan.gate, request, store)
            if not store.has_verdict() and state.name in WITHOUT_VERDICT:
                raise await state.aresult(raise_on_failure=False)
            if not store.has_verdict():
                raise EngineError(f"Prefect{_at_server()} has ended the flow run as {state.name}")
        except EngineError as error:
            limit, has_verdict = plan.agent.concurrency_limit, store.has_verdict()
            if limit is not None and not has_verdict:
                remedy = f"resume the run with `passgate run {plan.gate} --resume {plan.run_id}`"
                raise EngineError(f"{error}; the concurrency limit {limit} needs Prefect; {remedy}") from error
            warn(f"{error}; {'the verdict stands' if has_verdict else 'the run continues without Prefect'}")
    if not store.has_verdict():
        await evaluate(plan.gate, request, Engine(), plan)


async def _run_flow(gate: GateName, request: RunRequest, store: RunStore) -> Any:
    """Return the final state of a gate's flow. Limit the time to begin, and the time to end after the verdict."""
    from passgate.flows.flow_runs import seconds_to_report

    has_begun = False

    def begin(*_: object) -> None:
        nonlocal has_begun
        has_begun = True

    # Imported here: each flow imports Prefect, which has to have its settings by then.
    flow = getattr(import_module(f"passgate.flows.{gate}"), gate).with_options(on_running=[begin])
    running = asyncio.create_task(flow(**request.model_dump(exclude_defaults=True), return_state=True))
    deadline = time.monotonic() + _seconds_to_start()
    try:
        while not running.done() and not store.verdict.exists():
            if not has_begun and time.monotonic() > deadline:
                raise EngineError(f"Prefect{_at_server()} did not start the flow run within {_seconds_to_start():g} s")
            await asyncio.wait([running], timeout=_POLL_SECONDS)
        await asyncio.wait([running], timeout=_SECONDS_TO_END)
        if not running.done():
            write_line(f"waiting for Prefect{_at_server()} to take the verdict")
            await asyncio.wait([running], timeout=seconds_to_report())
        if not running.done():
            seconds = _SECONDS_TO_END + seconds_to_report()
            raise EngineError(f"Prefect{_at_server()} did not accept the verdict within {seconds:g} s")
        return running.result()
    except (PassgateError, asyncio.CancelledError):
        raise
    except Exception as error:
        # The flow's own errors are in its state, so Prefect raised this one.
        raise EngineError(f"Prefect{_at_server()} failed: {type(error).__name__}: {error}") from error
    finally:
        running.cancel()
        await asyncio.wait([running], timeout=1)


@asynccontextmanager
async def _prefect(plan: Plan) -> AsyncIterator[None]:
    """Import Prefect and provide an API. Raise `EngineError`, and `UsageError` for a limit without a server."""
    from passgate.flows.embedded import NO_TLS

    missing = {name: value for name, value in _SETTINGS.items() if name not in os.environ}
    # Agents do not get what is set here; another process of the run has to know it too.
    missing[SET_FOR_PREFECT] = ",".join((*missing, os.environ.get(SET_FOR_PREFECT, "")))
    os.environ.update(missing)
    # Workers elsewhere get the settings of Prefect, and do not have the file.
    embedded = await _connect_to_api({} if plan.request.runner_address else {_CERTIFICATES: str(NO_TLS)})
    if embedded is None:
        yield
        return
    try:
        if plan.agent.concurrency_limit is not None:
            raise UsageError(
                f"the agent {plan.agent} names the concurrency limit {plan.agent.concurrency_limit!r}, which runs "
                "share on a Prefect server: set PREFECT_API_URL, or take `concurrency_limit` out of agents.yaml"
            )
        yield
    except BaseException:
        # The run may continue without Prefect: nobody waits for what the server still holds.
        embedded.end()
        raise
    from prefect.events.worker import EventsWorker

    await EventsWorker.drain_all(timeout=_SECONDS_TO_DRAIN)  # type: ignore[misc]
    await asyncio.to_thread(embedded.stop)


async def _connect_to_api(settings: Mapping[str, str]) -> "EmbeddedServer | None":
    """Import Prefect, and start its API if no server is set, in a thread: both take seconds and can hang."""
    connecting: Future[EmbeddedServer | None] = Future()
    Thread(target=_connect, args=(connecting, settings), name="prefect-start", daemon=True).start()
    waiting = asyncio.wrap_future(connecting)
    try:
        await asyncio.wait([waiting], timeout=_SECONDS_OF_SILENCE)
        if not waiting.done():
            write_line("starting Prefect")
            await asyncio.wait([waiting], timeout=_seconds_to_start() - _SECONDS_OF_SILENCE)
    finally:
        is_late = connecting.cancel()
    if is_late:
        raise EngineError(f"Prefect did not start within {_seconds_to_start():g} s")
    try:
        return await waiting
    except Exception as error:
        raise EngineError(f"Prefect{_at_server()} cannot start: {error}") from error


def _connect(connecting: "Future[EmbeddedServer | None]", settings: Mapping[str, str]) -> None:
    try:
        from prefect.context import refresh_global_settings_context
        from prefect.settings import PREFECT_API_URL

        server = None
        if not PREFECT_API_URL.value():
            from passgate.flows.embedded.server import EmbeddedServer

            server = EmbeddedServer()
            url = server.start().result()
            # Nobody waits any more: agents may be starting, and would get the variables.
            if not connecting.set_running_or_notify_cancel():
                return server.end()
            # For this process only: agents that use Prefect must not reach this server.
            before = {name: os.environ[name] for name in (*settings, _API_URL) if name in os.environ}
            os.environ.update({**settings, _API_URL: url})
            try:
                refresh_global_settings_context()
            finally:
                for name in (*settings, _API_URL):
                    del os.environ[name]
                os.environ.update(before)
        connecting.set_result(server)
    except BaseException as error:  # noqa: BLE001 - the future is the only way out of the thread
        if not connecting.cancelled():
            connecting.set_exception(error)


def _seconds_to_start() -> float:
    try:
        return max(_SECONDS_OF_SILENCE, float(os.environ[_START_TIMEOUT]))
    except ValueError as error:
        raise UsageError(f"{_START_TIMEOUT} is not a number: {os.environ[_START_TIMEOUT]}") from error


def _at_server() -> str:
    """Return where Prefect is, for messages: the address that the user has set, or a home without space."""
    url = os.environ.get(_API_URL)
    if url:
        return f" at {url} ({_API_URL}){via_proxy(url)}"
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    with suppress(OSError):
        if shutil.disk_usage(home).free < _LEAST_SPACE:
            return f", whose home {home} has no space left,"
    return ""
