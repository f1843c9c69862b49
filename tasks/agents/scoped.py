"""What differs from trial to trial in a process that many Python agents share: variables and where print goes.

What runs in a `Scope` sees the variables of its trial in `os.environ`, passes them on to the processes that it starts,
and prints into its trial's own record. A scope is a context variable: tasks and `asyncio.to_thread` inherit it, a
`threading.Thread` does not. Whatever is in no scope sees the process as it is.

The process is prepared for this once and for good: a thread that ran out of time cannot be ended and may print later.
"""

import functools
import inspect
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Final, ParamSpec, TextIO, TypeVar

PRINTED_BYTES: Final = 64 * 1024
"""How much of what an agent prints is kept: its end."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Scope:
    """One turn of a trial: its variables, and what is printed in it."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables: dict[str, str | None] = {**variables}
        """What is set here is not the process's; `None` where the agent has deleted it."""
        self._tail = _Tail()
        self.stream = io.TextIOWrapper(self._tail, encoding="utf-8", errors="backslashreplace", write_through=True)

    @property
    def printed(self) -> str:
        return self._tail.text

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be in this scope, in this task or thread and what it starts."""
        prepare_process()
        token = _scope.set(self)
        try:
            yield
        finally:
            _scope.reset(token)


_scope: ContextVar[Scope | None] = ContextVar("passgate_scope", default=None)


def prepare_process() -> None:
    """Make `os.environ`, the standard streams and `subprocess` heed scopes, wherever they do not yet."""
    if not isinstance(os.environ, _Environment):
        # The object itself, for many modules hold it by a name of their own.
        os.environ.__class__ = _Environment
    if not hasattr(subprocess.Popen.__init__, _HEEDS):
        subprocess.Popen.__init__ = _with_variables(subprocess.Popen.__init__)  # type: ignore[method-assign]
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Switch):
            setattr(sys, name, _Switch(stream))


class ScopedThreads(ThreadPoolExecutor):
    """Threads that are in the scope of whoever gives them something to do."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> "Future[_T]":
        return super().submit(copy_context().run, functools.partial(fn, *args, **kwargs))


class _Environment(os._Environ[str]):  # noqa: SLF001 - the only way to all who hold os.environ
    """The environment of the process, with the variables of the scope over it."""

    def __getitem__(self, key: str) -> str:
        own = _own()
        if key not in own:
            return super().__getitem__(key)
        value = own[key]
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: str) -> None:
        own = _own()
        if key not in own:
            super().__setitem__(key, value)
        else:
            self.encodevalue(value)  # refuses what is no text
            own[key] = value

    def __delitem__(self, key: str) -> None:
        own = _own()
        if key not in own:
            super().__delitem__(key)
        elif own[key] is None:
            raise KeyError(key)
        else:
            own[key] = None

    def __iter__(self) -> Iterator[str]:
        own = _own()
        yield from (key for key in super().__iter__() if key not in own)
        yield from [key for key, value in own.items() if value is not None]

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _own() -> dict[str, str | None]:
    scope = _scope.get()
    return {} if scope is None else scope.variables


_HEEDS: Final = "__heeds_scopes__"


def _with_variables(start: Callable[..., None]) -> Callable[..., None]:
    """`Popen.__init__` with the scope's variables where the caller names none: else it takes those of the process."""
    signature = inspect.signature(start)

    @functools.wraps(start)
    def scoped(*args: Any, **kwargs: Any) -> None:
        if _scope.get() is None:
            return start(*args, **kwargs)
        call = signature.bind(*args, **kwargs)
        if call.arguments.get("env") is None:
            call.arguments["env"] = dict(os.environ)
        return start(*call.args, **call.kwargs)

    setattr(scoped, _HEEDS, True)
    return scoped


class _Switch:
    """A standard stream that is the scope's own for whatever is in one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._target().write(text)

    def flush(self) -> None:
        self._target().flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)

    def _target(self) -> TextIO:
        scope = _scope.get()
        return self._stream if scope is None else scope.stream


class _Tail(io.BufferedIOBase):
    """Keeps the end of what is written to it."""

    name: Final = "<printed>"

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with self._lock:
            self._kept += data
            if len(self._kept) > 2 * PRINTED_BYTES:
                self._cut = True
                del self._kept[:-PRINTED_BYTES]
        return len(data)

    @property
    def text(self) -> str:
        with self._lock:
            cut = self._cut or len(self._kept) > PRINTED_BYTES
            text = self._kept[-PRINTED_BYTES:].decode("utf-8", "replace")
        # Half a character may stand where it was cut.
        return text.lstrip("\ufffd") if cut else text
