"""Graders of the final answer."""
