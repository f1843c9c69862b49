"""The history of all runs, for notebooks: `passgate.history.load()` gives a DataFrame."""

from passgate.tasks.history.summaries import load

__all__ = ["load"]
