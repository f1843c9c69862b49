"""Graders that are made of graders."""
