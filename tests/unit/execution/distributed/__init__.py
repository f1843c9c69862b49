"""Batches that run in other processes or on other machines."""
