"""Which tasks do not block for a while, which do again, and which may leave the quarantine."""

from collections.abc import Iterator
from datetime import date, timedelta

from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.quarantine import QuarantineEntry, QuarantineFile
from passgate.tasks.model.verdict import Exemption

_LONGEST_TEXT = 300


def quarantined(file: QuarantineFile, today: date) -> dict[str, QuarantineEntry]:
    """The entries in force by their tasks: up to and with the day on which they expire."""
    return {entry.task: entry for entry in file.tasks if today <= entry.expires}


def expired(file: QuarantineFile, today: date) -> tuple[QuarantineEntry, ...]:
    """The entries whose tasks block again."""
    return tuple(entry for entry in file.tasks if entry.expires < today)


def exempt_by_quarantine(entry: QuarantineEntry) -> Exemption:
    """What a verdict says of a task in quarantine."""
    return Exemption(task=entry.task, why=f"quarantined until {entry.expires} by {_owner(entry)}: {_why(entry)}")


def quarantine_notes(file: QuarantineFile, baseline: Baseline, today: date) -> Iterator[str]:
    """What a verdict says of the quarantine itself: entries that have expired, and tasks that need none any more."""
    for entry in expired(file, today):
        since = entry.expires + timedelta(days=1)
        yield (
            f"the quarantine of {entry.task} has expired and the task blocks again since {since}: repair the "
            f"task, or remove its entry from quarantine.yaml ({_owner(entry)}: {_why(entry)})"
        )
    for task, entry in quarantined(file, today).items():
        green = baseline.of(task).green_in_a_row
        if green >= file.release_after:
            yield (
                f"{task} was green in the last {green} runs on {baseline.branch}: remove its entry from "
                f"quarantine.yaml ({_owner(entry)}: {_why(entry)})"
            )


def _owner(entry: QuarantineEntry) -> str:
    return _in_a_line(entry.owner)


def _why(entry: QuarantineEntry) -> str:
    return f"{_in_a_line(entry.reason)} ({_in_a_line(entry.issue)})"


def _in_a_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 3]}..."
