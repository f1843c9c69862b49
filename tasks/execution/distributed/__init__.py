"""Batches that run in other processes or on other machines: what a coordinator and its workers tell each other."""
