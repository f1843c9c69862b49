"""Trials drawn at random: those of the runs at the baseline and those of the run that is judged."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from bench.gate_trust.setting import Fall, Setting
from passgate.tasks.history.baseline import state_of
from passgate.tasks.model.baseline import BaselineState
from passgate.tasks.model.policy import Admission

Booleans = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

_MOST_TRIALS = 30_000_000
"""That are drawn at once."""


class Draw(NamedTuple):
    """Some gates. Whether each trial passed; everything but `fallen` has gates and tasks as its first axes."""

    before: Booleans
    """Runs of the baseline, the newest first, and their trials."""
    now: Booleans
    """The trials of the run that is judged, those that it may want for confirmation included."""
    fallen: Integers
    """Which task has fallen, per gate; -1 where none has."""


class RunState(NamedTuple):
    """How the tasks of some gates stand at the baseline."""

    passed: Integers
    n: int
    green: Booleans
    withheld: Booleans
    """Not admitted."""


def draws(
    setting: Setting, most: int, gates: int, rng: np.random.Generator, fall: Fall | None = None
) -> Iterator[Draw]:
    """As many gates in parts that fit into the memory, with `most` trials of each task in the run that is judged.

    With `fall` one task of each gate, any of those that can, has fallen.
    """
    tasks = len(setting.rates)
    at_once = max(1, _MOST_TRIALS // (tasks * (setting.runs * setting.k + most)))
    for start in range(0, gates, at_once):
        count = min(at_once, gates - start)
        rates = np.tile(np.array(setting.rates, dtype=np.float32), (count, 1))
        before = rng.random((count, tasks, setting.runs, setting.k), dtype=np.float32) < rates[:, :, None, None]
        fallen = np.full(count, -1)
        if fall is not None:
            fallen = rng.choice(np.array(setting.can_fall(fall)), count)
            rates[np.arange(count), fallen] = fall.to
        now = rng.random((count, tasks, most), dtype=np.float32) < rates[:, :, None]
        yield Draw(before, now, fallen)


def run_state(draw: Draw, admission: Admission | Literal[False]) -> RunState:
    """What the runs of the baseline say, by the rules of the gate."""
    _, _, runs, k = draw.before.shape
    return RunState(
        passed=draw.before.sum(axis=(2, 3)),
        n=runs * k,
        green=_green(np.asarray(draw.before.all(axis=3))),
        withheld=_not_admitted(draw.before, admission),
    )


def _not_admitted(before: Booleans, admission: Admission | Literal[False]) -> Booleans:
    gates, tasks, runs, k = before.shape
    if admission is False:
        return np.zeros((gates, tasks), dtype=bool)
    newest = before[..., ::-1].reshape(gates, tasks, runs * k)[..., : admission.of]
    shown = (newest.shape[-1] == admission.of) & (newest.sum(axis=-1) >= admission.passes)
    in_force = shown.any(axis=1, keepdims=True)
    return np.asarray(in_force & ~shown)


def _green(greens: Booleans) -> Booleans:
    """Whether each task is green, from whether it passed each run: every course of runs is asked for once."""
    runs = greens.shape[-1]
    packed = np.packbits(greens, axis=-1).reshape(-1, -(-runs // 8))
    courses, which = np.unique(packed, axis=0, return_inverse=True)
    states = np.array(
        [is_green(course.tolist()) for course in np.unpackbits(courses, axis=-1, count=runs).astype(bool)]
    )
    found: Booleans = states[which.reshape(-1)].reshape(greens.shape[:-1])
    return found


def is_green(course: Sequence[bool]) -> bool:
    """Whether a task is green that passed its runs or not, the newest first."""
    return state_of(course) is BaselineState.GREEN
