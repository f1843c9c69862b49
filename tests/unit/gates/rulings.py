"""Rulings on trials made by hand."""

from collections.abc import Sequence
from typing import Any

from passgate.tasks.gates.decide import Ruling, rule_on
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import GatePolicy, QuarantineFile, Rule
from passgate.tasks.model.run import Base, RunRequest
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Reason
from tests.builders import a_baseline, a_grade, a_plan, a_task, a_violation, measured, trials_of

GOLDEN = a_task()
OPEN = a_task(task_id="open", suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K, file="suites/open_ended/open.yaml")
ALL_RULES = [rule for rule in Rule if rule not in {Rule.MISSING_EVIDENCE, Rule.SIGN_OFF}]

Group = tuple[EvalTask, Sequence[Trial]]


def rule(
    *groups: Group,
    baseline: Baseline | None = None,
    agent: AgentSpec | None = None,
    request: RunRequest | None = None,
    unselected: int = 0,
    shipped_policy: bool = False,
    warnings: tuple[str, ...] = (),
    quarantine: QuarantineFile | None = None,
    base: Base | None = None,
    **policy: Any,
) -> Ruling:
    """The ruling on some trials by a strict gate that blocks on everything and wants the suites that there are."""
    suites = list(dict.fromkeys(task.suite for task, _ in groups)) or [Suite.GOLDEN]
    gate = GatePolicy.model_validate(
        {"suites": suites, "blocks_on": ALL_RULES, "regression": {"mode": "strict"}} | policy
    )
    changes: dict[str, Any] = ({"agent": agent} if agent else {}) | ({"quarantine": quarantine} if quarantine else {})
    changes |= {"shipped_policy": shipped_policy, "warnings": warnings, "base": base or Base()}
    plan = a_plan(*(task for task, _ in groups), request=request or RunRequest(), unselected=unselected, **changes)
    return rule_on(plan, gate, measured(*groups), baseline or Baseline(branch="main"))


def of(statuses: str, task: EvalTask = GOLDEN, **metrics: Any) -> Group:
    return task, trials_of(task, statuses, **metrics)


def violating(rule: ViolationRule, *trials: int, task: EvalTask = GOLDEN, statuses: str = "ppp") -> Group:
    """Trials of which some have violated a rule; that they passed all the same must not matter."""
    grade = a_grade(violations=(a_violation(rule),))
    made = trials_of(task, statuses)
    return task, [trial.model_copy(update={"grades": (grade,)}) if trial.trial in trials else trial for trial in made]


def green_before(*tasks: EvalTask, **changes: Any) -> Baseline:
    return a_baseline(*(tasks or (GOLDEN,)), **changes)


def only(ruling: Ruling) -> Reason:
    (reason,) = ruling.reasons
    return reason
