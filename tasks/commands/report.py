"""Report: a run that has ended in, its page out, with all of its trials."""

import os
from pathlib import Path
from typing import NamedTuple

from passgate.tasks.errors import PassgateError, UsageError
from passgate.tasks.history.masking import masker_of
from passgate.tasks.history.recent import recent_runs
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.earlier_runs import open_history
from passgate.tasks.integrity.git import Checkout
from passgate.tasks.model.run_view import RunView
from passgate.tasks.planning.baseline import pooled_baseline, read_rows
from passgate.tasks.report import view_of, write_page
from passgate.tasks.reports.page.build import PAGE


class WrittenPage(NamedTuple):
    """Where the page of a run is."""

    file: Path
    without_history: str
    """Why the page does not show the history; empty where it does."""

    @property
    def shown(self) -> str:
        return os.path.relpath(self.file)


class StoredRun(NamedTuple):
    """A view of a run that is kept, and why it is without the history where it is."""

    view: RunView
    without_history: str


def write_run_page(run_id: str, history: str | None) -> WrittenPage:
    """Write the page of a run over the one that it has. `history` takes the place of the plan's.

    Raises `UsageError` for a run without a verdict, `StorageError`.
    """
    store = RunStore.of(run_id)
    stored = stored_run(store, history)
    plan = stored.view.plan
    assert plan is not None  # noqa: S101 - stored_run has read it
    write_page(stored.view, store, masker_of(plan))
    return WrittenPage(store.path / PAGE, stored.without_history)


def stored_run(store: RunStore, history: str | None = None) -> StoredRun:
    """The view of a run by what is kept of it and what the history says today.

    Raises `UsageError` for a run without a verdict, `StorageError`.
    """
    verdict = store.read_verdict()
    if verdict is None:
        raise UsageError(
            f"the run {store.name} has no verdict: carry it on with `passgate run GATE --resume {store.name}`"
        )
    plan, trials = store.read_plan(), store.read_trials()
    if history:
        plan = plan.model_copy(update={"request": plan.request.model_copy(update={"history": history})})
    try:
        open_history(plan.history_location, Checkout(Path.cwd()))
        rows = read_rows(plan)
        tasks = pooled_baseline(plan, rows, trials).tasks
    except PassgateError as error:
        return StoredRun(view_of(verdict, trials, store, plan=plan), str(error))
    earlier = recent_runs(rows.trials, plan.run_id)
    return StoredRun(view_of(verdict, trials, store, tasks, earlier=earlier, plan=plan), "")
