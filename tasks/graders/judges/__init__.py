"""Graders that ask a judge model."""
