"""Summaries of runs in, lasting changes out: when, by which tasks, between which commits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.history.encoding import Codes, codes_of, encoded
from passgate.tasks.model.task import Suite
from passgate.tasks.model.trend import FlakyTask, Quantity, RunStamp, TrendChange
from passgate.tasks.stats.change_points import ChangePoint, change_points
from passgate.tasks.stats.change_series import Floats
from passgate.tasks.stats.levels import Levels
from passgate.tasks.stats.pass_counts import PassCounts

Integers = npt.NDArray[np.int64]
_SAME_TASK: Final = ("suite", "task_id", "task_digest", "grader_digest", "k", "metric")
_ALSO: Final = {
    "model": "model",
    "agent_digest": "agent",
    "policy_digest": "policy",
    "passgate_version": "passgate",
}
_PLAIN: Final = (*_SAME_TASK, "gate", "run_id", "day", "git_commit", "passed", "failed", "cost", "agent", *_ALSO)
COLUMNS: Final = (*_PLAIN, "wall_times")
"""The columns of the summaries that changes are read from."""
MOST_RUNS: Final = 400
"""Changes are looked for in so many of the newest runs."""
LEAST_RATIO: Final = 1.1
"""A latency or cost that changes by less is not told."""
_LARGEST: Final = 2**62
_NEAR: Final = 5  # Runs by which tasks may differ that change together
_FLAKY_RUNS: Final = 30
_LEAST_FLAKY: Final = 0.05
_MOST_FLAKY: Final = 5


@dataclass(frozen=True)
class _Grid:
    """The runs of a history as columns, its tasks as rows."""

    run: Integers
    """Of each row of the summaries the column."""
    task: Integers
    """Of each row of the summaries the row."""
    also: Mapping[str, Codes]
    """What of an agent and its setting each row of the summaries has."""
    runs: tuple[RunStamp, ...]
    tasks: tuple[tuple[Suite, str], ...]
    suites: tuple[Suite, ...]

    def matrix(self, values: Floats, empty: float) -> Floats:
        """A column of the summaries as a row per task and a column per run."""
        filled = np.full((len(self.tasks), len(self.runs)), empty)
        filled[self.task, self.run] = values
        return filled

    @property
    def members(self) -> Floats:
        """A row per suite with 1 for its tasks."""
        return np.array([[float(suite is of) for suite, _ in self.tasks] for of in self.suites])


def change_rows(summaries: pa.Table) -> pa.Table:
    """What changes are found in: summaries, encoded or not, with `COLUMNS`, and a mean in place of their times."""
    seconds = pa.array(_geometric_means(summaries["wall_times"]))
    return encoded(summaries.select(list(_PLAIN)).append_column("seconds", seconds))


def joined_rows(parts: Sequence[pa.Table], gate: str, agent: str) -> pa.Table:
    """The rows of one gate and agent."""
    of_both = (_of_both(part, gate, agent) for part in parts)
    return pa.concat_tables(of_both).unify_dictionaries()


def _of_both(rows: pa.Table, gate: str, agent: str) -> pa.Table:
    kept = np.ones(len(rows), dtype=bool)
    for column, name in (("gate", gate), ("agent", agent)):
        codes = codes_of(rows[column])
        kept &= codes.numbers == (codes.names.index(name) if name in codes.names else len(codes.names))
    return rows if kept.all() else rows.filter(pa.array(kept))


def trend_changes(rows: pa.Table) -> tuple[TrendChange, ...]:
    """The lasting changes in the newest runs, the newest first. The rows are of one gate and agent."""
    if not len(rows):
        return ()
    newest = _newest(rows, MOST_RUNS)
    grid = _grid(newest)
    passed, failed = (grid.matrix(_numbers(newest[name]), 0.0) for name in ("passed", "failed"))
    levels = [grid.matrix(_logarithms(_numbers(newest[name])), np.nan) for name in ("seconds", "cost")]
    whole = [np.vstack([one, _of_suites(one, grid.members)]) for one in levels]
    least = float(np.log(LEAST_RATIO))
    found = change_points([PassCounts(passed, passed + failed, grid.members), *(Levels(one, least) for one in whole)])
    shares = np.where(passed + failed > 0, passed / np.maximum(passed + failed, 1), np.nan)
    changes = [
        change
        for quantity, points, values in zip(Quantity, found, (shares, *levels), strict=True)
        for change in _of_quantity(grid, quantity, points, values)
    ]
    return tuple(sorted(changes, key=lambda one: (one.first_after.run_id, one.suite, one.quantity), reverse=True))


def newest_changes(changes: Iterable[TrendChange], run_id: str) -> tuple[TrendChange, ...]:
    """The changes that could not be seen before a run and can be seen after it."""
    return tuple(change for change in changes if change.told_by == run_id)


def flaky_tasks(rows: pa.Table) -> tuple[FlakyTask, ...]:
    """The tasks of the newest runs of which two trials of one run end differently most often."""
    newest = _newest(rows, _FLAKY_RUNS)
    suites, names = codes_of(newest["suite"]), codes_of(newest["task_id"])
    keys, of_task = np.unique(suites.numbers * len(names.names) + names.numbers, return_inverse=True)
    passed, failed = (_numbers(newest[name]) for name in ("passed", "failed"))
    n = passed + failed
    pairs, unlike, passes, trials = (
        np.bincount(of_task, weights=one, minlength=len(keys)) for one in (n * (n - 1), 2 * passed * failed, passed, n)
    )
    shares = unlike / np.maximum(pairs, 1)
    worst = [index for index in np.argsort(-shares, kind="stable") if shares[index] >= _LEAST_FLAKY][:_MOST_FLAKY]
    return tuple(
        FlakyTask(
            suite=Suite(suites.names[keys[index] // len(names.names)]),
            task_id=names.names[keys[index] % len(names.names)],
            disagreement=float(shares[index]),
            passed=int(passes[index]),
            n=int(trials[index]),
        )
        for index in worst
    )


def _newest(rows: pa.Table, most: int) -> pa.Table:
    """The rows of the newest runs."""
    runs = codes_of(rows["run_id"])
    present = np.unique(runs.numbers)
    return rows if len(present) <= most else rows.filter(pa.array(runs.numbers >= present[-most]))


def _grid(rows: pa.Table) -> _Grid:
    runs, suites, names = codes_of(rows["run_id"]).without_unused(), codes_of(rows["suite"]), codes_of(rows["task_id"])
    days, commits = codes_of(rows["day"]), codes_of(rows["git_commit"])
    task = _same([_numbers_of(rows[column]) for column in _SAME_TASK])
    first_of_runs, first_of_tasks = (np.unique(one, return_index=True)[1].tolist() for one in (runs.numbers, task))
    stamps = tuple(RunStamp(run_id=runs.at(row), day=days.at(row), git_commit=commits.at(row)) for row in first_of_runs)
    tasks = tuple((Suite(suites.at(row)), names.at(row)) for row in first_of_tasks)
    present = {suite for suite, _ in tasks}
    also = {name: codes_of(rows[name]) for name in _ALSO}
    return _Grid(runs.numbers, task, also, stamps, tasks, tuple(suite for suite in Suite if suite in present))


def _same(columns: Sequence[Integers]) -> Integers:
    """A number for each row, the same for rows that have the same numbers in all columns, in their order."""
    number, size = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        more = int(column.max()) + 2
        if size * more > _LARGEST:
            number = np.unique(number, return_inverse=True)[1]
            size = len(number)
        number, size = number * more + column + 1, size * more
    return np.unique(number, return_inverse=True)[1]


def _numbers_of(column: pa.ChunkedArray) -> Integers:
    """A column as numbers that are alike where its values are."""
    return codes_of(column).numbers if pa.types.is_dictionary(column.type) else column.to_numpy().astype(np.int64)


def _numbers(column: pa.ChunkedArray) -> Floats:
    values: Floats = column.to_numpy().astype(np.float64, copy=False)
    return values


def _geometric_means(wall_times: pa.ChunkedArray) -> Floats:
    lengths = pc.fill_null(pc.list_value_length(wall_times), 0).to_numpy()
    sums = np.concatenate(([0.0], np.cumsum(_logarithms(pc.list_flatten(wall_times).to_numpy(), least=1e-6))))
    ends = np.cumsum(lengths)
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = np.exp((sums[ends] - sums[ends - lengths]) / lengths)
    return means


def _logarithms(values: Floats, least: float = 0.0) -> Floats:
    """The logarithms of what is above 0; NaN of the rest, or the logarithm of `least`."""
    values = np.maximum(values, least) if least else values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log(values), np.nan)


def _of_suites(levels: Floats, members: Floats) -> Floats:
    """The mean of each suite's tasks in each run, as if every task were in every run."""
    known = np.isfinite(levels)
    counts = np.maximum(known.sum(axis=1, keepdims=True), 1)
    means = np.where(known, levels, 0.0).sum(axis=1, keepdims=True) / counts
    centred = np.where(known, levels - means, 0.0)
    present = members @ known
    usual = members @ np.where(known.any(axis=1, keepdims=True), means, 0.0)
    usual /= np.maximum(members @ known.any(axis=1, keepdims=True), 1)
    return np.where(present > 0, members @ centred / np.maximum(present, 1) + usual, np.nan)


def _of_quantity(
    grid: _Grid, quantity: Quantity, points: Sequence[ChangePoint], values: Floats
) -> Iterable[TrendChange]:
    """The changes of the suites with the tasks that carry them, then those of single tasks."""
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
    end = max(other.at if other.until is None else other.until, one.at if one.until is None else one.until)
    slow = one.until is not None or other.until is not None
    is_near = min(one.at, other.at) - _NEAR <= one.at <= end + _NEAR if slow else abs(one.at - other.at) <= _NEAR
    return is_near and (one.after > one.before) == (other.after > other.before)


def _carriers(grid: _Grid, suite: Suite, point: ChangePoint, values: Floats, detected: Sequence[int]) -> Sequence[int]:
    """The tasks that make at least half of a suite's change: those in which it was seen, or a single one; none where
    they are most of the suite, because then the suite has changed.
    """
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
        told_by=grid.runs[min(main.told, len(grid.runs) - 1)].run_id,
        also_changed=_also_changed(grid, suite, main.at),
    )


def _also_changed(grid: _Grid, suite: Suite, at: int) -> tuple[str, ...]:
    """What differs between the suite's rows of a run and of the one before it."""
    is_of_suite = np.array([of is suite for of, _ in grid.tasks])[grid.task]
    told = []
    for column, name in _ALSO.items():
        codes = grid.also[column]
        numbers = [np.unique(codes.numbers[is_of_suite & (grid.run == run)]).tolist() for run in (at - 1, at)]
        before, after = (
            ", ".join(codes.names[one] for one in some if one >= 0 and codes.names[one]) for some in numbers
        )
        if before and after and before != after:
            told.append(name if column.endswith("_digest") else f"{name}: {before} -> {after}")
    return tuple(told)
