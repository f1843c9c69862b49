"""What a command prints or writes: its answer, its verdict, its warnings, on streams that never raise."""

import io
import json
import logging
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.atomic_write import READABLE, write_atomically
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import LONGEST_MESSAGE, warn

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from passgate.tasks.model.verdict import Verdict

_NARROWEST, _WIDEST = 60, 140


class VerdictCode(int):
    """The exit code of a verdict. It stays the same when passgate cannot print the verdict."""


class OutputForm(NamedTuple):
    """The form that the options --json and --quiet ask for."""

    as_json: bool = False
    quiet: bool = False


_TEXT: Final = OutputForm()
output_form: ContextVar[OutputForm] = ContextVar("output_form", default=_TEXT)  # The form of the output of this command

gates_file: ContextVar[str] = ContextVar("gates_file", default="gates.yaml")  # The gates file of this command


def answer(text: Callable[[], str], document: object) -> None:
    """Print the answer of a command: as one JSON document, as text, or with --quiet not at all."""
    form = output_form.get()
    if form.as_json:
        say(_json_text(document))
    elif not form.quiet:
        say(text())


def say_verdict(verdict: "Verdict", text: Callable[[], str]) -> VerdictCode:
    """Print a verdict: as text, as the document that verdict.json is, or in a line. Return its exit code."""
    form = output_form.get()
    if form.as_json:
        say(_json_text(verdict.model_dump(mode="json")))
    else:
        say(printable(verdict.headline, LONGEST_MESSAGE) if form.quiet else text())
    return VerdictCode(verdict.exit_code)


def _json_text(document: object) -> str:
    """Return a value as JSON, with terminal control characters escaped. A text is JSON already."""
    from pydantic_core import to_jsonable_python

    return document if isinstance(document, str) else json.dumps(to_jsonable_python(document, fallback=str), indent=2)


def write_output(content: str, output: Path) -> None:
    """Write a file whole or not at all; a pipe, device or link is written into and not replaced. Raise `UsageError`."""
    data = content.encode("utf-8", "replace")
    try:
        if output.is_symlink() or (output.exists() and not output.is_file()):
            output.write_bytes(data)
        else:
            mode = stat.S_IMODE(output.stat().st_mode) if output.exists() else READABLE
            write_atomically(output, data, mode=mode)
    except StorageError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror or error}") from error


def say(text: str) -> None:
    """Print to standard output. Replace the characters that it cannot encode."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def width() -> int:
    """Return the number of columns to print in."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))


def is_screen() -> bool:
    """Return whether standard output is a terminal, whose screen long results have to fit."""
    return sys.stdout.isatty()


def color() -> bool:
    """Return whether to print colours on standard output."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def open_in_browser(url: str) -> None:
    """Open a page in the user's browser. Warn if there is none."""
    import typer

    if typer.launch(url) != 0:
        warn("no browser could be started: open the page yourself")


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print the warnings that passgate logs on standard error while the `with` block runs."""
    log, handler = logging.getLogger("passgate"), _Warnings(logging.WARNING)
    propagate = log.propagate
    log.addHandler(handler)
    log.propagate = False  # otherwise a handler of Prefect or of an agent's module prints the warning again
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


class _Warnings(logging.Handler):
    """Print each warning once, because a run reads its history more than once."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._printed:
            self._printed.add(message)
            warn(message)


class StandardStream(io.FileIO):
    """A standard stream that raises nothing but an interrupt. After it, or its first error, it drops everything."""

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
    """Let no standard stream raise. Return standard output, or `None` if Python code has replaced it already."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(_open_null(), encoding="utf-8")
    output = _safe_stream(sys.stdout, sys.__stdout__)
    if output is not None:
        sys.stdout = _text_stream(output, sys.stdout)
    messages = _safe_stream(sys.stderr, sys.__stderr__)
    if messages is not None:
        sys.stderr = _text_stream(messages, sys.stderr)
    return output


def _safe_stream(stream: TextIO | None, original: TextIO | None) -> StandardStream | None:
    if stream is None:
        return StandardStream(_open_null())
    return StandardStream(stream.fileno()) if stream is original else None


def _open_null() -> int:
    """Open /dev/null. The descriptor gets the lowest free number, which is the number of the first closed stream."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    # Otherwise a child process does not inherit this stream.
    os.set_inheritable(descriptor, True)
    return descriptor


def _text_stream(output: StandardStream, before: TextIO | None) -> io.TextIOWrapper:
    if not isinstance(before, io.TextIOWrapper):
        return io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8", errors="replace")
    # With PYTHONUNBUFFERED Python's own stream has no buffer below it that could hold a message back.
    lines = before.line_buffering or before.write_through
    writer = io.BufferedWriter(output)
    return io.TextIOWrapper(writer, encoding=before.encoding, errors=before.errors, line_buffering=lines)
