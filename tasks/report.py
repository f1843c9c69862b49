"""Report: a verdict in, its files out: verdict.json and the views of it."""

import os
from pathlib import Path

from passgate.tasks.errors import StorageError
from passgate.tasks.history.masking import Masker
from passgate.tasks.history.run_folder import RunFolder
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.reports import REPORTS

_SUMMARY = "summary.md"


def report(verdict: Verdict, folder: RunFolder, masker: Masker) -> None:
    """Write the verdict and every report into the run's folder, and the summary where CI shows it.

    Raises `StorageError`.
    """
    texts = {name: masker.text(make(verdict)) for name, make in REPORTS.items()}
    folder.write_reports(verdict, texts)
    step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if step_summary:
        try:
            with Path(step_summary).open("a", encoding="utf-8") as file:
                file.write(texts[_SUMMARY] + "\n")
        except OSError as error:
            raise StorageError(f"cannot write the step summary {step_summary}: {error}") from error
