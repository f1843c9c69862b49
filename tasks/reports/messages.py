"""Messages on standard error."""

import sys

from passgate.tasks.reports.escape import printable

LONGEST_MESSAGE = 20_000


def write_line(text: str) -> None:
    """Print a text to standard error in one line, whatever line ends it holds."""
    sys.stderr.write(printable(text, LONGEST_MESSAGE) + "\n")


def warn(message: str) -> None:
    """Print a message of passgate in the same way."""
    sys.stderr.write(f"passgate: {printable(message, LONGEST_MESSAGE)}\n")
