"""Write the page of a stored run, with all of its trials."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.history.masking import run_masker
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.tracked_folders import open_history
from passgate.tasks.judge import judge
from passgate.tasks.measure import measure
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Plan
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import EarlierRun, RunView, Verdict
from passgate.tasks.planning.baseline import pooled_baseline, read_rows, recent_runs
from passgate.tasks.report import write_page
from passgate.tasks.reports.page import PAGE, Going


class WrittenPage(NamedTuple):
    """Where the page of a run is."""

    file: Path
    without_history: str  # Why the page does not show the history; empty if it does


class KnownBefore(NamedTuple):
    """What the history contains about the tasks of a run."""

    baseline: Baseline
    recent: Mapping[str, tuple[EarlierRun, ...]]
    missing: str = ""  # Why the history could not be read


def write_run_page(run_id: str, history: str | None) -> WrittenPage:
    """Write the page of a run with a verdict. `history` replaces the plan's. Raises `UsageError`, `StorageError`."""
    store = RunStore.of(run_id)
    written = _write_page(store, store.required_verdict(), history)
    store.copy_to_url()
    return written


def write_latest_page(run_id: str) -> WrittenPage:
    """Write the page of a run. Without a verdict, the page shows the trials that are done. Raises `StorageError`."""
    store = RunStore.of(run_id)
    return _write_page(store, store.required_verdict() if store.has_verdict() else None)


def _write_page(store: RunStore, verdict: Verdict | None, history: str | None = None) -> WrittenPage:
    """Write the page from what the run's folder contains, and what the history contains today."""
    plan, trials = store.read_plan(), store.read_trials()
    if verdict is not None and not trials and any(task.n for task in verdict.measurement.tasks):
        raise UsageError(f"the run {store.name} has no journal any more, so there are no trials to show")
    if history:
        plan = plan.model_copy(update={"request": plan.request.model_copy(update={"history": history})})
    known, going = known_before(plan, trials), None
    if verdict is None:
        verdict = judge(plan, trials, measure(plan, trials, known.baseline), known.baseline, "")
        going = Going(len(trials), sum(task.k for task in plan.tasks))
    view = RunView(verdict, tuple(trials), store.read_transcript, known.baseline.tasks, known.recent, plan)
    write_page(view, store, run_masker(plan), going=going)
    return WrittenPage(store.here / PAGE, known.missing)


def known_before(plan: Plan, trials: Sequence[Trial]) -> KnownBefore:
    """Return what the history contains today; nothing if it cannot be read."""
    try:
        open_history(plan.history_location)
        rows = read_rows(plan)
        return KnownBefore(pooled_baseline(plan, rows, trials), recent_runs(rows, plan.run_id))
    except PassgateError as error:
        return KnownBefore(Baseline(branch=plan.policy.baseline.branch), {}, str(error))
