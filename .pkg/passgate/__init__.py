"""passgate, a merge gate for AI agents: suites of trials in, one verdict and one exit code out."""

__version__ = "0.1.0"
