"""Summaries of runs in, lasting changes out: when, by which tasks, between which commits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from passgate.tasks.history.dataset import MOST_RUNS
from passgate.tasks.model.history import FlakyTask, Quantity, RunStamp, TrendChange
from passgate.tasks.model.task import Suite
from passgate.tasks.stats.change_points import ChangePoint, Floats, Levels, PassRates, change_points

_SAME_TASK: Final = ["suite", "task_id", "task_digest", "grader_digest", "k", "metric"]
_ALSO: Final = {
    "model": "model",
    "agent_digest": "agent",
    "policy_digest": "policy",
    "passgate_version": "passgate",
}
_LEAST_RATIO: Final = 1.1  # A smaller change of latency or cost is not reported
_LEAST_SECONDS: Final = 1e-6
_NEAR: Final = 5  # Runs by which tasks may differ that change together
_FLAKY_RUNS: Final = 30
_LEAST_FLAKY: Final = 0.05
_MOST_FLAKY: Final = 5


@dataclass(frozen=True)
class _Grid:
    """The runs of a history as columns, its tasks as rows."""

    summaries: pd.DataFrame
    run: npt.NDArray[np.integer]  # The column of each row of the summaries
    task: npt.NDArray[np.integer]  # The row of each row of the summaries
    runs: tuple[RunStamp, ...]
    tasks: tuple[tuple[Suite, str], ...]
    suites: tuple[Suite, ...]

    def matrix(self, values: npt.ArrayLike, empty: float) -> Floats:
        """Return a column of the summaries as a row per task and a column per run."""
        filled = np.full((len(self.tasks), len(self.runs)), empty)
        filled[self.task, self.run] = values
        return filled

    @property
    def members(self) -> Floats:
        """Return a row per suite with 1 for its tasks."""
        return np.array([[float(suite is of) for suite, _ in self.tasks] for of in self.suites])


def trend_changes(summaries: pd.DataFrame) -> tuple[TrendChange, ...]:
    """Return the lasting changes in the newest runs of one gate and agent, the newest first."""
    if summaries.empty:
        return ()
    newest = _newest(summaries, MOST_RUNS)
    grid = _grid(newest)
    n = grid.matrix(newest["passed"] + newest["failed"], 0.0)
    shares = np.where(n > 0, grid.matrix(newest["passed"], 0.0) / np.maximum(n, 1), np.nan)
    log_costs = np.log(newest["cost"].where(newest["cost"] > 0).to_numpy(dtype=float))
    levels_of_tasks = (grid.matrix(one, np.nan) for one in (_log_seconds(newest["wall_times"]), log_costs))
    values = [shares, *levels_of_tasks]
    pass_rates, *levels = (np.vstack([one, _suite_means(one, grid.members)]) for one in values)
    # Of a suite in a run, so many trials of one task vary as much as the mean of its tasks' pass rates.
    inverse = grid.members @ np.divide(1.0, n, out=np.zeros_like(n), where=n > 0)
    of_suites = np.divide((grid.members @ (n > 0)) ** 2, inverse, out=np.zeros_like(inverse), where=inverse > 0)
    trials = np.vstack([n, of_suites])
    least = float(np.log(_LEAST_RATIO))
    found = change_points([PassRates(pass_rates, trials), *(Levels(one, least) for one in levels)])
    changes = [
        change
        for quantity, points, of_tasks in zip(Quantity, found, values, strict=True)
        for change in _quantity_changes(grid, quantity, points, of_tasks)
    ]
    return tuple(sorted(changes, key=lambda one: (one.first_after.run_id, one.suite, one.quantity), reverse=True))


def flaky_tasks(summaries: pd.DataFrame) -> tuple[FlakyTask, ...]:
    """Return the tasks of the newest runs of which two trials of one run end differently most often."""
    rows = _newest(summaries, _FLAKY_RUNS)
    n = rows["passed"] + rows["failed"]
    counts = rows.assign(n=n, pairs=n * (n - 1), unlike=2 * rows["passed"] * rows["failed"])
    tasks = counts.groupby(["suite", "task_id"], sort=True)[["passed", "n", "pairs", "unlike"]].sum()
    tasks["share"] = tasks["unlike"] / tasks["pairs"].clip(lower=1)
    worst = tasks[tasks["share"] >= _LEAST_FLAKY].sort_values("share", ascending=False, kind="stable")[:_MOST_FLAKY]
    return tuple(
        FlakyTask(
            suite=task["suite"], task_id=task["task_id"], disagreement=task["share"], passed=task["passed"], n=task["n"]
        )
        for task in worst.reset_index().to_dict("records")
    )


def _newest(summaries: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the rows of the newest runs."""
    runs = sorted(summaries["run_id"].unique())
    return summaries[summaries["run_id"] >= runs[-most]] if len(runs) > most else summaries


def _grid(summaries: pd.DataFrame) -> _Grid:
    run = pd.factorize(summaries["run_id"], sort=True)[0]
    task = summaries.groupby(_SAME_TASK, sort=True, dropna=False).ngroup().to_numpy()
    first_of_runs, first_of_tasks = (summaries.iloc[np.unique(one, return_index=True)[1]] for one in (run, task))
    stamps = tuple(
        RunStamp(run_id=run_id, day=day, git_commit=commit or "")
        for run_id, day, commit in first_of_runs[["run_id", "day", "git_commit"]].itertuples(index=False)
    )
    tasks = tuple(
        (Suite(suite), name) for suite, name in zip(first_of_tasks["suite"], first_of_tasks["task_id"], strict=True)
    )
    present = {suite for suite, _ in tasks}
    return _Grid(summaries, run, task, stamps, tasks, tuple(suite for suite in Suite if suite in present))


def _log_seconds(wall_times: pd.Series) -> Floats:
    """Return the mean of the logarithms of the times of each row; NaN where there are none."""
    lengths = wall_times.map(len).to_numpy()
    logarithms = np.log(np.maximum(np.concatenate([[], *wall_times]), _LEAST_SECONDS))
    sums = np.bincount(np.repeat(np.arange(len(lengths)), lengths), logarithms, minlength=len(lengths))
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / lengths)


def _suite_means(values: Floats, members: Floats) -> Floats:
    """Return the mean of each suite's tasks in each run, as if every task were in every run."""
    known = np.isfinite(values)
    counts = np.maximum(known.sum(axis=1, keepdims=True), 1)
    means = np.where(known, values, 0.0).sum(axis=1, keepdims=True) / counts
    centred = np.where(known, values - means, 0.0)
    present = members @ known
    usual = members @ np.where(known.any(axis=1, keepdims=True), means, 0.0)
    usual /= np.maximum(members @ known.any(axis=1, keepdims=True), 1)
    return np.where(present > 0, members @ centred / np.maximum(present, 1) + usual, np.nan)


def _quantity_changes(
    grid: _Grid, quantity: Quantity, points: Sequence[ChangePoint], values: Floats
) -> Iterable[TrendChange]:
    """Yield the changes of the suites with the tasks that carry them, then those of single tasks."""
    first_suite = len(grid.tasks)
    of_tasks = [point for point in points if point.series < first_suite]
    for point in points:
        if point.series < first_suite:
            continue
        suite = grid.suites[point.series - first_suite]
        together = [one for one in of_tasks if grid.tasks[one.series][0] is suite and _is_same(one, point)]
        of_tasks = [one for one in of_tasks if one not in together]
        detected = [one.series for one in sorted(together, key=lambda one: -one.evidence)]
        carriers = _carriers(grid, suite, point, values, detected)
        main = next((one for one in together if carriers == [one.series]), point)
        yield _change(grid, quantity, suite, carriers, main)
    for one in of_tasks:
        yield _change(grid, quantity, grid.tasks[one.series][0], [one.series], one)


def _is_same(one: ChangePoint, other: ChangePoint) -> bool:
    """Return whether two changes go in one direction and happen at about the same time."""
    ends = (change.at if change.until is None else change.until for change in (one, other))
    is_near = max(one.at, other.at) - _NEAR <= min(ends)
    return is_near and (one.after > one.before) == (other.after > other.before)


def _carriers(grid: _Grid, suite: Suite, point: ChangePoint, values: Floats, detected: Sequence[int]) -> Sequence[int]:
    """Return the tasks that make half of a suite's change: seen ones or a single one; none if they are most of it."""
    tasks = [number for number, (of, _) in enumerate(grid.tasks) if of is suite]
    end = point.at if point.until is None else point.until
    with np.errstate(invalid="ignore"):
        known = np.isfinite(values[tasks])
        sums = np.where(known, values[tasks], 0.0)
        before = sums[:, : point.at].sum(axis=1) / known[:, : point.at].sum(axis=1)
        after = sums[:, end:].sum(axis=1) / known[:, end:].sum(axis=1)
    moved = np.nan_to_num((after - before) * np.sign(point.after - point.before))
    total = np.maximum(moved, 0.0).sum()
    best = tasks[int(np.argmax(moved))]
    for some in (list(dict.fromkeys(detected)), [best]):
        share = sum(moved[tasks.index(task)] for task in some)
        if total > 0 and share >= total / 2 and 2 * len(some) <= max(2, len(tasks)):
            return some
    return []


def _change(grid: _Grid, quantity: Quantity, suite: Suite, carriers: Sequence[int], main: ChangePoint) -> TrendChange:
    rises = main.after > main.before
    before, after = main.before, main.after
    if quantity is not Quantity.PASS_RATE:
        before, after = float(np.exp(before)), float(np.exp(after))
    names = dict.fromkeys(grid.tasks[number][1] for number in carriers)
    return TrendChange(
        quantity=quantity,
        suite=suite,
        tasks=tuple(names),
        is_worse=rises is not (quantity is Quantity.PASS_RATE),
        before=before,
        after=after,
        last_before=grid.runs[main.at - 1],
        first_after=grid.runs[main.at],
        until=None if main.until is None else grid.runs[main.until],
        told_by=grid.runs[min(main.alarm, len(grid.runs) - 1)].run_id,
        also_changed=_other_changes(grid, suite, main.at),
    )


def _other_changes(grid: _Grid, suite: Suite, at: int) -> tuple[str, ...]:
    """Return what differs between the suite's rows of a run and of the one before it."""
    is_suite = (grid.summaries["suite"] == str(suite)).to_numpy()
    differences = []
    for column, name in _ALSO.items():
        before, after = (
            ", ".join(sorted(filter(None, grid.summaries.loc[is_suite & (grid.run == run), column].dropna().unique())))
            for run in (at - 1, at)
        )
        if before and after and before != after:
            differences.append(name if column.endswith("_digest") else f"{name}: {before} -> {after}")
    return tuple(differences)
