"""Interrupt a command: asyncio handles ^C; this module adds SIGTERM, and ignores both once the answer is decided."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from passgate.tasks.errors import ExitCode, PassgateError

T = TypeVar("T")

_outer_handler: ContextVar[Callable[[], None] | None] = ContextVar("_outer_handler", default=None)
"""The SIGTERM handler of the surrounding context. An event loop has only one handler per signal."""


class InterruptionError(PassgateError):
    """^C or a SIGTERM interrupted a run; the message says how to resume it."""

    exit_code = ExitCode.INTERRUPTED


@contextmanager
def cancel_on_sigterm() -> Iterator[None]:
    """Let the first SIGTERM cancel the current asyncio task. Ignore further ones, so that the clean-up completes.

    A handler that raises, as Prefect's does, interrupts the main thread anywhere. While asyncio starts a process, that
    loses the notice of the process's end, and the clean-up waits for it for ever. So this handler replaces Prefect's.
    Outside the main thread, which cannot handle signals, do nothing. Contexts can be nested: after an inner one, a
    SIGTERM cancels the task of the outer one.
    """
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    before = signal.getsignal(signal.SIGTERM)
    if current is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    is_cancelled, outer = False, _outer_handler.get()

    def cancel() -> None:
        nonlocal is_cancelled
        if not is_cancelled:
            is_cancelled = current.cancel()

    loop.add_signal_handler(signal.SIGTERM, cancel)
    token = _outer_handler.set(cancel)
    try:
        yield
    finally:
        _outer_handler.reset(token)
        if outer is not None:
            loop.add_signal_handler(signal.SIGTERM, outer)
        signal.signal(signal.SIGTERM, before)


def run_until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work and return its result. Raise `KeyboardInterrupt` if ^C or a SIGTERM interrupts it."""

    async def run() -> T:
        with cancel_on_sigterm():
            return await work

    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(run())
    except Exception:
        raise
    except BaseException as error:
        raise KeyboardInterrupt from error
    finally:
        # When the loop closes, it leaves its own default handler.
        signal.signal(signal.SIGTERM, before)


def ignore_interrupts() -> None:
    """Ignore ^C and SIGTERM until the process ends, because its answer is decided.

    At the end Prefect waits for its server and threads, where a signal would cause a traceback. Outside the main
    thread, which cannot handle signals, do nothing.
    """
    if threading.current_thread() is threading.main_thread():
        for kind in (signal.SIGINT, signal.SIGTERM):
            signal.signal(kind, signal.SIG_IGN)
