"""Report a run: write verdict.json and the reports that show it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.verdict import RunView
from passgate.tasks.reports import junit, markdown, sarif
from passgate.tasks.reports.messages import warn

if TYPE_CHECKING:
    from passgate.tasks.reports.page import Going

RUN_FILES: Final[Mapping[str, Callable[[RunView], str]]] = {
    "junit.xml": junit.junit,
    "summary.md": markdown.markdown,
    "violations.sarif": sarif.sarif,
    "code-quality.json": sarif.code_quality,
}
"""What makes each of the files that passgate writes into the folder of every run, beside verdict.json."""
TRIALS_BESIDE: Final = 100
"""Trials that every run writes beside its page. Writing all trials of a large run takes longer than judging it."""
LARGE_RUN: Final = 1000  # A run with more trials writes none beside its page


def report(view: RunView, store: RunStore, masker: Masker) -> None:
    """Write the verdict and every report into the run's folder, and the summary for CI. Raise `StorageError`."""
    texts = {name: masker.text(make(view)) for name, make in RUN_FILES.items()}
    store.write_reports(view.verdict, texts)
    append_step_summary(texts["summary.md"])
    write_page(view, store, masker, TRIALS_BESIDE if len(view.trials) <= LARGE_RUN else 0)


def append_step_summary(text: str) -> None:
    """Append to the file that GitHub shows on the job's page, if it names one. Steps share the file."""
    step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if step_summary:
        try:
            with Path(step_summary).open("a", encoding="utf-8") as file:
                file.write(text + "\n")
        except OSError as error:
            warn(f"cannot write the step summary {step_summary}: {error}. The verdict does not depend on it")


def write_page(
    view: RunView, store: RunStore, masker: Masker, beside: int | None = None, going: "Going | None" = None
) -> None:
    """Write the page of a run, and beside it files with the trials that the page has no room for, at most `beside` of
    them. `going` is the progress of a run without a verdict. Raise `StorageError`.
    """
    from passgate.tasks.reports.page import run_pages

    for name, html in run_pages(view, beside, going):
        store.write_report(name, masker.text(html))
