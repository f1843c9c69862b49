"""Messages on standard error."""

import sys

from passgate.tasks.reports.escape import printable

LONGEST_MESSAGE = 20_000


def warn(message: str) -> None:
    """Print to standard error, in one line that no message can break out of."""
    sys.stderr.write(f"passgate: {printable(message, LONGEST_MESSAGE)}\n")
