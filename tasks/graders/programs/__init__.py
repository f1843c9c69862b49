"""Graders that are programs of the suites' authors."""
