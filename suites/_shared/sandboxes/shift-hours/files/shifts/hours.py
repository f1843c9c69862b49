"""Hours of shifts; what counts is in docs/rules.md."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

BREAK = timedelta(minutes=30)
BREAK_AFTER = timedelta(hours=6)


@dataclass(frozen=True)
class Shift:
    person: str
    came: datetime
    went: datetime
    break_worked: bool = False


def read_shifts(path: str | Path) -> list[Shift]:
    """Return the shifts of a month's file."""
    with open(path, encoding="utf-8", newline="") as file:
        return [
            Shift(
                row["person"],
                datetime.fromisoformat(row["came"]),
                datetime.fromisoformat(row["went"]),
                row["break_worked"] == "yes",
            )
            for row in csv.DictReader(file)
        ]


def hours_of(shift: Shift) -> float:
    """Return the paid hours of a shift."""
    worked = shift.went - shift.came
    if worked > BREAK_AFTER and not shift.break_worked:
        worked -= BREAK
    return worked / timedelta(hours=1)


def totals(shifts: list[Shift]) -> dict[str, float]:
    """Return the paid hours of each person."""
    hours: dict[str, float] = defaultdict(float)
    for shift in shifts:
        hours[shift.person] += hours_of(shift)
    return dict(hours)
