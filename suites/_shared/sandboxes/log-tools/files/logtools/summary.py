"""The summary of a log."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from logtools.entries import read_entries, read_lines

BUSIEST = 5


@dataclass(frozen=True)
class Summary:
    requests: int
    malformed: int
    bytes_sent: int
    by_status: dict[int, int]
    busiest: list[tuple[str, int]]
    """Path and number of requests; the more requests the earlier, equals in the order of the alphabet."""


def summarise(path: str | Path) -> Summary:
    """Return the summary of a log."""
    entries = read_entries(path)
    paths = Counter(entry.path for entry in entries)
    return Summary(
        requests=len(entries),
        malformed=len(read_lines(path)) - len(entries),
        bytes_sent=sum(entry.size for entry in entries),
        by_status=dict(sorted(Counter(entry.status for entry in entries).items())),
        busiest=sorted(paths.items(), key=lambda item: (-item[1], item[0]))[:BUSIEST],
    )
