"""Benchmarks, run by hand. Each compares with something measured, or computed exactly, in the same run."""
