"""Leaving trials out changes no decision: gates made at random, run with and without it."""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import STARTED, a_grade, a_plan, a_policy, a_task, a_trial
from tests.searches import costly

from passgate.tasks.execution.coordinator import RunState, confirming_trials
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.grade import Violation, ViolationRule
from passgate.tasks.model.measurement import Measurement
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import Trial, TrialMetrics, TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.stats.measurement import measure_trials

GATES = 600
SEED = 20260131
RULES = ("safety_violation", "forbidden_tool", "golden_regression", "task_failed", "threshold", "latency", "cost")
VETOING = {
    ViolationRule.SAFETY_VIOLATION: {"type": "policy_check", "secrets": True},
    ViolationRule.FORBIDDEN_TOOL: {"type": "tool_calls", "forbidden": ["rm"]},
}
MOST_CONFIRMING = 16
MODELS = ("small", "large")


class Gate(NamedTuple):
    """A gate and everything that could come of it."""

    plan: Plan
    trials: dict[str, list[Trial]]
    """Of each task, confirming ones included, as they are if they are run."""
    baselines: dict[tuple[str, tuple[str, ...]], BaselineTask]
    """By the task's name and the models that have answered."""


class Run(NamedTuple):
    """What a gate decided on the trials that were run."""

    decision: Decision
    left_out: Counter[str]
    """How many trials, by why."""


def a_gate(rng: random.Random) -> Gate:
    limits = {"latency_p95_increase_pct": 5, "cost_increase_pct": 5} if rng.random() < 0.2 else {}
    admission = {"passes": 1, "of": 2} if rng.random() < 0.2 else False
    count = rng.randint(8, 9) if limits else rng.randint(1, 6)
    tasks = [a_random_task(rng, number) for number in range(count)]
    policy = a_policy(
        suites=sorted({task.suite for task in tasks}),
        blocks_on=[rule for rule in RULES if rng.random() < 0.7],
        thresholds={task.suite: rng.choice([0.5, 0.75, 0.9, 1.0]) for task in tasks if rng.random() < 0.5},
        limits=limits,
        regression={
            "mode": rng.choice(["strict", "strict", "evidence"]),
            "suites": rng.sample(sorted(Suite), 2),
            "max_trials": 8,
            "undecided": rng.choice(["block", "warn"]),
        },
        admission=admission,
        curtailment=True,
        sign_off=rng.random() < 0.1,
    )
    quarantine = QuarantineFile(tasks=tuple(an_entry(rng, task) for task in tasks if rng.random() < 0.15))
    agent = AgentSpec(kind=AgentKind.ORACLE) if rng.random() < 0.2 else AgentSpec(kind=AgentKind.CLI, target="a")
    plan = a_plan(*tasks, policy=policy, quarantine=quarantine, agent=agent)
    return Gate(
        plan=plan,
        trials={task.task_id: [*some_trials(rng, task)] for task in tasks},
        baselines={
            (task.name, models): an_entry_of_the_baseline(rng)
            for task in tasks
            for models in ((), MODELS[:1], MODELS[1:], tuple(sorted(MODELS)))
        },
    )


def a_random_task(rng: random.Random, number: int) -> EvalTask:
    vetoes = [grader for grader in VETOING.values() if rng.random() < 0.3]
    by_scores = {"metric": Metric.MEAN, "scoring": {"rule": "weighted_average"}}
    by_passes = {"metric": rng.choice([Metric.PASS_AT_K, Metric.PASS_HAT_K])}
    return a_task(
        task_id=f"t{number}",
        suite=rng.choice(list(Suite)),
        k=rng.randint(1, 4),
        graders=[{"type": "output_check", "contains": ["yes"]}, *vetoes],
        **(by_scores if rng.random() < 0.15 else by_passes),
    )


def some_trials(rng: random.Random, task: EvalTask) -> Iterator[Trial]:
    """All trials of a task, of an agent that is as bad as it may be."""
    weights = rng.choice([(1, 0, 0), (8, 1, 0), (8, 1, 1), (2, 2, 1), (1, 6, 0)])
    can = [rule for rule, grader in VETOING.items() if grader["type"] in {one.type for one in task.graders}]
    for number in range(task.k + MOST_CONFIRMING):
        status = rng.choices([TrialStatus.PASSED, TrialStatus.FAILED, TrialStatus.ERROR], weights)[0]
        found = [rule for rule in can if status is TrialStatus.FAILED and rng.random() < 0.4]
        violations = tuple(Violation(rule=rule, message="no") for rule in found)
        slow = rng.choice([1.0, 1.1, 1.4])
        yield a_trial(
            task,
            number,
            status,
            score=None if status is TrialStatus.ERROR else rng.choice([0.0, 0.7, 1.0]),
            grades=(a_grade(violations=violations),),
            metrics=TrialMetrics(wall_time_seconds=slow, cost=slow / 10),
            model=rng.choice(MODELS),
        )


def an_entry(rng: random.Random, task: EvalTask) -> QuarantineEntry:
    expires = date.fromordinal(STARTED.toordinal() + rng.choice([-1, 0, 1]))
    return QuarantineEntry(task=task.name, owner="a", reason="b", issue="c", expires=expires)


def an_entry_of_the_baseline(rng: random.Random) -> BaselineTask:
    state = rng.choice([BaselineState.GREEN, *BaselineState])
    if state in {BaselineState.NEW, BaselineState.NONE}:
        return BaselineTask(state=state)
    passed = rng.choice([10, 12])
    times = {run: tuple(rng.choice([0.9, 1.0, 1.1]) for _ in range(3)) for run in ("s", "r")}
    newest = tuple(rng.random() < 0.8 for _ in range(2))
    return BaselineTask(state=state, runs=("s", "r"), passed=passed, n=12, newest=newest, wall_times=times, costs=times)


def baseline_of(gate: Gate, measurement: Measurement) -> Baseline:
    entries = {task.name: gate.baselines[task.name, task.models] for task in measurement.tasks}
    return Baseline(branch="main", tasks=entries)


def run_of(gate: Gate, turns: list[tuple[EvalTask, int]], at_once: int, *, stops: bool) -> Run:
    """Run a gate as it runs its trials: in turn, as many at once; then confirm and decide."""
    run_state = RunState(plan=gate.plan if stops else None)
    done: list[Trial] = []
    running: list[Trial] = []
    why: Counter[str] = Counter()
    for task, number in turns:
        trial, reason = gate.trials[task.task_id][number], run_state.needless(task)
        if reason is None:
            running.append(trial)
        else:
            why[reason] += 1
            blank = a_trial(task, number, TrialStatus.NOT_RUN, left_out=True, reason=reason)
            done.append(blank)
        if len(running) >= at_once:
            run_state.add(running[0])
            done.append(running.pop(0))
    return Run(decided(gate, [*done, *running]), why)


def decided(gate: Gate, trials: list[Trial]) -> Decision:
    """The decision, after as many confirming trials as the gate wants."""
    while True:
        measurement = measure_trials(gate.plan.tasks, trials)
        baseline = baseline_of(gate, measurement)
        wanted = confirming_trials(gate.plan, trials, baseline)
        more = [gate.trials[task.task_id][number] for task, numbers in wanted for number in numbers]
        if not more:
            return rule_on(gate.plan, gate.plan.gate_policy, measurement, baseline).decision
        trials = [*trials, *more]


def with_and_without(rng: random.Random) -> tuple[Run, Run]:
    gate = a_gate(rng)
    turns = [(task, trial) for trial in range(10) for task in gate.plan.tasks if trial < task.k]
    if rng.random() < 0.5:
        rng.shuffle(turns)
    at_once = rng.choice([1, 1, 2, 4])
    stopped = run_of(gate, turns, at_once, stops=True)
    # Where nothing was left out, both are the same run.
    return stopped, run_of(gate, turns, at_once, stops=False) if stopped.left_out else stopped


@costly
@given(st.randoms(use_true_random=False))
def test_a_gate_decides_the_same_with_and_without(rng: random.Random) -> None:
    stopped, whole = with_and_without(rng)
    assert stopped.decision is whole.decision
    assert not whole.left_out


@pytest.mark.slow
def test_hundreds_of_gates_decide_the_same_with_and_without() -> None:
    rng = random.Random(SEED)
    why, decisions = Counter[str](), Counter[Decision]()
    for number in range(GATES):
        stopped, whole = with_and_without(rng)
        assert stopped.decision is whole.decision, f"gate {number}"
        why += stopped.left_out
        decisions[stopped.decision] += bool(stopped.left_out)
    assert why.total() > 90
    assert min(decisions.values()) > 5, "trials were left out of gates of each decision"
