"""Benchmarks: run by hand, never by the tests. Each compares with something measured in the same run."""
