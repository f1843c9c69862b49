"""Trends made by hand."""

from datetime import timedelta
from typing import Any

from tests.unit.reports.verdicts import STARTED

from passgate.tasks.model.history import FlakyTask, Quantity, RunStamp, Trend, TrendChange, TrendPeriod, TrendPoint
from passgate.tasks.model.task import GateName, Suite


def a_point(day: int, value: float | None, **changes: Any) -> TrendPoint:
    """One run's golden suite on a day of April 2026 with a value, with changes."""
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
    golden = [a_point(day, value) for day, value in enumerate((0.94, 0.97, 0.92, 0.95, 0.97), start=1)]
    again = a_point(
        5, 0.61, run_id="20260405T140000Z-nightly-\x1b[31mbad", started_at=STARTED + timedelta(days=4, hours=12)
    )
    adversarial = [
        a_point(day, value, suite=Suite.ADVERSARIAL, tasks=30, trials_measured=300, trials_passed=round(300 * value))
        for day, value in enumerate((0.99, 1.0, 0.98, 0.996, 0.985), start=1)
    ]
    open_ended = a_point(
        2, None, suite=Suite.OPEN_ENDED, trials_measured=0, trials_passed=0, trials_error=60, run_id="judge-was-down"
    )
    return (*golden, again, *adversarial, open_ended, a_point(3, 0.8, suite=Suite.OPEN_ENDED))


POINTS = _trend_points()


def _period(suite: Suite, label: str, value: float | None, **changes: Any) -> TrendPeriod:
    plain: dict[str, Any] = {
        "suite": suite,
        "label": label,
        "runs": 7,
        "tasks": 8,
        "value": value,
        "cost": 0.43,
        "trials_passed": 150,
        "trials_measured": 168,
        "trials_error": 0,
        "low": None if value is None else max(0.0, value - 0.2),
        "high": None if value is None else min(1.0, value + 0.06),
        "latency_p50_seconds": 4.2,
        "latency_p95_seconds": 12.3,
        "tool_call_accuracy": 0.93,
        "loop_rate": 0.02,
        "retry_rate": 0.01,
        "policy_adherence": None,
        "injection_success_rate": 0.0,
    }
    return TrendPeriod(**plain | changes)


def a_trend(text: str = "fix-tests_1") -> Trend:
    """A trend with a text in every place that a run or an agent can fill."""
    before = RunStamp(run_id="20260403T020000Z-nightly-0003", day="2026-04-03", git_commit="a1b2c3d4e5f6a7b8")
    after = RunStamp(run_id="20260404T020000Z-nightly-0004", day="2026-04-04", git_commit="0f1e2d3c4b5a6978")
    early = RunStamp(run_id="20260301T020000Z-nightly-0001", day="2026-03-01", git_commit="a1b2c3d4e5f6a7b8")
    plain: dict[str, Any] = {"suite": Suite.GOLDEN, "last_before": before, "first_after": after, "told_by": "x"}
    regression = TrendChange(
        **plain,
        quantity=Quantity.PASS_RATE,
        tasks=(text, "second_1"),
        is_worse=True,
        before=0.97,
        after=0.61,
        also_changed=(f"model: small -> {text}", "policy"),
    )
    drift = TrendChange(
        **plain | {"first_after": early, "last_before": early},
        quantity=Quantity.COST,
        is_worse=True,
        before=0.02,
        after=0.037,
        until=before,
    )
    faster = drift.model_copy(update={"quantity": Quantity.LATENCY, "is_worse": False, "before": 9.0, "after": 4.0})
    return Trend(
        gate=GateName.NIGHTLY,
        agent=f"cli:{text}",
        runs=60,
        first=early,
        last=after,
        changes=(regression, drift, faster.model_copy(update={"until": None})),
        last_week=(_period(Suite.GOLDEN, "last 7 days", 0.61), _period(Suite.OPEN_ENDED, "last 7 days", None)),
        week_before=(_period(Suite.GOLDEN, "7 days before", 0.97),),
        flaky=(FlakyTask(suite=Suite.GOLDEN, task_id=text, disagreement=0.48, passed=54, n=90),),
        seconds_per_verdict=754.0,
        cost_per_verdict=1.72,
        since="2026-04-01",
        points=POINTS,
        periods=(_period(Suite.GOLDEN, text, 0.97), _period(Suite.GOLDEN, "2026-W14", 0.61)),
    )


TREND = a_trend()
