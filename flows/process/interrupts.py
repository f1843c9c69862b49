"""What ends a command early: ^C, which asyncio knows, and a SIGTERM, which it does not; and when both come too late."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from passgate.tasks.errors import ExitCode, PassgateError

T = TypeVar("T")

_around: ContextVar[Callable[[], None] | None] = ContextVar("_around", default=None)
"""What a SIGTERM does in the context around: a loop remembers one handler of a signal, the newest."""


class InterruptionError(PassgateError):
    """^C or a SIGTERM has ended a command that can be carried on; the text says how."""

    exit_code = ExitCode.INTERRUPTED


@contextmanager
def cancelled_by_sigterm() -> Iterator[None]:
    """While the context lasts, the first SIGTERM cancels the current asyncio task; clean-up is not to be cancelled.

    A signal handler that raises does so wherever the main thread happens to be. In the midst of starting a process it
    loses the notice of its end, and the cleanup waits for that forever. Prefect's handler raises; this one takes its
    place. Outside the main thread, where nobody can hear signals, this does nothing. Contexts may be nested: after the
    end of one, a SIGTERM cancels the task of the one around it.
    """
    loop, current = asyncio.get_running_loop(), asyncio.current_task()
    before = signal.getsignal(signal.SIGTERM)
    if current is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    called_off, around = False, _around.get()

    def call_off() -> None:
        nonlocal called_off
        if not called_off:
            called_off = current.cancel()

    loop.add_signal_handler(signal.SIGTERM, call_off)
    token = _around.set(call_off)
    try:
        yield
    finally:
        _around.reset(token)
        if around is not None:
            loop.add_signal_handler(signal.SIGTERM, around)
        signal.signal(signal.SIGTERM, before)


def until_ended(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work. Raises `KeyboardInterrupt` when ^C or a SIGTERM ends it."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(_ended_by_sigterm_too(work))
    except Exception:
        raise
    except BaseException as error:
        raise KeyboardInterrupt from error
    finally:
        # The loop leaves its own default behind when it closes.
        signal.signal(signal.SIGTERM, before)


async def _ended_by_sigterm_too(work: Coroutine[Any, Any, T]) -> T:
    with cancelled_by_sigterm():
        return await work


def ignore_interrupts() -> None:
    """From now on until the process has ended ^C and SIGTERM change nothing: what it answers is decided.

    At its end Prefect waits for its server and for threads, and a signal there would end in a traceback. Outside the
    main thread, where nobody can hear signals, this does nothing.
    """
    if threading.current_thread() is threading.main_thread():
        for kind in (signal.SIGINT, signal.SIGTERM):
            signal.signal(kind, signal.SIG_IGN)
