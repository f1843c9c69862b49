"""Settings of a forecast, made from as little as a test wants to say."""

from collections.abc import Mapping, Sequence
from typing import Any

from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions
from passgate.tasks.forecasts.setting_forecast import SettingForecast, Simulation
from passgate.tasks.forecasts.simulated_gate import TaskTests
from passgate.tasks.model.baseline import BaselineTask
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask
from tests.builders import a_plan, a_policy, a_task, measured, trials_of

PLAIN: Mapping[str, Any] = {
    "admission": False,
    "curtailment": False,
    "limits": {},
    "blocks_on": ["golden_regression", "task_failed"],
}
STRICT: Mapping[str, Any] = {**PLAIN, "regression": {"mode": "strict"}}
EVIDENCE: Mapping[str, Any] = {**PLAIN, "regression": {"mode": "evidence"}}


def tasks(count: int, **changes: Any) -> list[EvalTask]:
    return [a_task(task_id=f"t{number}", **changes) for number in range(count)]


def setting(
    of: Sequence[EvalTask],
    rates: float | Sequence[float] = 0.99,
    *,
    known: BaselineTask | Sequence[BaselineTask | None] | None = None,
    policy: Policy | None = None,
    plan: Mapping[str, Any] | None = None,
    task: Mapping[str, Any] | None = None,
    **gate: Any,
) -> Setting:
    """Some tasks with their pass rates under the shipped merge gate with changes; `task` changes all tasks."""
    made = a_plan(*of, policy=policy or a_policy(**gate), **(plan or {}))
    failed = measured(*[(task, trials_of(task, "f" * task.k)) for task in of]).tasks
    each = [rates] * len(of) if isinstance(rates, float) else rates
    before = [known] * len(of) if known is None or isinstance(known, BaselineTask) else known
    assumed = tuple(
        TaskAssumptions(one, rate, known=entry, **(task or {}))
        for one, rate, entry in zip(failed, each, before, strict=True)
    )
    return Setting(made, assumed)


def foresee(one: Setting, tests: TaskTests | None = None, gates: int = 4_000) -> SettingForecast:
    return SettingForecast(one, Simulation(gates, seed=0, tests=tests or TaskTests()))
