"""Draw the trials of an agent: those of a run that is judged, and those of the runs that make a baseline."""

from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from passgate.tasks.forecasts.assumptions import Setting, centre
from passgate.tasks.history.baseline import baseline_state
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.task import BY_TRIALS, Metric
from passgate.tasks.stats.measurement import decide

Booleans = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_MOST_TRIALS: Final = 600  # More trials of a task at the baseline would change next to nothing
_MOST_KEPT: Final = 1_000_000  # Random numbers that stay in memory, of one baseline
_STATES: Final = (TaskState.PASSED, TaskState.FAILED, TaskState.UNDECIDED)
_, FAILED, UNDECIDED = range(3)  # Their places in arrays
_NEVER: Final = 1 << 30


@dataclass
class Draws:
    """Random numbers for a number of runs. Every policy and every pass rate is simulated with the same numbers, so that
    two forecasts differ by what was changed and not by chance.
    """

    seed: tuple[int, ...]
    runs: int
    tasks: int

    def __post_init__(self) -> None:
        rng = self._generator(0)
        self.shifts: Floats = rng.normal(0, 1, self.runs).astype(np.float32)  # Of each run, in standard deviations
        self._kept: Floats = np.empty((0, self.runs, self.tasks), dtype=np.float32)

    def outcomes(self, most: int) -> Floats:
        """Return a number from 0 to 1 for each trial, by trial, run and task. More trials begin with the same ones."""
        if most <= len(self._kept):
            return self._kept[:most]
        drawn = self._generator(1).random((most, self.runs, self.tasks), dtype=np.float32)
        if drawn.size <= _MOST_KEPT:
            self._kept = drawn
        return drawn

    def errors(self, most: int) -> Floats:
        """Return such numbers for what could not be measured."""
        return self._generator(2).random((most, self.runs, self.tasks), dtype=np.float32)

    def _generator(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([*self.seed, stream])


def setting_seed(setting: Setting, seed: int) -> tuple[int, int]:
    """Return the seed of a setting: the same for the same tasks and agent, whatever the policy is."""
    plan = setting.plan
    digests = [f"{task.name} {task.task_digest} {task.grader_digest}" for task in plan.tasks]
    return seed, crc32("\n".join([str(plan.agent), *digests]).encode())


def shifted_rates(rates: npt.ArrayLike, shifts: Floats, spread: float) -> Floats:
    """Return the pass rates of tasks in runs that differ by a spread; their mean over all runs is the given rate."""
    known: Floats = np.asarray(rates, dtype=np.float32)
    if not spread:
        return known
    distinct, places = np.unique(known, return_inverse=True)
    centres = np.array([centre(float(rate), spread) for rate in distinct], dtype=np.float32)
    found: Floats = np.clip(centres[places].reshape(known.shape) + spread * shifts[:, None], 0, 1).astype(np.float32)
    return found


class FirstTrials(NamedTuple):
    """The trials of some runs, and what the planned ones have decided. Arrays are by run and task."""

    failures: npt.NDArray[np.int16]  # By number of measured trials, run and task: how many of them failed
    measured: Integers  # Of the planned trials
    state: npt.NDArray[np.int8]
    vetoed_from: Integers  # The number of trials with which a violation that blocks is among them

    @property
    def passed_any(self) -> Booleans:
        """By run alone: whether any planned trial has passed."""
        failed = np.take_along_axis(self.failures, self.measured[None], axis=0)[0]
        return np.asarray((failed < self.measured).any(axis=1))


def first_trials(setting: Setting, rates: npt.ArrayLike, draws: Draws, most: int, *, violates: bool) -> FirstTrials:
    """Return up to `most` trials of each task in runs in which tasks have these pass rates, by task or by run and task.
    `violates`: whether some of them violate rules, as often as the setting says.
    """
    tasks, planned = setting.tasks, [task.failed for task in setting.tasks]
    k, numbers = np.array([task.k for task in planned], dtype=np.int64), draws.outcomes(most)
    passed = numbers < np.broadcast_to(shifted_rates(rates, draws.shifts, setting.spread), numbers.shape[1:])
    by_scores = [place for place, task in enumerate(planned) if task.metric not in BY_TRIALS]
    passed[:, :, by_scores] = passed[:1, :, by_scores]
    failures = np.zeros((len(passed) + 1, *passed.shape[1:]), dtype=np.int16)
    np.cumsum(~passed, axis=0, out=failures[1:])
    measured = np.broadcast_to(k, passed.shape[1:])
    if any(task.errors for task in tasks):
        errors = draws.errors(int(k.max())) < np.array([task.errors for task in tasks])
        measured = measured - (errors & (np.arange(k.max())[:, None] < k)[:, None]).sum(axis=0)
    state = np.empty(passed.shape[1:], dtype=np.int8)
    failed = np.take_along_axis(failures, measured[None], axis=0)[0]
    for place, task in enumerate(planned):
        state[:, place] = _states(task.metric, task.k)[measured[:, place], failed[:, place]]
    vetoed_from = np.full(state.shape, _NEVER)
    shares = np.array([task.violated(setting.plan.gate_policy) if violates else 0.0 for task in tasks])
    for place in np.flatnonzero(shares).tolist():
        # A trial that violates has not passed.
        violated = (numbers[..., place] >= 1 - shares[place]) & ~passed[..., place]
        vetoed_from[:, place] = np.where(violated.any(axis=0), np.argmax(violated, axis=0) + 1, _NEVER)
    return FirstTrials(failures, measured, state, vetoed_from)


@cache
def _states(metric: Metric, k: int) -> npt.NDArray[np.int8]:
    """Return how planned trials decide a task, by how many were measured and how many of these failed."""
    table = np.zeros((k + 1, k + 1), dtype=np.int8)
    for measured in range(k + 1):
        for failed in range(measured + 1):
            scores = [0.0] * failed + [1.0] * (measured - failed)
            state = decide(metric, passed=measured - failed, failed=failed, planned=k, scores=scores)
            table[measured, failed] = _STATES.index(state)
    return table


def drawn_baseline(setting: Setting, rng: np.random.Generator, runs: int | None = None) -> Baseline:
    """Return the baseline of a setting. Tasks without one get what runs of such an agent would give, as many as the
    policy pools or `runs`; whatever a whole run has in common hits all of its tasks.
    """
    runs = setting.plan.policy.baseline.runs if runs is None else runs
    shifts = rng.normal(0, 1, runs).astype(np.float32)
    rates = shifted_rates([task.rate for task in setting.tasks], shifts, setting.spread)
    by_run = np.broadcast_to(rates, (runs, len(setting.tasks)))
    entries = {}
    for place, task in enumerate(setting.tasks):
        k, metric = task.failed.k, task.failed.metric
        kept = min(runs, max(1, _MOST_TRIALS // k))
        # A task that goes by its scores passes or fails as a whole run does.
        numbers = rng.random((kept, k if metric in BY_TRIALS else 1))
        passed = np.broadcast_to(numbers < by_run[:kept, place, None], (kept, k))
        entries[task.name] = task.known if task.known is not None else pooled_runs(passed, metric)
    return Baseline(branch=setting.branch, young=setting.young, tasks=entries)


def pooled_runs(passed: Booleans, metric: Metric) -> BaselineTask:
    """Return what runs say of a task whose trials passed so, by run (the newest first) and trial."""
    if not len(passed):
        return BaselineTask(state=BaselineState.NEW)
    greens = [bool(run.any() if metric is Metric.PASS_AT_K else run.all()) for run in passed]
    names = [f"run-{len(passed) - run:06}" for run in range(len(passed))]
    counts = passed.sum(axis=1).tolist()
    # Without validation, which would take most of the time.
    return BaselineTask.model_construct(
        state=baseline_state(greens),
        runs=tuple(names),
        runs_green=sum(greens),
        passed=int(passed.sum()),
        n=passed.size,
        counts={name: (count, passed.shape[1]) for name, count in zip(names, counts, strict=True)},
        newest=tuple(passed[:, ::-1].reshape(-1).tolist()),
    )
