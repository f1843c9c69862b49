"""Counts the hours of shifts."""

from shifts.hours import Shift, hours_of, read_shifts, totals

__all__ = ["Shift", "hours_of", "read_shifts", "totals"]
