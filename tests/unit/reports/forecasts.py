"""Forecasts made by hand."""

from typing import Any

from passgate.tasks.model.forecast import (
    Advice,
    AgentFall,
    Catch,
    Cause,
    Change,
    CurvePoint,
    Effort,
    Forecast,
    TaskForecast,
)
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import GateName, Suite

RATES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3)


def a_task_forecast(task: str = "golden/fix_login", **changes: Any) -> TaskForecast:
    plain: dict[str, Any] = {
        "task": task,
        "k": 3,
        "pass_rate": 0.99,
        "passed": 59,
        "n": 60,
        "state": "green",
        "withheld": 0.0,
        "red": 0.03,
        "can_block": True,
    }
    return TaskForecast(**(plain | changes))


def catches(*means: float | None, task: str = "golden/fix_login") -> tuple[Catch, ...]:
    return tuple(
        Catch(
            pass_rate=rate,
            tasks=0 if mean is None else 20,
            mean=mean,
            worst=mean,
            worst_task="" if mean is None else task,
            strict_mean=None if mean is None else 1 - rate**3,
            strict_worst=None if mean is None else 1 - rate**3,
        )
        for rate, mean in zip((0.9, 0.7, 0.5), means, strict=True)
    )


def an_advice(**changes: Any) -> Advice:
    mode = Change(
        what="regression.mode: strict -> evidence",
        file="gates.yaml",
        lines=("gates:", "  ci_merge:", "    regression: {mode: evidence}"),
    )
    plain: dict[str, Any] = {
        "changes": (mode,),
        "reaches_target": True,
        "red": 0.009,
        "catches": catches(0.07, 0.64, 0.87),
        "effort": Effort(planned=60, confirming=7.2, saved=0.0),
    }
    return Advice(**(plain | changes))


def a_forecast(**changes: Any) -> Forecast:
    """A strict gate of twenty tasks."""
    causes = tuple(
        Cause(rule=Rule.GOLDEN_REGRESSION, task=f"golden/t{number}", chance=0.03, share=0.04) for number in range(20)
    )
    threshold = Cause(rule=Rule.THRESHOLD, suite=Suite.GOLDEN, chance=0.15, share=0.2)
    plain: dict[str, Any] = {
        "gate": GateName.CI_MERGE,
        "agent": "cli:my-agent",
        "rates": "history",
        "baseline_runs": 20,
        "red": 0.453,
        "inconclusive": 0.004,
        "strict_red": 0.453,
        "catches": catches(0.271, 0.657, 0.875),
        "agent_falls": (
            AgentFall(share=0.95, red=0.72, strict_red=0.98),
            AgentFall(share=0.8, red=0.999, strict_red=1),
        ),
        "effort": Effort(planned=60, confirming=0.0, saved=0.6, cost=1.234, seconds=185),
        "rules": (
            Cause(rule=Rule.GOLDEN_REGRESSION, chance=0.6, share=0.8),
            Cause(rule=Rule.THRESHOLD, chance=0.15, share=0.2),
        ),
        "causes": (threshold, *causes),
        "advice": an_advice(),
        "tasks": tuple(a_task_forecast(f"golden/t{number}") for number in range(20)),
        "curve": tuple(CurvePoint(pass_rate=rate, red=1 - rate**2, strict_red=1 - rate**3) for rate in RATES),
        "simulated": 10_000,
        "seed": 0,
    }
    return Forecast(**(plain | changes))
