"""Graders of the way that the agent went: its calls, its steps, its limits."""
