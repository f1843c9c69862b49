"""Section e: gates with early stop and without it, every one of them decided twice by the gate's own code."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from tests.builders import a_baseline_task, a_grade, a_plan, a_policy, a_task, a_trial, a_violation, in_two_runs

from bench.gate_trust.figures import Block, mean
from bench.gate_trust.setting import Scale
from passgate.tasks.execution.coordinator import RunState, confirming_trials
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask, Metric, Suite
from passgate.tasks.model.trial import Trial, TrialMetrics, TrialStatus
from passgate.tasks.model.verdict import Decision, Finding
from passgate.tasks.stats.measurement import measure_trials

PASSED, FAILED, VETOED, ERROR, LEFT_OUT = range(5)
CONFIRMING = 9
"""The most confirming trials in these gates."""
_STATUS: Final = {
    PASSED: TrialStatus.PASSED,
    FAILED: TrialStatus.FAILED,
    VETOED: TrialStatus.FAILED,
    ERROR: TrialStatus.ERROR,
    LEFT_OUT: TrialStatus.NOT_RUN,
}
_GUARDED: Final = [{"type": "output_check", "contains": ["yes"]}, {"type": "policy_check", "secrets": True}]
_EVERY_RULE: Final = [rule for rule in Rule if rule not in {Rule.MISSING_EVIDENCE, Rule.SIGN_OFF}]


@dataclass(frozen=True)
class Kind:
    """A gate with the true pass rates of its tasks."""

    name: str
    plan: Plan
    rates: tuple[float, ...]
    errors: float = 0.0
    """The share of trials that cannot be measured."""
    exact_saved: float | None = None
    """The expected share of the planned trials that are left out, where it is known."""

    @cached_property
    def turns(self) -> list[tuple[int, int]]:
        """Task and trial in the order in which they begin."""
        longest = max(task.k for task in self.plan.tasks)
        return [
            (place, trial) for trial in range(longest) for place, task in enumerate(self.plan.tasks) if trial < task.k
        ]


def compared(name: str, kind: Kind, scale: Scale) -> Block:
    """Gates of one kind: the decisions of both, and how many trials were left out."""
    rng = scale.generator("early stop", kind.name, kind.rates)
    gate, differing, saved = Gate(kind), 0, np.zeros(scale.gates)
    decisions: Counter[Decision] = Counter()
    for number in range(scale.gates):
        outcomes = _outcomes(kind, rng)
        at_once = 1 if kind.exact_saved is not None else int(rng.choice([1, 2, 8]))
        stopped, left_out = gate.run(outcomes, at_once, stops=True)
        whole, _ = gate.run(outcomes, at_once, stops=False)
        differing += stopped is not whole
        decisions[whole] += 1
        saved[number] = left_out / len(kind.turns)
    of = ", ".join(f"{count:,} {decision}" for decision, count in sorted(decisions.items()))
    line = f"the same decision in {scale.gates - differing:,} of {scale.gates:,} gates ({of})"
    figures = [mean("planned trials that were left out", saved, exact=kind.exact_saved)]
    title = f"{name}: {kind.name}"
    return Block(title, figures, [line], [f"{title}: {line}"] if differing else [])


def _outcomes(kind: Kind, rng: np.random.Generator) -> list[list[int]]:
    """What each trial of each task comes to if it is run. Of guarded tasks half of the failures are violations."""
    longest = max(task.k for task in kind.plan.tasks) + CONFIRMING + 5
    passes = rng.random((len(kind.rates), longest)) < np.array(kind.rates)[:, None]
    guarded = np.array([len(task.graders) > 1 for task in kind.plan.tasks])[:, None]
    vetoes = (rng.random(passes.shape) < 0.5) & guarded
    found = np.where(passes, PASSED, np.where(vetoes, VETOED, FAILED))
    outcomes: list[list[int]] = np.where(rng.random(passes.shape) < kind.errors, ERROR, found).tolist()
    return outcomes


class Came(NamedTuple):
    """A trial: the place of its task, its number and what it came to."""

    place: int
    number: int
    outcome: int


class _Answer(NamedTuple):
    decision: Decision
    more: tuple[tuple[int, int], ...]
    """Confirming trials that are wanted first, by place and number."""


class Gate:
    """Runs gates of one kind. What it has been asked once, trials or a verdict on trials, it does not compute again."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._trials: dict[Came, Trial] = {}
        self._answers: dict[tuple[Came, ...], _Answer] = {}
        tasks = kind.plan.tasks
        self._places = {task.task_id: place for place, task in enumerate(tasks)}
        # Green, with sixty trials of each task, all of which passed.
        times, costs = in_two_runs(1.0, 1.0, 1.0), in_two_runs(0.1, 0.1, 0.1)
        entry = a_baseline_task(passed=60, n=60, newest=(True,) * 60, wall_times=times, costs=costs)
        self._baseline = Baseline(branch="main", tasks={task.name: entry for task in tasks})

    def run(self, outcomes: list[list[int]], at_once: int, *, stops: bool) -> tuple[Decision, int]:
        """The decision of a run as it goes, and how many trials it left out. So many trials are under way when it is
        asked whether the next one is needed.
        """
        plan = self._kind.plan
        run_state = RunState(plan=plan if stops else None)
        came: list[Came] = []
        under_way: list[Came] = []
        for place, number in self._kind.turns:
            if run_state.needless(plan.tasks[place]) is not None:
                came.append(Came(place, number, LEFT_OUT))
                continue
            under_way.append(Came(place, number, outcomes[place][number]))
            if len(under_way) >= at_once:
                came.append(under_way.pop(0))
                run_state.add(self._trial(came[-1]))
        came += under_way
        left_out = sum(one.outcome == LEFT_OUT for one in came)
        while more := self._answer(came).more:
            came += [Came(place, number, outcomes[place][number]) for place, number in more]
        return self._answer(came).decision, left_out

    def _answer(self, came: list[Came]) -> _Answer:
        key = tuple(sorted(came))
        if key not in self._answers:
            self._answers[key] = self._decided([self._trial(one) for one in key])
        return self._answers[key]

    def _decided(self, trials: list[Trial]) -> _Answer:
        plan = self._kind.plan
        ruling = rule_on(plan, plan.gate_policy, measure_trials(plan.tasks, trials), self._baseline)
        unfinished = any(one.finding is Finding.UNFINISHED for one in ruling.confirmations)
        wanted = confirming_trials(plan, trials, self._baseline) if unfinished else []
        more = [(self._places[task.task_id], number) for task, numbers in wanted for number in numbers]
        return _Answer(ruling.decision, tuple(more))

    def _trial(self, came: Came) -> Trial:
        if came not in self._trials:
            self._trials[came] = _trial(self._kind.plan.tasks[came.place], came.number, came.outcome)
        return self._trials[came]


def _trial(task: EvalTask, number: int, outcome: int) -> Trial:
    violations = (a_violation(ViolationRule.SAFETY_VIOLATION),) if outcome == VETOED else ()
    return a_trial(
        task,
        number,
        _STATUS[outcome],
        left_out=outcome == LEFT_OUT,
        grades=(a_grade(passed=outcome == PASSED, violations=violations),),
        metrics=TrialMetrics(wall_time_seconds=1.0 + number / 10, cost=0.1),
    )


def strict(name: str, rates: tuple[float, ...], k: int, **changes: Any) -> Kind:
    """Adversarial tasks under the strict rule: a task stops at its first failure."""
    tasks = [
        a_task(task_id=f"t{number}", suite=Suite.ADVERSARIAL, k=k, graders=_GUARDED) for number in range(len(rates))
    ]
    policy = a_policy(
        suites=["adversarial"], blocks_on=_EVERY_RULE, limits={}, regression={"mode": "strict"}, admission=False
    )
    expected = sum(rate**trial for rate in rates for trial in range(k)) / (k * len(rates))
    return Kind(name, a_plan(*tasks, policy=policy), rates, exact_saved=1 - expected, **changes)


def any_passes(name: str, rates: tuple[float, ...], k: int, **changes: Any) -> Kind:
    """Open-ended tasks under the OR rule with a threshold: a task stops at its first pass."""
    tasks = [
        a_task(task_id=f"t{number}", suite=Suite.OPEN_ENDED, k=k, metric=Metric.PASS_AT_K)
        for number in range(len(rates))
    ]
    policy = a_policy(
        suites=["open_ended"],
        blocks_on=_EVERY_RULE,
        limits={},
        regression={"mode": "strict"},
        admission=False,
        thresholds={"open_ended": 0.8},
    )
    expected = sum((1 - rate) ** trial for rate in rates for trial in range(k)) / (k * len(rates))
    return Kind(name, a_plan(*tasks, policy=policy), rates, exact_saved=1 - expected, **changes)


def as_shipped(name: str, rate: float, errors: float) -> Kind:
    """Golden tasks, an adversarial one that can be vetoed and a replay under the shipped merge gate."""
    tasks = [
        a_task(task_id="golden"),
        a_task(task_id="adversarial", suite=Suite.ADVERSARIAL, k=10, graders=_GUARDED),
        a_task(task_id="replay", suite=Suite.FAILURE_REPLAYS, k=5),
    ]
    policy = a_policy()
    gate = policy.gates[a_plan().gate]
    regression = gate.regression.model_copy(update={"max_trials": CONFIRMING})
    policy = a_policy(regression=regression.model_dump())
    return Kind(name, a_plan(*tasks, policy=policy), (rate,) * len(tasks), errors)
