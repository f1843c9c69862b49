"""The files that every run gets beside its verdict."""

from collections.abc import Callable

from passgate.tasks.model.run_view import RunView
from passgate.tasks.reports import code_quality, junit, markdown, sarif

RUN_FILES: dict[str, Callable[[RunView], str]] = {
    "junit.xml": junit.junit,
    "summary.md": markdown.markdown,
    "violations.sarif": sarif.sarif,
    "code-quality.json": code_quality.code_quality,
}
"""What makes each of the files that passgate writes into the folder of every run, beside verdict.json."""
