from datetime import datetime

from shifts import Shift, hours_of


def shift(came: str, went: str, break_worked: bool = False) -> Shift:
    return Shift("mara", datetime.fromisoformat(came), datetime.fromisoformat(went), break_worked)


def test_a_break_is_taken_off_after_six_hours() -> None:
    assert hours_of(shift("2025-03-28T08:00+01:00", "2025-03-28T16:30+01:00")) == 8.0
    assert hours_of(shift("2025-03-28T08:00+01:00", "2025-03-28T14:00+01:00")) == 6.0


def test_a_worked_break_is_paid() -> None:
    assert hours_of(shift("2025-03-27T22:00+01:00", "2025-03-28T06:00+01:00", True)) == 8.0
