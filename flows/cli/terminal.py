"""Standard output and standard error: width, colours, printing."""

import io
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
from passgate.tasks.errors import UsageError
from passgate.tasks.reports.messages import warn

_NARROWEST, _WIDEST = 60, 140


class StandardStream(io.FileIO):
    """A standard stream that raises nothing but an interrupt. It keeps the first error and drops everything after it,
    and after an interrupt too.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failure: OSError | None = None
        self._interrupted = False

    def write(self, data: "ReadableBuffer") -> int:
        """Write or drop some of the bytes and return how many."""
        if self.failure is None and not self._interrupted:
            try:
                return super().write(data)
            except OSError as error:
                self.failure = error
            except KeyboardInterrupt:
                # Nobody knows how much is written. Another flush would write it twice.
                self._interrupted = True
                raise
        return memoryview(data).nbytes


def take_standard_streams() -> StandardStream | None:
    """Replace the standard streams by streams that never raise. Replace a closed stream by /dev/null.

    Return standard output, or `None` if Python code has replaced it already.
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


def _taken(stream: TextIO | None, original: TextIO | None) -> StandardStream | None:
    if stream is None:
        return StandardStream(_null())
    return StandardStream(stream.fileno()) if stream is original else None


def _null() -> int:
    """Open /dev/null. The descriptor gets the lowest free number, which is the number of the first closed stream."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    # Otherwise a child process does not inherit this stream.
    os.set_inheritable(descriptor, True)
    return descriptor


def _text(output: StandardStream, before: TextIO | None) -> io.TextIOWrapper:
    if not isinstance(before, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8", errors="replace")
    # With PYTHONUNBUFFERED Python's own stream has no buffer below it that could hold a message back.
    lines = before.line_buffering or before.write_through
    writer = io.BufferedWriter(output)
    return io.TextIOWrapper(writer, encoding=before.encoding, errors=before.errors, line_buffering=lines)


def width() -> int:
    """Return the number of columns to print in."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))


def is_screen() -> bool:
    """Whether somebody looks at standard output on a screen, which long results have to fit."""
    return sys.stdout.isatty()


def color() -> bool:
    """Whether to print colours on standard output."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def open_in_browser(url: str) -> None:
    """Open a page in the user's browser. Print a line if there is none."""
    import typer

    if typer.launch(url) != 0:
        warn("no browser could be started: open the page yourself")


def say(text: str) -> None:
    """Print to standard output. Replace the characters that it cannot encode."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def write_plot(file: Path, svg: str) -> None:
    """Write a picture. Raise `UsageError`."""
    try:
        file.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from error


class _Warnings(logging.Handler):
    """Prints each warning of the lower layers once, because a run reads its history more than once."""

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
    """Print the warnings that passgate logs on standard error while the `with` block runs."""
    log, handler = logging.getLogger("passgate"), _Warnings()
    propagated = log.propagate
    log.addHandler(handler)
    log.propagate = False  # otherwise a handler of Prefect or of an agent's module prints the warning again
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagated
