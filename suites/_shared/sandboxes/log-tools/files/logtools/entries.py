"""Requests, one for each line of a log."""

from dataclasses import dataclass
from pathlib import Path


class MalformedLine(ValueError):
    """A line that is no request."""


@dataclass(frozen=True)
class Entry:
    time: str
    client: str
    method: str
    path: str
    status: int
    size: int


def parse_line(line: str) -> Entry:
    """Return the request of a line. Raises `MalformedLine`."""
    fields = line.rstrip("\n").split(" ")
    if len(fields) != 6:
        raise MalformedLine(line)
    time, client, method, path, status, size = fields
    if not (status.isdecimal() and size.isdecimal()):
        raise MalformedLine(line)
    return Entry(time, client, method, path, int(status), int(size))


def read_lines(path: str | Path) -> list[str]:
    """Return the lines of a log that are not empty."""
    with open(path, encoding="utf-8", errors="replace") as log:
        return [line for line in log.readlines() if line.strip()]


def read_entries(path: str | Path) -> list[Entry]:
    """Return the requests of a log, without the malformed lines."""
    entries = []
    for line in read_lines(path):
        try:
            entries.append(parse_line(line))
        except MalformedLine:
            continue
    return entries
