"""What `passgate doctor` finds."""

from enum import StrEnum

from passgate.tasks.model.base import Frozen


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Symptom(Frozen):
    """One thing that was looked at."""

    subject: str
    """What it belongs to: `machine`, `files`, `judge`, or an agent."""
    what: str
    state: State
    found: str
    remedy: str = ""
    """What to do about it; empty where all is well."""
