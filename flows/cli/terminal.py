"""What the terminal is like, and the one way to it."""

import io
import os
import shutil
import sys

from passgate.tasks.reports.escape import printable

LONGEST_MESSAGE = 20_000
_NARROWEST, _WIDEST = 60, 140


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


def warn(message: str) -> None:
    """Print to standard error, in one line that no message can break out of."""
    sys.stderr.write(f"passgate: {printable(message, LONGEST_MESSAGE)}\n")
