"""Baselines that runs of an agent would give where tasks have none, drawn together as one history gives them.

The tests of a gate share what its baseline says: the tasks of a suite tell of each other, a suite is tested as a whole,
and a bad run is bad for all tasks. So it takes whole baselines to know what a gate does.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions
from passgate.tasks.forecasts.first_trials import MOST_TRIALS
from passgate.tasks.forecasts.run_shifts import Shifts, shifts_of
from passgate.tasks.gates.guards import is_weighed
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import BaselineState, BaselineTask
from passgate.tasks.stats.expected_rates import LEAST_TASKS

Floats = npt.NDArray[np.float64]

DRAWS: Final = 60
_SEED: Final = 0


def with_drawn_baselines(setting: Setting) -> list[Setting]:
    """The setting with each of `DRAWS` baselines for the tasks that have none.

    None where the tasks tell nothing of each other: they are too few, or nothing is held against a baseline.
    """
    gate = setting.plan.gate_policy
    weighed = Counter(task.failed.suite for task in setting.tasks if is_weighed(gate, task.failed))
    together = {suite for suite, tasks in weighed.items() if tasks >= LEAST_TASKS}
    if not any(task.known is None and task.failed.suite in together for task in setting.tasks):
        return []
    rng = np.random.default_rng(_SEED)
    return [_with_baseline(setting, rng) for _ in range(DRAWS)]


def _with_baseline(setting: Setting, rng: np.random.Generator) -> Setting:
    runs, shifts = setting.plan.policy.baseline.runs, shifts_of(setting.spread)
    of_runs = rng.normal(0, 1, runs) * setting.spread
    tasks = (
        task if task.known is not None else replace(task, known=_drawn(task, of_runs, shifts, rng))
        for task in setting.tasks
    )
    return replace(setting, tasks=tuple(tasks))


def _drawn(task: TaskAssumptions, of_runs: Floats, shifts: Shifts, rng: np.random.Generator) -> BaselineTask:
    """The baseline of a task from runs with these shifts, the newest first."""
    k, runs = task.failed.k, len(of_runs)
    kept = min(runs, max(1, MOST_TRIALS // k))
    rates = np.clip(shifts.centre(task.rate) + of_runs[:kept], 0, 1)
    passed = rng.random((kept, k)) < rates[:, None]
    counts = passed.sum(axis=1).tolist()
    greens = [task.rule.is_green(k - count) for count in counts]
    names = [f"{runs - number:06}" for number in range(kept)]
    # Without validation, which would take most of the time.
    return BaselineTask.model_construct(
        state=BaselineState.NONE if None in greens else state_of([bool(green) for green in greens]),
        runs=tuple(names),
        passed=int(passed.sum()),
        n=passed.size,
        counts={name: (count, k) for name, count in zip(names, counts, strict=True)},
        newest=tuple(passed.reshape(-1).tolist()),
    )
