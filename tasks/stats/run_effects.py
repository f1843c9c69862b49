"""By how much whole runs differ, and for how long: a busy machine slows all tasks of a run, and often of the next.

All arrays are of logarithms and may hold many gates at once, which the simulations of a forecast do. The effects of
runs are an autoregression of first order: the correlation of two runs falls by the same factor from run to run.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_PERSISTENCES: Floats = np.linspace(0.0, 0.9, 19)
PRIOR_DEGREES = 3.0
PRIOR_SHARE = 1 / 6
"""Of the noise within runs: by so much whole runs are taken to differ, with the weight of `PRIOR_DEGREES` runs."""


class Cells(NamedTuple):
    """The trials of tasks in the runs of a baseline, the oldest run first. Every gate has the same cells."""

    means: Floats  # By gate, task and run; 0 where the task is not in the run
    counts: Floats  # By task and run, how many trials there are
    variances: Floats  # By gate and task, of the trials within a run; NaN where no run of the task has two trials


class RunEffects(NamedTuple):
    """Of each gate."""

    variance: Floats  # Of a whole run, as if they did not persist; 0 where the trials' own noise explains all
    persistence: Floats  # The correlation of a run with the next, from 0 to 0.9: an upper estimate
    of_comparison: Floats  # The variance that they bring into the difference of one more run from the baseline
    degrees: Floats  # Degrees of freedom of `of_comparison`
    by_run: Floats  # By gate and run, how much all tasks deviate together; it holds the noise of their trials too
    runs: int
    """Runs that share a task with another: with fewer than two there is nothing to see, and the variances are 0."""


def pad_cells(before: Floats) -> Cells:
    """Return the cells of figures by gate, task, run and trial, padded with NaN."""
    known = ~np.isnan(before)
    counts = known[0].sum(-1).astype(float)
    filled = np.where(known, before, 0.0)
    means = filled.sum(-1) / np.maximum(counts, 1)
    squares = (np.where(known, before - means[..., None], 0.0) ** 2).sum((-1, -2))
    degrees = np.maximum(counts - 1, 0).sum(-1)
    variances = np.where(degrees > 0, squares / np.maximum(degrees, 1), np.nan)
    return Cells(means, counts, variances)


def run_effects(cells: Cells) -> RunEffects:
    """Return how whole runs differ, by analysis of variance. A run's mean deviation from the centres of its tasks has a
    square with two parts: the effects, of this run and of the other runs in those centres, and the trials' own noise in
    both, which is subtracted. The product of the deviations of successive runs tells the persistence.
    """
    gates, runs = len(cells.means), cells.counts.shape[1]
    linking = (cells.counts > 0).sum(-1) > 1  # A task that is in one run alone says nothing of how runs differ
    known = (cells.counts > 0) & linking[:, None]
    present = known.any(0)
    number = int(present.sum())
    if number < 2:
        none = np.zeros(gates)
        return RunEffects(none, none, none, np.full(gates, PRIOR_DEGREES), np.zeros((gates, runs)), number)
    weights = _Weights.of(known[linking][:, present].astype(float))
    means, counts = cells.means[:, linking][..., present], cells.counts[linking][:, present]
    usual = usual_variance(cells.variances)
    noise = np.where(np.isnan(cells.variances), usual[:, None], cells.variances)[:, linking, None]
    by_chance = np.einsum("gtr,tr->g", noise / np.maximum(counts, 1) * (counts > 0), weights.chance)
    return _effects(weights.deviations(means), by_chance, usual, weights, present)


def effects_of_shifts(shifts: Floats, by_chance: float, usual: float) -> RunEffects:
    """Return the same of runs that all have the same tasks, by gate and run: how much faster or slower each was.
    `by_chance` is the variance that the trials' noise leaves in each, `usual` that of a trial.
    """
    gates, runs = shifts.shape
    weights, expected = _Weights.of(np.ones((1, runs))), np.full(gates, by_chance * (runs - 1))
    deviations, everywhere = weights.deviations(shifts[:, None]), np.ones(runs, dtype=bool)
    return _effects(deviations, expected, np.full(gates, usual), weights, everywhere)


def _effects(
    deviations: Floats, by_chance: Floats, usual: Floats, weights: "_Weights", present: npt.NDArray[np.bool_]
) -> RunEffects:
    squares, number = (deviations**2).sum(-1), deviations.shape[1]
    products = (deviations[:, :-1] * deviations[:, 1:]).sum(-1)
    # The correlation that successive runs show and one standard error more: few runs cannot rule it out. The centring
    # of the deviations makes a correlation look smaller than it is; the weights tell what each would look like.
    seen = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0) + 1 / np.sqrt(number)
    powers = _PERSISTENCES[:, None] ** np.arange(number)
    looks = np.maximum.accumulate((powers @ weights.product) / (powers @ weights.square))
    persistence = np.where(squares > 0, np.interp(seen, looks, _PERSISTENCES), 0.0)
    powers = persistence[:, None] ** np.arange(number)
    # Noise can exceed what was seen by chance; a variance is not negative.
    beyond_chance = np.maximum(squares - by_chance, 0.0)
    degrees = (number - 1) * (1 - persistence**2) / (1 + persistence**2)
    variance = beyond_chance / (powers @ weights.square)
    pooled = (PRIOR_DEGREES * PRIOR_SHARE**2 * usual + degrees * variance) / (PRIOR_DEGREES + degrees)
    by_run = np.zeros((len(deviations), len(present)))
    by_run[:, present] = deviations
    return RunEffects(
        variance=beyond_chance / weights.square[0],
        persistence=persistence,
        of_comparison=pooled * (1 + powers @ weights.centre),
        degrees=PRIOR_DEGREES + degrees,
        by_run=by_run,
        runs=number,
    )


def usual_variance(variances: Floats) -> Floats:
    """Return, for each gate, the mean over the tasks whose variance is known; 0 where none is."""
    known = ~np.isnan(variances)
    return np.asarray(np.where(known, variances, 0.0).sum(-1) / np.maximum(known.sum(-1), 1))


class _Weights(NamedTuple):
    """How the effects and the noise come into the deviations. The first three are by the distance of two runs: what a
    variance of 1 gives is their sum, each times the correlation at that distance.
    """

    square: Floats  # Of the sum of the squared deviations
    product: Floats  # Of the sum of the products of successive deviations
    centre: Floats  # Of the baseline's centre
    chance: Floats  # By task and run: of the sum of the squared deviations, for the noise of a cell's mean
    shares: Floats  # By task and run: of the task's centre
    of_run: Floats  # By task and run: of the run's deviation

    @classmethod
    def of(cls, known: Floats) -> "_Weights":
        shares, of_run = known / known.sum(1, keepdims=True), known / known.sum(0)
        deviation, centre = np.eye(known.shape[1]) - of_run.T @ shares, shares.mean(0)
        own = of_run**2 * (1 - 2 * shares) + shares**2 * (of_run**2).sum(1, keepdims=True)
        return cls(
            _by_distance(deviation.T @ deviation),
            _by_distance(deviation[:-1].T @ deviation[1:]),
            _by_distance(np.outer(centre, centre)),
            own,
            shares,
            of_run,
        )

    def deviations(self, means: Floats) -> Floats:
        """Return, for each gate and run, the deviation from the centres of its tasks."""
        centres = (means * self.shares).sum(-1, keepdims=True)
        return np.asarray(((means - centres) * self.of_run).sum(1))


def _by_distance(products: Floats) -> Floats:
    """Return the sums along the diagonals: of the pairs of runs at each distance, in both orders."""
    both = [products.trace(offset) + products.trace(-offset) for offset in range(1, len(products))]
    return np.array([products.trace(), *both])
