"""What the terminal is like, and the one way to it."""

import io
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
from passgate.tasks.reports.messages import warn

_NARROWEST, _WIDEST = 60, 140


class Output(io.FileIO):
    """A standard stream that takes everything. After the first error the rest is dropped, and the error is kept."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, data: "ReadableBuffer") -> int:
        """Write, or drop, some of the bytes; gives how many."""
        if self.failure is None:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes


def take_standard_streams() -> Output | None:
    """Make the standard streams of this process ones that can be read and written, whatever they are connected with;
    a closed one becomes /dev/null. Gives standard output; `None` where Python code has put another in its place.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(_null(), encoding="utf-8")
    output = _taken(sys.stdout, sys.__stdout__)
    if output is not None:
        sys.stdout = _text(output, sys.stdout)
    messages = _taken(sys.stderr, sys.__stderr__)
    if messages is not None:
        sys.stderr = _text(messages, sys.stderr)
    return output


def _taken(stream: TextIO | None, original: TextIO | None) -> Output | None:
    if stream is None:
        return Output(_null())
    return Output(stream.fileno()) if stream is original else None


def _null() -> int:
    """A descriptor of /dev/null. It gets the lowest free number: that of the closed stream, when asked for in order."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    # Else a child that inherits the standard streams begins without this one.
    os.set_inheritable(descriptor, True)
    return descriptor


def _text(output: Output, before: TextIO | None) -> io.TextIOWrapper:
    """Text for a stream, encoded as before."""
    if not isinstance(before, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8", errors="replace")
    return io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )


def width() -> int:
    """Columns to print in."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((100, 24)).columns))


def color() -> bool:
    """Whether standard output takes colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def say(text: str) -> None:
    """Print to standard output, whatever it can encode."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


class _Warnings(logging.Handler):
    """Prints what rooms below warn of, each thing once: a run reads its history more than once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._told:
            self._told.add(message)
            warn(message)


@contextmanager
def warnings_printed() -> Iterator[None]:
    """While the context lasts, what passgate logs as a warning goes to standard error."""
    log, handler = logging.getLogger("passgate"), _Warnings()
    propagated = log.propagate
    log.addHandler(handler)
    log.propagate = False  # else a handler of Prefect's or of an agent's module prints it again
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagated
