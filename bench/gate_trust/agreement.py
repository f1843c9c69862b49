"""Whether the simulation is the gate: some of its gates decided from trials and history by the code that a run uses."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tests.builders import a_plan, a_policy, a_task, a_trial

from bench.gate_trust.draws import Booleans, Draw, draws, run_state
from bench.gate_trust.regression_tests import RegressionTests
from bench.gate_trust.setting import Fall, Scale, Setting, shipped_gate, shipped_regression
from bench.gate_trust.simulate import weigh
from passgate.tasks.execution.coordinator import confirming_trials
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.history.baseline import baseline_of
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.stats.measurement import measurement_of


class Agreement(NamedTuple):
    """Of so many gates so many were decided as simulated, on as many trials of each task."""

    gates: int
    same: int


class _Outcome(NamedTuple):
    red: bool
    trials: tuple[int, ...]


def agreement(setting: Setting, tests: RegressionTests, scale: Scale, fall: Fall | None = None) -> Agreement:
    """Decide gates both ways, each with and without the shipped admission."""
    same = 0
    rng = scale.generator("agreement", setting, fall)
    regression = shipped_regression()
    most = max(setting.k, regression.max_trials)
    for draw in draws(setting, most, scale.gates, rng, fall):
        stand = run_state(draw, shipped_gate().admission)
        found = weigh(draw, stand, regression, tests)
        blocks = found.fallen | (found.undecided if regression.undecided == "block" else np.zeros_like(found.undecided))
        for gate in range(len(draw.now)):
            for admits in (False, True):
                withheld = stand.withheld[gate] & admits
                trials = np.where(withheld, setting.k, found.trials_run[gate])
                simulated = _Outcome(bool((blocks[gate] & ~withheld).any()), tuple(trials.tolist()))
                same += simulated == _decided(draw, gate, admits=admits)
    return Agreement(2 * scale.gates, same)


def _decided(draw: Draw, gate: int, *, admits: bool) -> _Outcome:
    """One gate from its trials on, with the shipped admission or without."""
    _, tasks, _, k = draw.before.shape
    policy = a_policy(suites=["golden"], limits={}, admission=shipped_gate().admission if admits else False)
    plan = a_plan(*(a_task(task_id=f"t{number:03}", k=k) for number in range(tasks)), policy=policy)
    baseline = baseline_of(plan, history(plan, draw.before[gate]))
    trials = [_trial(draw, gate, place, task, number) for place, task in enumerate(plan.tasks) for number in range(k)]
    places = {task.task_id: place for place, task in enumerate(plan.tasks)}
    while more := confirming_trials(plan, trials, baseline):
        trials += [
            _trial(draw, gate, places[task.task_id], task, number) for task, numbers in more for number in numbers
        ]
    ruling = rule_on(plan, plan.gate_policy, measurement_of(plan.tasks, trials), baseline)
    run = Counter(trial.task_id for trial in trials)
    return _Outcome(ruling.decision is Decision.FAIL, tuple(run[task.task_id] for task in plan.tasks))


def _trial(draw: Draw, gate: int, place: int, task: EvalTask, number: int) -> Trial:
    passed = draw.now[gate, place, number]
    return a_trial(task, number, TrialStatus.PASSED if passed else TrialStatus.FAILED)


def history(plan: Plan, before: Booleans) -> pd.DataFrame:
    """The rows of earlier runs on main: by task, run (the newest first) and trial, whether it passed."""
    _, runs, k = before.shape
    rows: list[dict[str, Any]] = [
        {
            "run_id": f"20260101T{runs - run:06}Z-ci_merge-0a0b",
            "suite": str(task.suite),
            "task_id": task.task_id,
            "task_digest": task.task_digest,
            "grader_digest": task.grader_digest,
            "agent": str(plan.agent),
            "model": "",
            "git_commit": "c" * 40,
            "git_branch": "main",
            "git_dirty": False,
            "trial": trial,
            "k": k,
            "metric": str(task.metric),
            "status": str(TrialStatus.PASSED if before[place, run, trial] else TrialStatus.FAILED),
            "score": None,
            "wall_time_seconds": None,
            "cost": None,
        }
        for place, task in enumerate(plan.tasks)
        for run in range(runs)
        for trial in range(k)
    ]
    return pd.DataFrame(rows).astype({"score": float, "wall_time_seconds": float, "cost": float})
