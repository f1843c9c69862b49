"""Report: a run that has ended in, its page out, with all of its trials."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.judge import judge
from passgate.tasks.measure import measure
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import EarlierRun, RunView
from passgate.tasks.planning.baseline import pooled_baseline, read_rows, recent_runs
from passgate.tasks.report import view_of, write_page
from passgate.tasks.reports.page import PAGE, Going


class WrittenPage(NamedTuple):
    """Where the page of a run is."""

    file: Path
    without_history: str
    """Why the page does not show the history; empty if it does."""

    @property
    def shown(self) -> str:
        return os.path.relpath(self.file)


class StoredRun(NamedTuple):
    """The view of a stored run."""

    view: RunView
    without_history: str = ""
    """Why it is without the history; empty if it is not."""
    going: Going | None = None
    """The progress of a run without a verdict: the verdict of the view is then what its trials say so far."""


def write_run_page(run_id: str, history: str | None) -> WrittenPage:
    """Write the page of a run over the one that it has. `history` takes the place of the plan's.

    Raises `UsageError` for a run without a verdict, `StorageError`.
    """
    store = RunStore.of(run_id)
    written = _write_page(store, stored_run(store, history))
    store.copy_to_url()
    return written


def write_latest_page(run_id: str) -> WrittenPage:
    """Write the page of a run, also of one without a verdict: it then shows the trials that are done.

    Raises `StorageError`.
    """
    store = RunStore.of(run_id)
    return _write_page(store, stored_run(store) if store.has_verdict() else _unjudged_run(store))


def _write_page(store: RunStore, stored: StoredRun) -> WrittenPage:
    plan = stored.view.plan
    assert plan is not None  # noqa: S101 - both kinds of StoredRun have read it
    write_page(stored.view, store, run_masker(plan), going=stored.going)
    return WrittenPage(store.here / PAGE, stored.without_history)


def stored_run(store: RunStore, history: str | None = None) -> StoredRun:
    """Return the view of a run from what is kept of it and what the history says today.

    Raises `UsageError` for a run without a verdict, `StorageError`.
    """
    verdict = store.required_verdict()
    plan, trials = store.read_plan(), store.read_trials()
    if not trials and any(task.n for task in verdict.measurement.tasks):
        raise UsageError(f"the run {store.name} has no journal any more, so there are no trials to show")
    if history:
        plan = plan.model_copy(update={"request": plan.request.model_copy(update={"history": history})})
    known = known_before(plan, trials)
    view = view_of(verdict, trials, store, known.baseline.tasks, earlier=known.recent, plan=plan)
    return StoredRun(view, known.missing)


def _unjudged_run(store: RunStore) -> StoredRun:
    plan, trials = store.read_plan(), store.read_trials()
    known = known_before(plan, trials)
    measurement = measure(plan, trials, known.baseline)
    verdict = judge(plan, plan.policy, trials, measurement, known.baseline, "")
    view = view_of(verdict, trials, store, known.baseline.tasks, earlier=known.recent, plan=plan)
    return StoredRun(view, known.missing, Going(len(view.trials), sum(task.k for task in plan.tasks)))


class KnownBefore(NamedTuple):
    """What the history says of the tasks of a run."""

    baseline: Baseline
    recent: Mapping[str, tuple[EarlierRun, ...]]
    missing: str = ""  # Why the history could not be read


def known_before(plan: Plan, trials: Sequence[Trial]) -> KnownBefore:
    """Return what the history says today; nothing if it cannot be read."""
    try:
        open_history(plan.history_location, Checkout(Path.cwd()))
        rows = read_rows(plan)
        return KnownBefore(pooled_baseline(plan, rows, trials), recent_runs(rows, plan.run_id))
    except PassgateError as error:
        return KnownBefore(Baseline(branch=plan.policy.baseline.branch), {}, str(error))
