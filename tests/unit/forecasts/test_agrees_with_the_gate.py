"""Simulated runs beside the same runs that the gate's own code decides: gates of many kinds of tasks."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from passgate.tasks.execution.coordinator import confirming_trials
from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions
from passgate.tasks.forecasts.drawn_trials import Draws, drawn_baseline
from passgate.tasks.forecasts.simulated_gate import SimulatedGate, TaskTests
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline, BaselineState
from passgate.tasks.model.policy import Policy, QuarantineEntry, QuarantineFile, Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.stats.measurement import measure_trials
from tests.builders import STARTED, a_baseline_task, a_grade, a_plan, a_policy, a_task, a_trial, a_violation, measured
from tests.unit.forecasts.settings import EVIDENCE, foresee
from tests.unit.forecasts.settings import setting as assumed

pytestmark = pytest.mark.slow

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


def played(plan: Plan, baseline: Baseline, outcomes: Mapping[str, Sequence[Trial]]) -> tuple[Decision, list[int]]:
    """Run one gate as a run does, with what each trial of a task comes to: its decision and the trials of each task."""
    trials = [outcomes[task.task_id][number] for task in plan.tasks for number in range(task.k)]
    while wanted := confirming_trials(plan, trials, baseline):
        trials += [outcomes[task.task_id][number] for task, numbers in wanted for number in numbers]
    ruling = rule_on(plan, plan.gate_policy, measure_trials(plan.tasks, trials), baseline)
    counts = Counter(trial.task_id for trial in trials)
    return ruling.decision, [counts[task.task_id] for task in plan.tasks]


def drawn(one: Setting, draws: Draws, run: int) -> dict[str, list[Trial]]:
    """The trials of a run without errors, as the simulation takes them from its random numbers."""
    numbers, found = draws.outcomes(60)[:, run], {}
    for place, (task, known) in enumerate(zip(one.plan.tasks, one.tasks, strict=True)):
        rate, violated = np.float32(known.rate), known.violated(one.plan.gate_policy)
        found[task.task_id] = [
            a_trial(task, place_of_trial, TrialStatus.PASSED)
            if number < rate
            else a_trial(
                task,
                place_of_trial,
                TrialStatus.FAILED,
                grades=(a_grade(passed=False, violations=(a_violation(),) * bool(number >= 1 - violated)),),
            )
            for place_of_trial, number in enumerate(numbers[:, place])
        ]
    return found


GATES = [
    pytest.param({}, tuple(KINDS), id="all"),
    pytest.param({"regression": {"mode": "strict"}}, ("golden", "sure", "red", "shelved"), id="strict"),
    pytest.param({"thresholds": {"golden": 0.6}}, ("golden", "sure", "red", "shelved", "unproven"), id="threshold"),
    pytest.param({"blocks_on": ["task_failed"]}, ("golden", "open", "unproven"), id="some rules"),
    pytest.param({"admission": False}, ("golden", "unproven", "open"), id="no admission"),
    pytest.param({"regression": {"alpha": 0.2, "max_confirming": 0.5}}, ("golden", "unproven", "red"), id="few trials"),
    pytest.param({}, ("red", "new"), id="nothing passes"),
]


@pytest.mark.parametrize(("changes", "names"), GATES)
def test_every_run_is_decided_as_the_gate_decides_it(changes: dict[str, object], names: tuple[str, ...]) -> None:
    suites = list(dict.fromkeys(str(KINDS[name][0].suite) for name in names))
    plan, baseline = plan_of(policy(suites=suites, **changes), *names), baseline_of(*names)
    one = setting(plan, baseline)
    one = replace(one, tasks=tuple(replace(task, errors=0.0) for task in one.tasks))
    draws = Draws((3,), 30, len(names))
    found = SimulatedGate(one, baseline, TaskTests()).run([task.rate for task in one.tasks], draws)
    for run in range(draws.runs):
        decision, trials = played(plan, baseline, drawn(one, draws, run))
        assert (found.red[run], found.inconclusive[run]) == (
            decision is Decision.FAIL,
            decision is Decision.INCONCLUSIVE,
        )
        assert found.trials[run].tolist() == trials


@pytest.mark.parametrize("keeps", [1.0, 0.9])
def test_suites_and_drawn_baselines_are_decided_as_the_gate_decides_them(keeps: float) -> None:
    """Twenty tasks and a suite that is tested as a whole, with so few trials that the tests compete for them."""
    tasks = [a_task(task_id=f"t{number:02}") for number in range(20)]
    gate = {**EVIDENCE, "blocks_on": ["golden_regression", "task_failed", "suite_regression"]}
    one = assumed(tasks, 0.92, policy=a_policy(suites=["golden"], **gate))
    baseline = drawn_baseline(one, np.random.default_rng(7))
    one = replace(one, tasks=tuple(replace(task, rate=task.rate * keeps) for task in one.tasks))
    draws = Draws((4,), 12, len(tasks))
    found = SimulatedGate(one, baseline, TaskTests()).run([task.rate for task in one.tasks], draws)
    for run in range(draws.runs):
        decision, trials = played(one.plan, baseline, drawn(one, draws, run))
        assert (found.red[run], found.trials[run].tolist()) == (decision is Decision.FAIL, trials)


def test_errors_leave_as_many_runs_open_as_in_the_gate() -> None:
    names = ("sure", "open")
    plan, baseline = plan_of(policy(suites=["golden", "open_ended"]), *names), baseline_of(*names)
    one, seed, decisions = setting(plan, baseline), random.Random(11), Counter[Decision]()
    for _ in range(400):
        outcomes = {
            task.task_id: [
                a_trial(
                    task,
                    number,
                    TrialStatus.ERROR
                    if seed.random() < ERRING[task.task_id]
                    else TrialStatus.PASSED
                    if seed.random() < KINDS[task.task_id][1]
                    else TrialStatus.FAILED,
                )
                for number in range(60)
            ]
            for task in plan.tasks
        }
        decisions[played(plan, baseline, outcomes)[0]] += 1
    found = foresee(one)
    assert found.red == pytest.approx(decisions[Decision.FAIL] / 400, abs=0.05)
    assert found.inconclusive == pytest.approx(decisions[Decision.INCONCLUSIVE] / 400, abs=0.05)
