"""Views of a verdict and of the trend: values in, text out."""

from collections.abc import Callable

from passgate.tasks.model.verdict import Verdict
from passgate.tasks.reports import junit, markdown

REPORTS: dict[str, Callable[[Verdict], str]] = {
    "junit.xml": junit.junit,
    "summary.md": markdown.markdown,
}
"""The files of a run's folder that are made from its verdict."""
