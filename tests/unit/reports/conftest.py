"""Handmade verdicts and trends as fixtures, and the comparison with golden files."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.reports import verdicts
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.measurements import a_failed_task, a_suite, a_task
from tests.unit.reports.verdicts import STARTED, a_reason, a_verdict

from passgate.tasks.model.baseline import TrendPoint
from passgate.tasks.model.measurement import SuiteMeasurement, TaskMeasurement
from passgate.tasks.model.task import GateName, Suite
from passgate.tasks.model.verdict import Reason, Verdict

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"


def _point(day: int, value: float | None, **changes: Any) -> TrendPoint:
    plain: dict[str, Any] = {
        "run_id": f"202604{day:02}T020000Z-nightly-{day:04x}",
        "gate": GateName.NIGHTLY,
        "suite": Suite.GOLDEN,
        "started_at": STARTED + timedelta(days=day - 1),
        "agent": "cli:python agent.py",
        "tasks": 12,
        "trials_passed": round(36 * (value or 0)),
        "trials_measured": 36,
        "trials_error": 0,
        "value": value,
        "low": None if value is None else max(0.0, value - 0.12),
        "high": None if value is None else min(1.0, value + 0.06),
        "cost": 0.43,
        "latency_p95_seconds": 12.3,
    }
    return TrendPoint(**plain | changes)


def _trend_points() -> tuple[TrendPoint, ...]:
    golden = [_point(day, value) for day, value in enumerate((0.94, 0.97, 0.92, 0.95, 0.97), start=1)]
    again = _point(
        5, 0.61, run_id="20260405T140000Z-nightly-\x1b[31mbad", started_at=STARTED + timedelta(days=4, hours=12)
    )
    adversarial = [
        _point(day, value, suite=Suite.ADVERSARIAL, tasks=30, trials_measured=300, trials_passed=round(300 * value))
        for day, value in enumerate((0.99, 1.0, 0.98, 0.996, 0.985), start=1)
    ]
    open_ended = _point(
        2, None, suite=Suite.OPEN_ENDED, trials_measured=0, trials_passed=0, trials_error=60, run_id="judge-was-down"
    )
    return (*golden, again, *adversarial, open_ended, _point(3, 0.8, suite=Suite.OPEN_ENDED))


@pytest.fixture(scope="session")
def hostile() -> str:
    """Everything that has ever broken a report, in one text."""
    return HOSTILE


@pytest.fixture(scope="session")
def make_task() -> Callable[..., TaskMeasurement]:
    """A task that passed, with changes."""
    return a_task


@pytest.fixture(scope="session")
def make_failed_task() -> Callable[..., TaskMeasurement]:
    """A task that failed two of three trials, with changes."""
    return a_failed_task


@pytest.fixture(scope="session")
def make_suite() -> Callable[..., SuiteMeasurement]:
    """The figures of a golden suite of twelve tasks that passed, with changes."""
    return a_suite


@pytest.fixture(scope="session")
def make_reason() -> Callable[..., Reason]:
    """A blocking reason that names a task: the task, the rule, the message, and changes."""
    return a_reason


@pytest.fixture(scope="session")
def make_verdict() -> Callable[..., Verdict]:
    """A verdict of a decision over tasks, with changes."""
    return a_verdict


@pytest.fixture(scope="session")
def make_point() -> Callable[..., TrendPoint]:
    """One run's golden suite on a day of April 2026 with a value, with changes."""
    return _point


@pytest.fixture(scope="session")
def failing_verdict() -> Verdict:
    return verdicts.failing_verdict()


@pytest.fixture(scope="session")
def inconclusive_verdict() -> Verdict:
    return verdicts.inconclusive_verdict()


@pytest.fixture(scope="session")
def passing_verdict() -> Verdict:
    return verdicts.passing_verdict()


@pytest.fixture(scope="session")
def awaiting_verdict() -> Verdict:
    return verdicts.awaiting_verdict()


@pytest.fixture(scope="session")
def approved_verdict() -> Verdict:
    return verdicts.approved_verdict()


@pytest.fixture(scope="session")
def rejected_verdict() -> Verdict:
    return verdicts.rejected_verdict()


@pytest.fixture(scope="session")
def trend_points() -> tuple[TrendPoint, ...]:
    return _trend_points()


@pytest.fixture(scope="session")
def matches_golden() -> Callable[[str, str], None]:
    """Compares a text with a golden file; PASSGATE_UPDATE_GOLDEN=1 writes the file instead."""

    def compare(text: str, name: str) -> None:
        path = GOLDEN / name
        if os.environ.get("PASSGATE_UPDATE_GOLDEN") == "1":
            path.write_bytes(text.encode())
        assert text.encode().decode() == path.read_bytes().decode()

    return compare
