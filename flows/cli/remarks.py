"""Prints warnings and notes about input files on standard error."""

import sys
from collections.abc import Iterable

from passgate.tasks.formats.normalise import Loaded
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.messages import LONGEST_MESSAGE

_MOST_OTHERS = 20


def remark(loaded: Loaded) -> None:
    """Print warnings, tasks that cannot be run, files that are not eval files, and how many tasks name no suite."""
    for line in _remarks(loaded):
        sys.stderr.write(printable(line, LONGEST_MESSAGE) + "\n")


def _remarks(loaded: Loaded) -> Iterable[str]:
    yield from (f"warning: {warning}" for warning in loaded.warnings)
    yield from (f"cannot be run: {missing}" for missing in loaded.cannot_run)
    yield from (f"not an eval file: {file}" for file in loaded.others[:_MOST_OTHERS])
    if len(loaded.others) > _MOST_OTHERS:
        yield f"not an eval file: {len(loaded.others) - _MOST_OTHERS} more"
    assumed = sum(task.suite_assumed for task in loaded.tasks)
    if assumed:
        are = "1 task names no suite and is" if assumed == 1 else f"{assumed} tasks name no suite and are"
        yield f"warning: {are} taken as golden: write `suite:`, or put the file into the folder of a suite"
