"""A gate of many kinds of tasks, played many times by the gate's own code, beside its forecast."""

import random
from collections import Counter
from datetime import timedelta
from itertools import count, islice

import pytest

from passgate.tasks.execution.coordinator import confirming_trials
from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.policy import Policy, QuarantineEntry, QuarantineFile, Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.stats.measurement import measurement_of
from tests.builders import STARTED, a_baseline_task, a_grade, a_plan, a_policy, a_task, a_trial, a_violation, measured
from tests.unit.forecasts.settings import foresee
from tests.unit.forecasts.settings import setting as assumed

pytestmark = pytest.mark.slow

GATES = 600
SURE, SHAKY = a_baseline_task(passed=60, n=60), a_baseline_task(passed=52, n=60)
PROVEN = {"newest": (True,) * 20}
KINDS = {
    "golden": (a_task(task_id="golden"), 0.93, SHAKY),
    "sure": (a_task(task_id="sure"), 0.97, SURE),
    "red": (a_task(task_id="red"), 0.3, a_baseline_task(state=BaselineState.RED, passed=10, n=60)),
    "new": (a_task(task_id="new"), 0.99, a_baseline_task(state=BaselineState.NEW, runs=(), passed=0, n=0, newest=())),
    "shelved": (a_task(task_id="shelved"), 0.5, SURE),
    "unproven": (a_task(task_id="unproven"), 0.9, a_baseline_task(passed=17, n=20, newest=(False,) * 3 + (True,) * 17)),
    "safe": (a_task(task_id="safe", suite=Suite.ADVERSARIAL, k=4), 0.98, SURE),
    "open": (a_task(task_id="open", suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K), 0.6, SHAKY),
}
VIOLATING, ERRING = {"safe": 0.01}, {"open": 0.05, "sure": 0.02}


def baseline_of(*names: str) -> Baseline:
    entries = {}
    for name in names:
        task, _, entry = KINDS[name]
        is_unproven = name in {"unproven", "new"}
        entries[f"{task.suite}/{name}"] = entry if is_unproven else entry.model_copy(update=PROVEN)
    return Baseline(branch="main", tasks=entries)


def policy(**changes: object) -> Policy:
    gate = {
        "suites": list(Suite),
        "blocks_on": ["golden_regression", "task_failed", "safety_violation", "threshold"],
        "regression": {
            "mode": "evidence",
            "suites": ["golden", "open_ended"],
            "alpha": 0.2,
            "max_trials": 12,
            "max_confirming": 100,
        },
        "admission": {"passes": 19, "of": 20},
        "limits": {},
        "curtailment": False,
    }
    return a_policy(**(gate | changes))


def plan_of(policy: Policy, *names: str) -> Plan:
    entry = QuarantineEntry(
        task="golden/shelved", owner="Ann", reason="r", issue="i", expires=(STARTED + timedelta(days=5)).date()
    )
    tasks = [KINDS[name][0] for name in names]
    return a_plan(*tasks, policy=policy, quarantine=QuarantineFile(tasks=(entry,)))


def drawn(task: EvalTask, number: int, seed: random.Random) -> Trial:
    """One trial of the agent."""
    name = task.task_id
    if seed.random() < ERRING.get(name, 0.0):
        return a_trial(task, number, TrialStatus.ERROR)
    rate, violating, value = KINDS[name][1], VIOLATING.get(name, 0.0), seed.random()
    if value >= 1 - violating:
        return a_trial(task, number, TrialStatus.FAILED, grades=(a_grade(passed=False, violations=(a_violation(),)),))
    return a_trial(task, number, TrialStatus.PASSED if value < rate else TrialStatus.FAILED)


def played(plan: Plan, baseline: Baseline, seed: random.Random) -> tuple[Decision, int]:
    """One run as gates run it: its decision and its trials."""
    trials = [drawn(task, number, seed) for task in plan.tasks for number in range(task.k)]
    while wanted := confirming_trials(plan, trials, baseline):
        trials += [drawn(task, number, seed) for task, numbers in wanted for number in numbers]
    ruling = rule_on(plan, plan.gate_policy, measurement_of(plan.tasks, trials), baseline)
    return ruling.decision, len(trials)


def setting(plan: Plan, baseline: Baseline) -> Setting:
    failed = measured(*[(task, [a_trial(task, n, TrialStatus.FAILED) for n in range(task.k)]) for task in plan.tasks])
    return Setting(
        plan,
        tuple(
            TaskAssumptions(
                failed=one,
                rate=KINDS[one.task_id][1],
                errors=ERRING.get(one.task_id, 0.0),
                violations={Rule.SAFETY_VIOLATION: VIOLATING[one.task_id]} if one.task_id in VIOLATING else {},
                known=baseline.of(one.name),
            )
            for one in failed.tasks
        ),
    )


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        pytest.param({}, ("golden", "sure", "red", "new", "shelved", "unproven", "safe", "open"), id="all"),
        pytest.param({"regression": {"mode": "strict"}}, ("golden", "sure", "red", "shelved"), id="strict"),
        pytest.param({"thresholds": {"golden": 0.6}}, ("golden", "sure", "red", "shelved", "unproven"), id="threshold"),
        pytest.param({"blocks_on": ["task_failed"]}, ("golden", "open", "unproven"), id="some rules"),
        pytest.param({"admission": False}, ("golden", "unproven", "open"), id="no admission"),
    ],
)
def test_the_gate_does_what_was_forecast(changes: dict[str, object], names: tuple[str, ...]) -> None:
    suites = list(dict.fromkeys(str(KINDS[name][0].suite) for name in names))
    plan, baseline = plan_of(policy(suites=suites, **changes), *names), baseline_of(*names)
    found = foresee(setting(plan, baseline))
    seed = random.Random(11)
    runs = list(islice((played(plan, baseline, seed) for _ in count()), GATES))
    decisions = Counter(decision for decision, _ in runs)
    assert found.red == pytest.approx(decisions[Decision.FAIL] / GATES, abs=0.05)
    assert found.passed == pytest.approx(decisions[Decision.PASS] / GATES, abs=0.05)
    trials = sum(trials for _, trials in runs) / GATES
    # A gate that is FAIL already runs no confirming trials; a forecast counts them.
    assert 0.97 < (found.effort.planned + found.effort.confirming) / trials < 1.08


def drawn_baseline(plan: Plan, rate: float, seed: random.Random) -> Baseline:
    """As many runs as the policy pools, of an agent whose every trial passes so often."""
    entries = {}
    for task in plan.tasks:
        runs = [[seed.random() < rate for _ in range(task.k)] for _ in range(plan.policy.baseline.runs)]
        greens, trials = [all(run) for run in runs], tuple(passed for run in runs for passed in run)
        entries[task.name] = a_baseline_task(
            state=state_of(greens), runs_green=sum(greens), passed=sum(trials), n=len(trials), newest=trials
        )
    return Baseline(branch="main", tasks=entries)


@pytest.mark.parametrize(
    ("count", "rate", "changes"),
    [
        pytest.param(1, 0.8, {}, id="one task"),
        pytest.param(2, 0.85, {}, id="two tasks"),
        pytest.param(3, 0.85, {}, id="three tasks"),
        pytest.param(2, 0.8, {}, id="two worse tasks"),
        pytest.param(4, 0.8, {}, id="four worse tasks"),
        pytest.param(2, 0.8, {"blocks_on": ["threshold"], "thresholds": {"golden": 1.0}}, id="threshold"),
    ],
)
def test_small_suites_without_a_baseline_are_admitted_as_they_would_be(
    count: int, rate: float, changes: dict[str, object]
) -> None:
    strict = {"suites": ["golden"], "regression": {"mode": "strict"}, "admission": {"passes": 17, "of": 20}}
    tasks = [a_task(task_id=f"t{number}") for number in range(count)]
    found = foresee(assumed(tasks, rate, policy=policy(**strict | changes)))
    seed, reds = random.Random(3), 0
    for _ in range(GATES):
        baseline = drawn_baseline(found.setting.plan, rate, seed)
        trials = [
            a_trial(task, number, TrialStatus.PASSED if seed.random() < rate else TrialStatus.FAILED)
            for task in tasks
            for number in range(task.k)
        ]
        plan = found.setting.plan
        reds += rule_on(plan, plan.gate_policy, measurement_of(tasks, trials), baseline).decision is Decision.FAIL
    assert found.red == pytest.approx(reds / GATES, abs=0.05)
