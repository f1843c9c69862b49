"""Graders of what the agent did: its calls, its steps, its limits."""
