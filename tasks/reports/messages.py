"""Messages on standard error."""

import sys

from passgate.tasks.reports.escape import printable

LONGEST_MESSAGE = 20_000


def write_line(text: str) -> None:
    """Print to standard error, in one line that no text can break out of."""
    sys.stderr.write(printable(text, LONGEST_MESSAGE) + "\n")


def warn(message: str) -> None:
    """The same as a message of passgate."""
    sys.stderr.write(f"passgate: {printable(message, LONGEST_MESSAGE)}\n")
