"""Prune: the summaries of a history and what its baselines need in, the runs that may go out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from passgate.tasks.formats.loading import load_pins, policy_or_default
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.merge_base import pinned_ancestors, request_base
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.history import PrunedRuns, RecordedRun
from passgate.tasks.model.run import RunRequest

_TASK: Final = ["agent", "suite", "task_id"]
_VERSION: Final = ["task_digest", "grader_digest", "k", "metric"]
_COLUMNS: Final = ("run_id", *_TASK, *_VERSION, "model", "git_branch", "git_commit", "git_dirty")


@dataclass(frozen=True)
class Needs:
    """Which runs baselines are made from."""

    runs: int
    """The number for each task."""
    branch: str
    ancestors: Collection[str]
    """The commits of the baseline branch."""
    pins: Pins | None
    pinned_ancestors: Collection[str]
    """The pinned commit and its first-parent ancestors, where git knows them."""


def needs_of(gates: Path, folder: Path) -> Needs:
    """Return what the baselines of a gates file need. `folder` is in the repository. Raise as `load_pins` does."""
    policy, pins = policy_or_default(gates), load_pins(gates)
    with Checkout(folder) as checkout:
        policy = policy.into(checkout.baseline_branch)
        base = request_base(checkout, RunRequest(gates=str(gates)), policy)
    of_pin = pinned_ancestors(pins, folder)
    return Needs(policy.baseline.runs, policy.baseline.branch, base.ancestors, pins, of_pin)


def runs_before(runs: Sequence[RecordedRun], day: str) -> set[str]:
    """Return the runs that began before a UTC day, as in `2026-01-31`."""
    return {run.run_id for run in runs if run.run_id < day.replace("-", "")}


def runs_beyond(runs: Sequence[RecordedRun], keep: int) -> set[str]:
    """Return the runs of each gate and agent but the newest N."""
    of_both: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        of_both.setdefault((run.gate, run.agent), []).append(run.run_id)
    return {run_id for some in of_both.values() for run_id in sorted(some, reverse=True)[keep:]}


def pruned_runs(runs: Sequence[RecordedRun], chosen: Collection[str], summaries: pa.Table, needs: Needs) -> PrunedRuns:
    """Return which of the chosen runs go, and which stay because they are pinned or a baseline needs them."""
    pinned, needed = _pinned(summaries, needs), _of_the_branch(summaries, needs)
    some = [run for run in runs if run.run_id in chosen]
    return PrunedRuns(
        gone=tuple(run for run in some if run.run_id not in pinned | needed),
        pinned=tuple(run.run_id for run in some if run.run_id in pinned),
        needed=tuple(run.run_id for run in some if run.run_id in needed - pinned),
        left=len(runs) - sum(run.run_id not in pinned | needed for run in some),
    )


def _pinned(summaries: pa.Table, needs: Needs) -> set[str]:
    pins = needs.pins
    if pins is None:
        return set()
    if pins.runs:
        return {run for run in pc.unique(summaries["run_id"]).to_pylist() if run.startswith(pins.runs)}
    rows = _clean(summaries)
    commits = rows["git_commit"].astype(str)
    of_pin = commits.isin(list(needs.pinned_ancestors)) | commits.str.startswith(pins.commit or "-")
    return _newest(rows[of_pin], needs.runs)


def _of_the_branch(summaries: pa.Table, needs: Needs) -> set[str]:
    """Return the runs that a baseline at the branch pools: the newest of each task as it was last and model."""
    rows = _clean(summaries)
    rows = rows[(rows["git_branch"] == needs.branch) | rows["git_commit"].isin(list(needs.ancestors))]
    last = rows.sort_values("run_id").drop_duplicates(_TASK, keep="last")[[*_TASK, *_VERSION]]
    return _newest(rows.merge(last, on=[*_TASK, *_VERSION]), needs.runs)


def _clean(summaries: pa.Table) -> pd.DataFrame:
    """Return the rows that baselines may be made from: measured, and of the very files of their commit."""
    measured = pc.greater(pc.add(summaries["passed"], summaries["failed"]), 0)
    dirty = pc.fill_null(summaries["git_dirty"], fill_value=False)
    kept = summaries.filter(pc.and_(measured, pc.invert(dirty)))
    rows: pd.DataFrame = kept.select(list(_COLUMNS)).to_pandas()
    return rows


def _newest(rows: pd.DataFrame, runs: int) -> set[str]:
    groups = rows.sort_values("run_id").groupby([*_TASK, *_VERSION, "model"], dropna=False, sort=False)
    return set(groups.tail(runs)["run_id"])
