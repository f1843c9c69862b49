"""Eval files of other tools, in all their dialects, read into tasks."""
