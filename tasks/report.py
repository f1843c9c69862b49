"""Report: a run that has ended in, its files out: verdict.json and the views of it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from passgate.tasks.errors import StorageError
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.run_store import JournalTranscripts, RunStore
from passgate.tasks.model.baseline import BaselineTask
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.trial import Trial
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.reports import REPORTS


def view_of(
    verdict: Verdict, trials: Iterable[Trial], store: RunStore, history: Mapping[str, BaselineTask] | None = None
) -> RunView:
    """The view that reports get of a run whose trials are in its store. `history` has the baseline of each task."""
    return RunView(verdict, tuple(trials), JournalTranscripts(store), history or {})


def report(view: RunView, store: RunStore, masker: Masker) -> None:
    """Write the verdict and every report into the run's folder, and the summary where CI shows it.

    Raises `StorageError`.
    """
    texts = {name: masker.text(make(view)) for name, make in REPORTS.items()}
    store.write_reports(view.verdict, texts)
    # GitHub shows this file on the page of the job. Steps share it, so it is appended to.
    step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if step_summary:
        try:
            with Path(step_summary).open("a", encoding="utf-8") as file:
                file.write(texts["summary.md"] + "\n")
        except OSError as error:
            raise StorageError(f"cannot write the step summary {step_summary}: {error}") from error
