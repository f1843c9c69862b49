"""Gates of golden tasks, drawn at random and decided by the tests that the gate uses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.gate_trust.draws import Booleans, Draw, Integers, RunState, draws, run_state
from bench.gate_trust.regression_tests import FALLEN, OPEN, UNDECIDED, Key, RegressionTests
from bench.gate_trust.setting import Fall, Scale, Setting, shipped_gate
from passgate.tasks.gates.evidence import alpha_of_one
from passgate.tasks.model.policy import Regression

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Simulated:
    """What came of each gate. `caught` figures are of the task that has fallen: whether it blocks."""

    strict: Booleans
    """Any task failed."""
    blocked: Booleans
    """Any task has fallen by the evidence."""
    undecided: Booleans
    """None has, and of one it is not decided."""
    shipped: Booleans
    """Any task has fallen or is undecided that is admitted."""
    extra: Floats
    """Confirming trials until the tests have ended, as a share of the planned ones."""
    extra_run: Floats
    """Likewise all that are run: they are in rounds, which may go beyond the end of a test."""
    caught: Booleans
    caught_or_undecided: Booleans
    caught_shipped: Booleans
    spent: Floats
    """Confirming trials of the fallen task."""

    def red(self, undecided: str) -> Booleans:
        """By what the policy does with undecided tasks."""
        return self.blocked | self.undecided if undecided == "block" else self.blocked

    def catches(self, undecided: str) -> Booleans:
        """Likewise of the fallen task."""
        return self.caught_or_undecided if undecided == "block" else self.caught


@dataclass(frozen=True)
class Findings:
    """Of some gates, per task."""

    fallen: Booleans
    undecided: Booleans
    trials: Integers
    """Until the test has ended, those of the first k included."""
    trials_run: Integers


def simulate(
    setting: Setting,
    variants: Sequence[Regression],
    tests: RegressionTests,
    scale: Scale,
    fall: Fall | None = None,
) -> list[Simulated]:
    """The same gates under several policies of evidence."""
    rng = scale.generator("gates", setting, fall)
    most = max(setting.k, *(variant.max_trials for variant in variants))
    parts: list[list[Simulated]] = []
    for draw in draws(setting, most, scale.gates, rng, fall):
        stand = run_state(draw, shipped_gate().admission)
        parts.append([_simulated(draw, stand, weigh(draw, stand, variant, tests)) for variant in variants])
    return [_together(of_variant) for of_variant in zip(*parts, strict=True)]


def weigh(draw: Draw, stand: RunState, regression: Regression, tests: RegressionTests) -> Findings:
    """Give every failed task that was green its confirming trials, as the gate does."""
    k = draw.before.shape[-1]
    most = max(k, regression.max_trials)
    tested = ~np.asarray(draw.now[..., :k].all(axis=-1)) & stand.green
    weighed = np.broadcast_to(stand.green.sum(axis=1, keepdims=True), tested.shape)
    kinds, which = np.unique(np.stack([stand.passed[tested], weighed[tested]], axis=-1), axis=0, return_inverse=True)
    keys = [Key(int(passed), stand.n, alpha_of_one(regression, int(m)), most) for passed, m in kinds]
    tests.prepare(keys)
    courses = np.cumsum(~draw.now[..., :most][tested], axis=-1)[:, k - 1 :]
    answers = np.zeros(len(courses), dtype=np.int8)
    trials, trials_run = np.full(len(courses), k), np.full(len(courses), k)
    for kind, key in enumerate(keys):
        rows = which.reshape(-1) == kind
        said = tests.answers(key)[np.arange(most - k + 1), courses[rows]]
        end = np.argmax(said != OPEN, axis=1)
        answers[rows] = said[np.arange(len(said)), end]
        trials[rows] = k + end
        trials_run[rows] = _in_rounds(courses[rows], k + end, k, tests.round_ends(key))
    found = Findings(np.zeros_like(tested), np.zeros_like(tested), np.full(tested.shape, k), np.full(tested.shape, k))
    found.fallen[tested] = answers == FALLEN
    found.undecided[tested] = answers == UNDECIDED
    found.trials[tested] = trials
    found.trials_run[tested] = trials_run
    return found


def _in_rounds(courses: Integers, ends: Integers, k: int, round_ends: Integers) -> Integers:
    """How many trials have run when each test has ended: rounds go on until it has."""
    run = np.full(len(courses), k)
    while (going_on := run < ends).any():
        run[going_on] = round_ends[run[going_on] - k, courses[going_on, run[going_on] - k]]
    return run


def _simulated(draw: Draw, stand: RunState, found: Findings) -> Simulated:
    k, gates = draw.before.shape[-1], np.arange(len(draw.now))
    blocks = found.fallen | found.undecided
    admitted = blocks & ~stand.withheld
    return Simulated(
        strict=_any(~np.asarray(draw.now[..., :k].all(axis=2))),
        blocked=_any(found.fallen),
        undecided=_any(found.undecided) & ~_any(found.fallen),
        shipped=_any(admitted),
        extra=(found.trials - k).mean(axis=1) / k,
        extra_run=(found.trials_run - k).mean(axis=1) / k,
        caught=found.fallen[gates, draw.fallen],
        caught_or_undecided=blocks[gates, draw.fallen],
        caught_shipped=admitted[gates, draw.fallen],
        spent=(found.trials_run - k)[gates, draw.fallen].astype(float),
    )


def _any(tasks: Booleans) -> Booleans:
    """Whether it holds of any task of each gate."""
    return np.asarray(tasks.any(axis=1))


def _together(parts: Sequence[Simulated]) -> Simulated:
    names = Simulated.__dataclass_fields__
    return Simulated(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
