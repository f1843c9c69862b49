"""Whether the simulation is the gate: some of its gates decided from trials and history by the code that a run uses."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from tests.builders import a_trial

from bench.gate_trust.worlds import Booleans, Floats, Gates
from passgate.tasks.execution.coordinator import confirming_trials
from passgate.tasks.forecasts.drawn_trials import shifted_rates
from passgate.tasks.gates.decide import rule_on
from passgate.tasks.history.baseline import pool_baseline
from passgate.tasks.model.run import Plan
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.trial import Trial, TrialStatus
from passgate.tasks.model.verdict import Decision
from passgate.tasks.stats.measurement import measure_trials


def agreement(gates: Gates, rates: Floats) -> int:
    """Return how many of the first gates are decided the same with these rates, on as many trials of each task."""
    judged = gates.judged(rates)
    return sum(
        _decided(gates, gate, rates[gate]) == (bool(judged.red[gate]), tuple(judged.trials[gate].tolist()))
        for gate in range(len(rates))
    )


def _decided(gates: Gates, gate: int, rates: Floats) -> tuple[bool, tuple[int, ...]]:
    """Decide one gate from its history and trials: whether it is red, and the trials of each task."""
    plan, draws = gates.settings[gate].plan, gates.draws[gate]
    runs = [np.array(gates.baselines[gate].of(task.name).newest).reshape(-1, task.k)[:, ::-1] for task in plan.tasks]
    baseline = pool_baseline(plan, history(plan, np.array(runs)))
    passing = shifted_rates(rates[None], draws.shifts, gates.world.run_effect)
    now = (draws.outcomes(plan.gate_policy.regression.max_trials) < passing)[:, 0].T
    trials = [_trial(now[place], task, number) for place, task in enumerate(plan.tasks) for number in range(task.k)]
    places = {task.task_id: place for place, task in enumerate(plan.tasks)}
    while more := confirming_trials(plan, trials, baseline):
        trials += [_trial(now[places[task.task_id]], task, number) for task, numbers in more for number in numbers]
    ruling = rule_on(plan, plan.gate_policy, measure_trials(plan.tasks, trials), baseline)
    run = Counter(trial.task_id for trial in trials)
    return ruling.decision is Decision.FAIL, tuple(run[task.task_id] for task in plan.tasks)


def _trial(now: Booleans, task: EvalTask, number: int) -> Trial:
    return a_trial(task, number, TrialStatus.PASSED if np.asarray(now)[number] else TrialStatus.FAILED)


def history(plan: Plan, before: Booleans) -> pd.DataFrame:
    """The rows of earlier runs on main: by task, run (the newest first) and trial, whether it passed."""
    _, runs, k = before.shape
    names = [f"20260101T{runs - run:06}Z-ci_merge-0a0b" for run in range(runs)]
    rows: list[dict[str, Any]] = [
        {
            "run_id": names[run],
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
